package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// incident is what goes wrong, and what is done about it.
func (w *world) incident(at time.Duration) (out []store.Message) {
	switch at {
	case SplitAt:
		return w.split()
	case MergeAt:
		return w.merge()
	case RebalanceAt:
		return w.rebalance()
	case KillAt:
		return w.kill()
	case SuspectAt:
		return w.suspect()
	case DeadAt:
		return w.dead()
	case RepairAt:
		return w.beginRepair()
	case RepairedAt:
		return w.endRepair()
	case ReturnAt:
		return w.comeBack()
	}
	if at > SuspectAt && at < DeadAt {
		return w.replaceVictim(at)
	}
	return nil
}

func (w *world) victim() *node {
	id := w.o.Victim()
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return w.nodes[0]
}

func (w *world) split() []store.Message {
	t := w.topics[0]
	i := len(t.ranges) / 2
	p := t.ranges[i]
	mid := p.start + (p.end-p.start)/2
	teller := w.teller(t.shard)
	p.sealed, p.cause = w.now, "DATA_PRESSURE"
	w.retire(p)
	t.ranges = slices.Delete(t.ranges, i, i+1)
	a, b := w.newRange(t, p.start, mid), w.newRange(t, mid, p.end)
	for _, c := range []*rng{a, b} {
		c.rate, c.load, c.parents, c.created, c.opened, c.bytes, c.streak = p.rate/2, "unknown", []sdk.RangeID{p.id}, w.now, w.now, 0, 0
	}
	p.children = []sdk.RangeID{a.id, b.id}
	t.past = append(t.past, p)
	return []store.Message{w.event(teller, sdk.EventRangeSplit, t.name+"/"+p.id.String(), "DATA_PRESSURE", 0, "", "",
		fmt.Sprintf("at=%#016x children=%s,%s shard=%s streak=3", mid, a.id, b.id, t.shard.id))}
}

// retire takes a range from its leader.
func (w *world) retire(r *rng) {
	list := w.byNode[r.replicas[0]]
	w.byNode[r.replicas[0]] = slices.DeleteFunc(list, func(o *rng) bool { return o == r })
}

func (w *world) merge() []store.Message {
	t := w.topics[len(w.topics)-1]
	for _, other := range w.topics {
		if len(other.ranges) >= 2 && len(other.ranges) <= max(len(t.ranges), 4) && other != w.topics[0] {
			t = other
		}
	}
	if len(t.ranges) < 2 {
		return nil
	}
	a, b := t.ranges[0], t.ranges[1]
	teller := w.teller(t.shard)
	t.ranges = t.ranges[2:]
	c := w.newRange(t, a.start, b.end)
	c.rate, c.load, c.parents, c.created, c.opened, c.bytes = a.rate+b.rate, "unknown", []sdk.RangeID{a.id, b.id}, w.now, w.now, 0
	for _, p := range []*rng{a, b} {
		p.sealed, p.cause, p.children = w.now, "MERGE", []sdk.RangeID{c.id}
		w.retire(p)
		t.past = append(t.past, p)
	}
	return []store.Message{w.event(teller, sdk.EventRangeMerged, t.name+"/"+c.id.String(), "IDLE", 0, "", "",
		fmt.Sprintf("parents=%s,%s shard=%s", a.id, b.id, t.shard.id))}
}

func (w *world) rebalance() (out []store.Message) {
	if len(w.groups) == 0 || len(w.groups[0].Members) == 0 {
		return nil
	}
	g := w.groups[0]
	gone := &g.Members[len(g.Members)-1]
	gone.Evicted, gone.SinceMs = "sequence stalled 3s", w.now.UnixMilli()
	moved := len(gone.Ranges)
	gone.Ranges = nil
	g.Generation++
	n := w.nodes[0]
	return []store.Message{
		w.event(n, sdk.EventGroupMember, g.Group, "", 0, "", "evicted", `detail="sequence stalled 3s" member=`+gone.Name),
		w.event(n, sdk.EventGroupGeneration, g.Group, "", 210, fmt.Sprint(g.Generation-1), fmt.Sprint(g.Generation), fmt.Sprintf("members=%d moved=%d", len(g.Members)-1, moved)),
	}
}

func (w *world) kill() []store.Message {
	v := w.victim()
	v.up = false
	return []store.Message{{Time: w.now, Node: v.id, Stream: &store.Stream{State: store.StreamLost, Error: "read: connection reset by peer"}}}
}

// spread has all living nodes believe something of the victim, and say so.
func (w *world) spread(state, kind string) (out []store.Message) {
	v := w.victim()
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		before := n.believes[v.i].state
		n.believes[v.i] = belief{state, v.boot, w.now}
		out = append(out, w.event(n, kind, string(v.id), "", 0, before, state, fmt.Sprintf("boot=%d", v.boot)), w.stateOf(n))
	}
	return out
}

func (w *world) suspect() []store.Message { return w.spread("suspect", "NODE_SUSPECT") }

func (w *world) dead() []store.Message {
	w.ringVersion++
	w.ring ^= 0x1111
	return w.spread("dead", "NODE_DEAD")
}

// replaceVictim moves what the victim led, a part in each tick: shards first, then ranges.
func (w *world) replaceVictim(at time.Duration) (out []store.Message) {
	v := w.victim()
	told := map[int]bool{}
	for _, sh := range w.shards {
		if sh.leader != v.i || w.rnd.IntN(3) != 0 {
			continue
		}
		for _, voter := range sh.voters {
			if w.nodes[voter].up {
				sh.leader = voter
				break
			}
		}
		if sh.leader == v.i {
			sh.leader = -1
			continue
		}
		sh.term++
		sh.since = w.now
		n := w.nodes[sh.leader]
		told[n.i] = true
		out = append(out, w.event(n, "LEADER_CHANGED", "shard "+sh.id.String(), "", (at-KillAt).Milliseconds(), string(v.id), string(n.id), fmt.Sprintf("term=%d", sh.term)))
	}
	for i := range w.nodes {
		if told[i] {
			out = append(out, w.stateOf(w.nodes[i]))
		}
	}
	moved := 0
	for _, t := range w.topics {
		for _, r := range t.ranges {
			if moved >= 1+len(w.topics)/4 {
				return out
			}
			if i := slices.Index(r.replicas, v.i); i >= 0 {
				moved++
				cause := "REPLICA_FAILURE"
				if i == 0 {
					cause = "LEADER_FAILURE"
				}
				out = append(out, w.roll(r, cause, 90+int64(w.rnd.IntN(60)), w.without(r.replicas, v.i))...)
			}
		}
	}
	return out
}

// without is replicas with another node in the place of one.
func (w *world) without(replicas []int, gone int) []int {
	list := slices.DeleteFunc(slices.Clone(replicas), func(i int) bool { return i == gone })
	for i := range w.nodes {
		n := (gone + 1 + i) % len(w.nodes)
		if w.nodes[n].up && !slices.Contains(list, n) {
			return append(list, n)
		}
	}
	return list
}

func (w *world) beginRepair() (out []store.Message) {
	w.repairs = w.repairs[:min(len(w.repairs), 12)]
	if len(w.nodes) < 3 {
		w.repairs = nil // there is nowhere to
	}
	for _, p := range w.repairs {
		p.from, p.to = w.now, w.now.Add(RepairedAt-RepairAt)
		p.target = w.without([]int{p.source}, w.victim().i)[1]
		out = append(out, w.event(w.nodes[p.target], sdk.EventRepairStarted, p.r.topic.name+"/"+p.r.id.String(), "RECOVERY", 0, "", "",
			fmt.Sprintf("bytes=%d segment=%s source=%s target=%s", p.total, p.old, w.nodes[p.source].id, w.nodes[p.target].id)))
	}
	return out
}

func (w *world) endRepair() (out []store.Message) {
	for _, p := range w.repairs {
		out = append(out, w.event(w.nodes[p.target], sdk.EventSegmentRepaired, p.r.topic.name+"/"+p.r.id.String(), "RECOVERY", 0, "", "",
			fmt.Sprintf("bytes=%d segment=%s source=%s target=%s took=9s", p.total, p.old, w.nodes[p.source].id, w.nodes[p.target].id)))
		for _, t := range w.topics {
			for _, r := range t.ranges {
				for i := range r.olds {
					if r.olds[i].ID == p.old {
						r.olds[i].Copies = len(r.olds[i].Replicas)
					}
				}
			}
		}
	}
	w.repairs, w.damaged = nil, nil
	return out
}

func (w *world) comeBack() (out []store.Message) {
	v := w.victim()
	v.up, v.started, v.seq, v.logSeq, v.in, v.out, v.hits = true, w.now, 0, 0, 0, 0, 0
	v.boot++
	for i := range v.believes {
		v.believes[i] = belief{"alive", w.nodes[i].boot, w.now}
	}
	w.ringVersion++
	w.ring ^= 0x1111
	out = append(out, store.Message{Time: w.now, Node: v.id, Boot: v.boot, Stream: &store.Stream{State: store.StreamLive}},
		store.Message{Time: w.now, Node: v.id, Boot: v.boot, Gap: &store.Gap{Over: true, Restarted: true}},
		w.event(v, "NODE_STARTED", string(v.id), "", 0, "", "", fmt.Sprintf("boot=%d version=v0.9.1", v.boot)), w.stateOf(v))
	return append(out, w.spread("alive", "NODE_JOINED")...)
}
