package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const (
	// maxSeals bounds the seals that a report lists; those with the longest gaps stay.
	maxSeals = 1000
	// sealsShown is how many of them people see.
	sealsShown = 10
)

// sealRow is one seal that a bench saw: acks of a range that name another segment than those before.
type sealRow struct {
	Range string    `json:"range" col:"RANGE"`
	Old   string    `json:"old" col:"OLD"`
	New   string    `json:"new" col:"NEW"`
	Cause string    `json:"cause" col:"CAUSE" doc:"empty when it was not to be had"`
	GapMs float64   `json:"gap_ms" col:"GAP" as:"ms" doc:"a record waited, and no ack came, for so long"`
	At    term.Time `json:"at" col:"AT" as:"stamp" doc:"of the first ack behind it"`
}

// sealSeen is a sealRow under way.
type sealSeen struct {
	rng      sdk.RangeID
	old, new sdk.SegmentID
	gap      time.Duration
	at       time.Time
}

// gaps watches the acks of one client: how long no ack came of a range while one was waited for, and which segment they
// come from.
type gaps struct {
	last     map[sdk.RangeID]time.Time // of the last ack
	segments map[sdk.RangeID]sdk.SegmentID
	longest  time.Duration
	seals    []sealSeen
	count    int64 // of all seals, those not kept among them
}

func newGaps() gaps {
	return gaps{last: map[sdk.RangeID]time.Time{}, segments: map[sdk.RangeID]sdk.SegmentID{}}
}

// acked takes an ack that came now, for a record that was to be sent at intended. Acks of a range come in the order of its
// records, so nothing before it still waits.
func (g *gaps) acked(ack sdk.Ack, intended, now time.Time) {
	since := intended
	if last := g.last[ack.Range]; last.After(since) {
		since = last
	}
	gap := now.Sub(since)
	g.longest = max(g.longest, gap)
	g.last[ack.Range] = now
	old := g.segments[ack.Range]
	if old == ack.Segment {
		return
	}
	g.segments[ack.Range] = ack.Segment
	if old == 0 {
		return
	}
	g.count++
	g.seals = append(g.seals, sealSeen{rng: ack.Range, old: old, new: ack.Segment, gap: gap, at: now})
	if len(g.seals) >= 2*maxSeals {
		g.seals = longestGaps(g.seals)
	}
}

// longestGaps keeps the seals that were waited for the longest.
func longestGaps(seals []sealSeen) []sealSeen {
	slices.SortFunc(seals, func(a, b sealSeen) int { return cmp.Compare(b.gap, a.gap) })
	return seals[:min(len(seals), maxSeals)]
}

// merge adds what another client saw. Of one seal that both saw, the longer wait counts.
func (g *gaps) merge(o *gaps) {
	g.longest = max(g.longest, o.longest)
	for id := range o.segments {
		g.segments[id] = o.segments[id]
	}
	g.count = max(g.count, o.count)
next:
	for _, s := range o.seals {
		for i := range g.seals {
			if mine := &g.seals[i]; mine.rng == s.rng && mine.new == s.new {
				if s.gap > mine.gap {
					*mine = s
				}
				continue next
			}
		}
		g.seals = append(g.seals, s)
	}
	g.count = max(g.count, int64(len(g.seals)))
}

// rows lists the seals by time, with their causes as far as the metadata tells them.
func (g *gaps) rows(causes map[sdk.SegmentID]string) []sealRow {
	seals := longestGaps(slices.Clone(g.seals))
	slices.SortFunc(seals, func(a, b sealSeen) int { return a.at.Compare(b.at) })
	rows := []sealRow{}
	for _, s := range seals {
		rows = append(rows, sealRow{
			Range: s.rng.String(), Old: s.old.String(), New: s.new.String(), Cause: causes[s.old], GapMs: millis(s.gap), At: term.Time{Time: s.at},
		})
	}
	return rows
}

// sealCauses asks why segments of a topic were sealed. Not to get an answer costs the report a column, no more.
func (a *app) sealCauses(ctx context.Context, admin segmentLister, topic string, g *gaps) map[sdk.SegmentID]string {
	causes := map[sdk.SegmentID]string{}
	if len(g.seals) == 0 {
		return causes
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthAsk)
	defer cancel()
	list, err := admin.ListSegments(ctx, sdk.ListSegments{Topic: topic})
	if err != nil {
		return causes
	}
	for _, s := range list.Segments {
		causes[s.Segment.ID] = s.Segment.Cause.String()
	}
	return causes
}

// sealsPage shows the seals with the longest gaps, by time.
func sealsPage(p *term.Page, f produceFields) {
	if len(f.SealList) == 0 {
		return
	}
	rows := slices.Clone(f.SealList)
	if len(rows) > sealsShown {
		slices.SortFunc(rows, func(a, b sealRow) int { return cmp.Compare(b.GapMs, a.GapMs) })
		rows = rows[:sealsShown]
		slices.SortFunc(rows, func(a, b sealRow) int { return a.At.Compare(b.At.Time) })
		p.Heading(fmt.Sprintf("Seals, the %d of %s that were waited for the longest", len(rows), term.FormatCount(f.Seals)))
	} else {
		p.Heading("Seals")
	}
	p.Table(rows)
}
