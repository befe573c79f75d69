package storetest

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

const tick = 100 * time.Millisecond

// Stream is all that a feed would say of such a cluster, in the order of time.
func Stream(o Options) iter.Seq[store.Message] {
	o.ensureDefaults()
	return func(yield func(store.Message) bool) {
		w := newWorld(o)
		for _, m := range w.beginning() {
			if !yield(m) {
				return
			}
		}
		for at := time.Duration(0); at < o.Length; at += tick {
			w.now = o.Start.Add(at)
			for _, m := range w.step(at) {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Messages are all of a stream.
func Messages(o Options) []store.Message { return slices.Collect(Stream(o)) }

// View is what a store shows at a time from the start of a stream.
func View(o Options, at time.Duration) *store.View {
	o.ensureDefaults()
	s := store.New(store.Options{History: -1})
	until := o.Start.Add(at)
	for m := range Stream(o) {
		if m.Time.After(until) {
			break
		}
		s.Apply(m)
	}
	return s.View(until)
}

func (w *world) beginning() []store.Message {
	list := &sdk.NodeList{ObservedMs: w.now.UnixMilli()}
	for _, n := range w.nodes {
		st := w.self(n)
		st.RttUs, st.UptimeMs = int64(300+w.rnd.IntN(400)), w.now.Sub(n.started).Milliseconds()
		list.Nodes = append(list.Nodes, st)
	}
	out := []store.Message{
		{Time: w.now, Hello: &store.Hello{Cluster: "6a1f0c52", Context: "prod-eu", Seeds: []string{"10.0.0.11:2921"}, Version: "v0.9.1"}},
		{Time: w.now, Nodes: list},
	}
	for _, n := range w.nodes {
		out = append(out, w.stateOf(n))
	}
	return append(out, w.lists()...)
}

func (w *world) self(n *node) sdk.NodeStatus {
	return sdk.NodeStatus{
		ID: n.id, Boot: n.boot, Address: fmt.Sprintf("10.0.%d.%d:2921", n.i/200, 11+n.i%200), State: "alive", Status: "normal",
		Rack: "eu-" + string(rune('a'+n.i%3)), Version: "v0.9.1", Admitted: true, Vnodes: 256, OwnsPerMillion: w.owns(n.i),
	}
}

func (w *world) owns(i int) int {
	share := 1_000_000 / len(w.nodes)
	return share - share/40 + (i*7919)%(share/20+1)
}

func (w *world) stateOf(n *node) store.Message {
	st := &sdk.NodeState{Self: w.self(n), RingHash: w.ring, RingVersion: w.ringVersion}
	for j, m := range w.nodes {
		b := n.believes[j]
		st.Members = append(st.Members, sdk.RingMember{
			Node: m.id, State: b.state, Status: "normal", Boot: b.boot, Vnodes: 256, OwnsPerMillion: w.owns(j), SinceMs: b.since.UnixMilli(), Rack: "eu-" + string(rune('a'+j%3)),
		})
	}
	for _, sh := range w.shards {
		if !slices.Contains(sh.voters, n.i) {
			continue
		}
		st.Self.Replicas++
		s := sdk.ShardStatus{ID: sh.id, State: "ok", Term: sh.term, Want: min(3, len(w.nodes)), Hosted: true, SinceMs: sh.since.UnixMilli()}
		if sh.leader >= 0 {
			s.Leader = w.nodes[sh.leader].id
		} else {
			s.State = "no_leader"
		}
		if sh.leader == n.i {
			st.Self.ShardLeaders++
		}
		for _, v := range sh.voters {
			s.Voters = append(s.Voters, w.nodes[v].id)
		}
		st.Shards = append(st.Shards, s)
	}
	return store.Message{Time: w.now, Node: n.id, Boot: n.boot, State: st}
}

// lists are what a feed asks for by what is on the screen: here the topics, the hottest ones' ranges, and totals.
func (w *world) lists() []store.Message {
	page := &store.TopicPage{Complete: true}
	totals := &store.Totals{Topics: len(w.topics), Groups: len(w.groups)}
	for _, t := range w.topics {
		s := w.summary(t)
		totals.Ranges, totals.Segments = totals.Ranges+s.Ranges, totals.Segments+s.Segments
		totals.Records, totals.Bytes = totals.Records+s.Records, totals.Bytes+s.Bytes
		page.Topics = append(page.Topics, s)
	}
	totals.UnderReplicated = len(w.damaged)
	out := []store.Message{{Time: w.now, Topics: page}, {Time: w.now, Totals: totals}, {Time: w.now, Health: w.health()}}
	ranges := 0
	for _, t := range w.topics[:min(4, len(w.topics))] {
		if ranges += len(t.ranges); ranges > 2000 && t != w.topics[0] {
			break // more than any screen asks for
		}
		out = append(out, store.Message{Time: w.now, Topic: w.detail(t)})
	}
	return out
}

func (w *world) summary(t *topic) sdk.TopicSummary {
	s := sdk.TopicSummary{
		ID: t.id, Name: t.name, Version: 40, State: 1, ReplicationFactor: min(3, len(w.nodes)), Ranges: len(t.ranges),
		RetentionMs: (72 * time.Hour).Milliseconds(), CreatedMs: t.created.UnixMilli(), Shard: t.shard.id,
	}
	if t.shard.leader >= 0 {
		s.ShardLeader = w.nodes[t.shard.leader].id
	}
	for _, r := range t.ranges {
		s.InBytesPerSec += int64(r.rate)
		s.InRecordsPerSec += int64(r.rate / recordSize)
		s.Segments += 12 + len(r.olds)
		s.Bytes += 12<<30 + r.bytes
		s.Records += r.offset
	}
	return s
}

func (w *world) detail(t *topic) *sdk.TopicDetail {
	d := &sdk.TopicDetail{Summary: w.summary(t), Copies: min(3, len(w.nodes))}
	for _, r := range append(slices.Clone(t.past), t.ranges...) {
		rd := sdk.RangeDetail{
			ID: r.id, State: 1, Parents: r.parents, Children: r.children, End: r.offset, Records: r.offset, Bytes: r.bytes, CreatedMs: r.created.UnixMilli(), Load: r.load,
			InBytesPerSec: int64(r.rate), InRecordsPerSec: int64(r.rate / recordSize), Leader: w.nodes[r.replicas[0]].id,
		}
		rd.Span.Start, rd.Span.End = r.start, r.end
		rd.Segments = append(rd.Segments, r.olds...)
		if r.sealed.IsZero() {
			seg := sdk.SegmentDetail{ID: r.segment, State: 1, Base: r.base, End: r.offset, Bytes: r.bytes, CreatedMs: r.opened.UnixMilli(), Copies: len(r.replicas)}
			for i, n := range r.replicas {
				seg.Replicas = append(seg.Replicas, sdk.ReplicaDetail{Node: w.nodes[n].id, State: []string{"leader", "in_sync"}[min(i, 1)], DurableEnd: r.offset})
			}
			rd.Segments = append(rd.Segments, seg)
		} else {
			rd.State, rd.SealedMs, rd.Leader, rd.InBytesPerSec, rd.InRecordsPerSec = 2, r.sealed.UnixMilli(), "", 0, 0
		}
		d.Ranges = append(d.Ranges, rd)
	}
	return d
}

func (w *world) health() *sdk.ClusterHealth {
	check := func(id, name, detail string, bad bool) sdk.HealthCheck {
		c := sdk.HealthCheck{ID: id, Name: name, Detail: detail}
		if bad {
			c.Result = sdk.HealthWarn
		}
		return c
	}
	dead := 0
	for _, n := range w.nodes {
		if !n.up {
			dead++
		}
	}
	leaderless := 0
	for _, sh := range w.shards {
		if sh.leader < 0 {
			leaderless++
		}
	}
	return &sdk.ClusterHealth{Observer: w.nodes[0].id, ObservedMs: w.now.UnixMilli(), Nodes: len(w.nodes) - dead, Checks: []sdk.HealthCheck{
		check("EG101", "membership", fmt.Sprintf("%d known, %d alive", len(w.nodes), len(w.nodes)-dead), dead > 0),
		check("EG102", "view agreement", "all nodes report the same ring", false),
		check("EG103", "shards", fmt.Sprintf("%d/%d have a leader", len(w.shards)-leaderless, len(w.shards)), leaderless > 0),
		check("EG104", "replication", fmt.Sprintf("%d segments below their factor", len(w.damaged)), len(w.damaged) > 0),
		check("EG105", "disk", "max 44%", false),
	}}
}

func (w *world) event(n *node, kind, subject, cause string, gapMs int64, before, after string, words ...string) store.Message {
	n.seq++
	e := &sdk.Event{
		Seq: n.seq, TimeMs: w.now.UnixMilli(), Node: n.id, Type: kind, Subject: subject, Cause: cause, GapMs: gapMs, Before: before, After: after,
		Detail: strings.Join(words, " "),
	}
	return store.Message{Time: w.now, Node: n.id, Boot: n.boot, Event: e}
}
