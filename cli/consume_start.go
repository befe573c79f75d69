package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type startKind uint8

const (
	startEarliest startKind = iota
	startLatest
	startOffset // N, in each range
	startAfter  // +N from the beginning of each range
	startBefore // -N from the end of each range
	startTime   // @TIME
	startRange  // r41:1200
)

// startForm is the start argument of consume, parsed.
type startForm struct {
	kind startKind
	n    int64
	time time.Time
	at   sdk.Position
	text string
}

func (s startForm) String() string { return s.text }

func parseStart(text string, now time.Time) (startForm, error) {
	s := startForm{text: text}
	bad := func() (startForm, error) {
		err := usagef("%q is not a place to start", text)
		if best := suggest(text, []string{"earliest", "latest"}); best != "" {
			return s, err.WithHint("did you mean %q?", best)
		}
		return s, err.WithHint("use earliest, latest, an offset N, +N, -N, @TIME or r1:N")
	}
	var err error
	switch rangeName, offset, isRange := strings.Cut(text, ":"); {
	case text == "earliest":
		s.kind = startEarliest
	case text == "latest":
		s.kind = startLatest
	case text == "committed":
		return s, usagef("start committed needs a consumer group, and this command reads without one").WithHint("use earliest, latest, an offset N, +N, -N, @TIME or r1:N")
	case strings.HasPrefix(text, "@"):
		s.kind = startTime
		if s.time, err = term.ParseTime(text[1:], now); err != nil {
			return s, usagef("%s", describe(err).Message)
		}
	case isRange && strings.HasPrefix(text, "r"):
		s.kind = startRange
		if s.at.Range, err = sdk.ParseRangeID(rangeName); err != nil {
			return bad()
		}
		if s.at.Offset, err = parseOffset(offset); err != nil {
			return bad()
		}
	default:
		s.kind = startOffset
		digits := text
		switch {
		case strings.HasPrefix(text, "+"):
			s.kind, digits = startAfter, text[1:]
		case strings.HasPrefix(text, "-"):
			s.kind, digits = startBefore, text[1:]
		}
		if s.n, err = parseOffset(digits); err != nil {
			return bad()
		}
	}
	return s, nil
}

func parseOffset(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// untilForm is --until, parsed. Without it the end as it is now is the end, unless -f.
type untilForm struct {
	latest bool
	offset int64 // -1 = none
	time   time.Time
}

func parseUntil(text string, now time.Time) (untilForm, error) {
	u := untilForm{offset: -1}
	var err error
	switch {
	case text == "":
	case text == "latest":
		u.latest = true
	case strings.HasPrefix(text, "@"):
		if u.time, err = term.ParseTime(text[1:], now); err != nil {
			return u, flagValueError("until", err)
		}
	default:
		if u.offset, err = parseOffset(text); err != nil {
			return u, usagef("--until %q is not latest, an offset or @TIME", text)
		}
	}
	return u, nil
}

type offsetFinder interface {
	Offsets(ctx context.Context, topic string, at sdk.Start) ([]sdk.Position, error)
}

// consumePlan is what the forms mean for the SDK.
type consumePlan struct {
	options []sdk.ConsumerOption
	until   *untilTracker
}

// smallCount is the count up to which a consume fetches little ahead.
const smallCount = 1000

func (o *consumeOptions) plan(ctx context.Context, admin offsetFinder) (consumePlan, error) {
	var p consumePlan
	ctx, cancel := o.answerIn(ctx)
	defer cancel()
	// Asked in any case: a stream that times out has ended well, so a broker that does not answer and a topic or
	// range that does not exist must be found before it begins.
	first, err := o.positions(ctx, admin, sdk.Earliest())
	if err != nil {
		return p, err
	}
	start, err := o.resolveStart(ctx, admin, first)
	if err != nil {
		return p, err
	}
	p.options = []sdk.ConsumerOption{sdk.WithTopics(o.topic), sdk.WithStart(start)}
	if len(o.ranges) > 0 {
		p.options = append(p.options, sdk.WithRanges(o.topic, o.ranges...))
	}
	if !o.follow || o.until.latest {
		p.options = append(p.options, sdk.WithStop(sdk.StopAtEnd()))
	}
	if o.count > 0 && o.count <= smallCount {
		p.options = append(p.options, sdk.WithRangeMaxBytes(256<<10), sdk.WithPrefetchBytes(1<<20))
	}
	if o.until.offset >= 0 || !o.until.time.IsZero() {
		ends, err := o.positions(ctx, admin, sdk.Latest())
		if err != nil {
			return p, err
		}
		p.until = newUntilTracker(o.until, ends)
	}
	return p, nil
}

// resolveStart turns the forms that count records into positions, range by range.
func (o *consumeOptions) resolveStart(ctx context.Context, admin offsetFinder, first []sdk.Position) (sdk.Start, error) {
	switch o.start.kind {
	case startEarliest:
		return sdk.Earliest(), nil
	case startLatest:
		return sdk.Latest(), nil
	case startTime:
		return sdk.AtTime(o.start.time), nil
	case startOffset, startAfter, startBefore, startRange:
	}
	ends, err := o.positions(ctx, admin, sdk.Latest())
	if err != nil {
		return nil, err
	}
	end := make(map[sdk.RangeID]int64, len(ends))
	for _, p := range ends {
		end[p.Range] = p.Offset
	}
	at := make([]sdk.Position, len(first))
	for i, p := range first {
		if at[i], err = o.start.within(p, end[p.Range], len(first) == 1); err != nil {
			return nil, err
		}
	}
	return sdk.AtPositions(at...), nil
}

// within is where to start in a range that holds [first, end). A plain offset is meant exactly when there is one
// range; of several, which have offsets of their own, each starts as near to it as it can.
func (s startForm) within(first sdk.Position, end int64, alone bool) (sdk.Position, error) {
	at := first
	switch s.kind {
	case startAfter:
		at.Offset = min(first.Offset+s.n, end)
		return at, nil
	case startBefore:
		at.Offset = max(first.Offset, end-s.n)
		return at, nil
	case startRange:
		at.Offset = s.at.Offset
	default:
		if at.Offset = s.n; !alone {
			at.Offset = min(max(first.Offset, s.n), end)
		}
	}
	if at.Offset < first.Offset || at.Offset > end {
		return at, errorf(sdk.CodeOffsetOutOfRange, "offset %d is not in range %s, which holds offsets from %d to below %d", at.Offset, at.Range, first.Offset, end)
	}
	return at, nil
}

// positions asks for the ranges that are read.
func (o *consumeOptions) positions(ctx context.Context, admin offsetFinder, at sdk.Start) ([]sdk.Position, error) {
	all, err := admin.Offsets(ctx, o.topic, at)
	if err != nil || len(o.ranges) == 0 {
		return all, err
	}
	var some []sdk.Position
	for _, id := range o.ranges {
		found := false
		for _, p := range all {
			if p.Range == id {
				some, found = append(some, p), true
			}
		}
		if !found {
			return nil, errorf(sdk.CodeRangeNotFound, "topic %q has no range %s", o.topic, id)
		}
	}
	return some, nil
}

// untilTracker notes which ranges have come as far as --until asks.
type untilTracker struct {
	form untilForm
	open map[sdk.RangeID]bool
}

func newUntilTracker(form untilForm, ranges []sdk.Position) *untilTracker {
	t := &untilTracker{form: form, open: make(map[sdk.RangeID]bool, len(ranges))}
	for _, p := range ranges {
		t.open[p.Range] = true
	}
	return t
}

// beyond reports whether m lies at or above the limit. A nil tracker has no limit.
func (t *untilTracker) beyond(m *sdk.Message) bool {
	if t == nil {
		return false
	}
	over := t.form.offset >= 0 && m.Offset >= t.form.offset || !t.form.time.IsZero() && !m.Timestamp.Before(t.form.time)
	if over || t.form.offset >= 0 && m.Offset == t.form.offset-1 {
		delete(t.open, m.Range)
	}
	return over
}

// allDone reports whether every range that was there at the start has reached the limit.
func (t *untilTracker) allDone() bool { return t != nil && len(t.open) == 0 }
