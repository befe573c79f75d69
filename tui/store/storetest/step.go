package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// step is what is said in one tick.
func (w *world) step(at time.Duration) (out []store.Message) {
	slot := int(at/tick) % int(time.Second/tick)
	for i, n := range w.nodes {
		if n.up && i%int(time.Second/tick) == slot {
			out = append(out, w.countersOf(n))
		}
	}
	if w.o.Storm {
		out = append(out, w.storm(slot, int(time.Second/tick))...)
	}
	if slot == 3 && !w.o.Calm {
		out = append(out, w.rolls()...)
		out = append(out, w.logs()...)
	}
	if at > 0 && at%(5*time.Second) == 0 {
		out = append(out, w.lists()...)
	}
	if w.o.Quiet {
		return out
	}
	return append(out, w.incident(at)...)
}

// busiest is how many ranges a node counts one by one.
const busiest = 50

func (w *world) countersOf(n *node) store.Message {
	ranges := w.byNode[n.i]
	wave, wobble, spreads := 1+0.25*math.Sin(float64(w.now.Unix()%60)/60*2*math.Pi+float64(n.i)), 0.1, int64(4)
	if w.o.Calm {
		wave, wobble, spreads = 1, 0.06, 16
	}
	c := &sdk.NodeCounters{ObservedMs: w.now.UnixMilli() + int64(n.i%5) - 2, WindowMs: 10_000, WalFiles: 3, WalBytes: 192 << 20, DiskTotal: 4 << 40, Connections: 40 + n.i}
	slices.SortStableFunc(ranges, func(a, b *rng) int { return int(b.rate - a.rate) })
	alone := busiest
	if w.o.Storm {
		wobble, alone = 1.5, len(ranges)
	}
	c.Others = make([]int, 7)
	for i, r := range ranges {
		rate := int64(r.rate * wave * (1 - wobble/2 + wobble*w.rnd.Float64()))
		r.bytes += rate
		r.offset += rate / recordSize
		c.InBytesPerSec += rate
		if i >= alone {
			c.Others[decade(rate)]++
			continue
		}
		rc := sdk.RangeCounters{
			Topic: r.topic.name, TopicID: r.topic.id, Range: r.id, InBytesPerSec: rate, InRecordsPerSec: rate / recordSize, Load: r.load, Streak: r.streak,
			Segment: r.segment, SegmentBytes: r.bytes, End: r.offset,
		}
		rc.Span.Start, rc.Span.End = r.start, r.end
		c.Ranges = append(c.Ranges, rc)
	}
	c.OutBytesPerSec, c.InRecordsPerSec = c.InBytesPerSec*3, c.InBytesPerSec/recordSize
	c.OutRecordsPerSec = c.InRecordsPerSec * 3
	n.in, n.out, n.hits = n.in+uint64(c.InBytesPerSec), n.out+uint64(c.OutBytesPerSec), n.hits+1000
	c.InBytes, c.OutBytes, c.CacheHits, c.CacheMisses = n.in, n.out, n.hits, n.hits/120
	c.InRecords, c.OutRecords = n.in/recordSize, n.out/recordSize
	c.BatchesPerSec, c.BatchRecords, c.BatchBytes = c.InRecordsPerSec/8000+1, 8000, 8000*recordSize
	c.Leaders, c.Followers, c.Segments = len(ranges), 2*len(ranges), 40*len(ranges)
	c.DiskUsed = c.DiskTotal / 100 * int64(39+n.i%6)
	spread := func(p50 int64) sdk.Quantiles {
		p50 += int64(w.rnd.IntN(int(p50/spreads) + 1))
		return sdk.Quantiles{Count: uint64(c.BatchesPerSec * 10), P50Us: p50, P90Us: p50 * 19 / 10, P99Us: p50 * 27 / 10, P999Us: p50 * 7, MaxUs: p50 * 10}
	}
	c.Ack, c.Fsync, c.Replicate = spread(2800), spread(1100), spread(1900)
	c.SealGap = spread(80_000)
	c.SealGap.Count = 4
	for i, g := range w.groups {
		if i%len(w.nodes) == n.i {
			c.Groups = append(c.Groups, w.groupNow(g))
		}
	}
	for _, p := range w.repairs {
		if p.target == n.i && w.now.Before(p.to) && !w.now.Before(p.from) {
			done := int64(float64(p.total) * float64(w.now.Sub(p.from)) / float64(p.to.Sub(p.from)))
			c.Repairs = append(c.Repairs, sdk.RepairProgress{
				Segment: p.old, Topic: p.r.topic.name, Range: p.r.id, Source: w.nodes[p.source].id, Target: n.id, Bytes: done, Total: p.total,
				BytesPerSec: int64(float64(p.total) / p.to.Sub(p.from).Seconds()), StartedMs: p.from.UnixMilli(),
			})
		}
	}
	return store.Message{Time: w.now, Node: n.id, Boot: n.boot, Counters: c}
}

func decade(rate int64) int {
	if rate <= 0 {
		return 0
	}
	d := 1
	for bound := int64(1000); rate >= bound && d < 6; bound *= 10 {
		d++
	}
	return d
}

func (w *world) groupNow(g *sdk.GroupCounters) sdk.GroupCounters {
	g.Lag = max(g.Lag+int64(w.rnd.IntN(601))-300, 0)
	now := *g
	now.Members = slices.Clone(g.Members)
	for i := range now.Members {
		if now.Members[i].Evicted == "" {
			g.Members[i].Sequence++
			now.Members[i].Sequence++
			now.Members[i].HeardMs = w.now.UnixMilli() - int64(w.rnd.IntN(900))
		}
	}
	return now
}

// rolls ends a few segments because they are full.
func (w *world) rolls() (out []store.Message) {
	for range max(len(w.nodes)/30, 1) {
		t := w.topics[w.rnd.IntN(min(len(w.topics), 20))]
		r := t.ranges[w.rnd.IntN(len(t.ranges))]
		if w.allUp(r) {
			out = append(out, w.roll(r, "DATA_PRESSURE", int64(60+w.rnd.IntN(60)), r.replicas)...)
		}
	}
	return out
}

func (w *world) allUp(r *rng) bool {
	for _, i := range r.replicas {
		if !w.nodes[i].up {
			return false
		}
	}
	return true
}

// roll seals the active segment of a range and goes on in another.
func (w *world) roll(r *rng, cause string, gapMs int64, replicas []int) []store.Message {
	teller := w.teller(r.topic.shard)
	old := sdk.SegmentDetail{ID: r.segment, State: 2, Base: r.base, End: r.offset, Bytes: r.bytes, CreatedMs: r.opened.UnixMilli(), SealedMs: w.now.UnixMilli(), Copies: len(r.replicas)}
	for i, n := range r.replicas {
		if state := "in_sync"; w.nodes[n].up {
			old.Replicas = append(old.Replicas, sdk.ReplicaDetail{Node: w.nodes[n].id, State: state, DurableEnd: r.offset})
		} else {
			old.Replicas = append(old.Replicas, sdk.ReplicaDetail{Node: w.nodes[n].id, State: "no_answer"})
			old.Copies--
			w.repairs = append(w.repairs, &repair{r: r, old: r.segment, source: r.replicas[(i+1)%len(r.replicas)], total: r.bytes + 1<<20})
			w.damaged = append(w.damaged, r)
		}
	}
	if r.olds = append(r.olds, old); len(r.olds) > 4 {
		r.olds = r.olds[1:]
	}
	was, end, bytes := r.segment, r.offset, r.bytes
	w.lead(r, replicas)
	w.open(r)
	r.base, r.bytes, r.opened = end, 0, w.now
	names := ""
	for i, n := range replicas {
		if i > 0 {
			names += ","
		}
		names += string(w.nodes[n].id)
	}
	subject := r.topic.name + "/" + r.id.String()
	sealed := w.event(teller, "SEGMENT_SEALED", subject, cause, 0, "", "",
		fmt.Sprintf("bytes=%d end=%d next=%s replicas=%s segment=%s shard=%s", bytes, end, r.segment, names, was, r.topic.shard.id))
	opened := w.event(w.nodes[replicas[0]], "SEGMENT_OPENED", subject, cause, gapMs, "", "",
		fmt.Sprintf("base=%d previous=%s role=leader segment=%s", end, was, r.segment))
	return []store.Message{sealed, opened}
}

// teller is who leads a shard, or would.
func (w *world) teller(sh *shard) *node {
	if sh.leader >= 0 && w.nodes[sh.leader].up {
		return w.nodes[sh.leader]
	}
	for _, v := range sh.voters {
		if w.nodes[v].up {
			return w.nodes[v]
		}
	}
	for _, n := range w.nodes {
		if n.up {
			return n
		}
	}
	return w.nodes[0]
}

func (w *world) logs() []store.Message {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	if !n.up {
		return nil
	}
	n.logSeq++
	line := sdk.LogLine{Seq: n.logSeq, TimeMs: w.now.UnixMilli(), Level: "info", Message: "segment rolled", Attrs: []sdk.LogAttr{{Key: "segment", Value: w.nextSegment.String()}}}
	if w.rnd.IntN(8) == 0 {
		line.Level, line.Message, line.Attrs = "warn", "fsync was slow", []sdk.LogAttr{{Key: "took", Value: "480ms"}, {Key: "path", Value: "wal/000017"}}
	}
	return []store.Message{{Time: w.now, Node: n.id, Boot: n.boot, Logs: &store.LogPage{Lines: []sdk.LogLine{line}}}}
}
