package dataplane

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

// lead is one segment being led.
type lead struct {
	seg     base.SegmentID
	epoch   base.Epoch
	replica *replica.Leader[*batch]
	state   *rangestate.State
	bytes   int64
	credit  int64 // bytes in flight, as counted over the whole node
	times
	usedAt  time.Time
	beganAt time.Time // that this lead, or this stretch of it, began
	traced  []*batch  // in flight, whose way somebody wants to know; mostly none

	beginning
	followers []follower
}

// beginning is what followers are told of a segment's beginning, and what stays so until its end.
type beginning struct {
	nodes    []base.NodeID // the replicas, this one first; answers share it
	memory   bool          // durability=replicated: an ack promises memory on every replica, not disks
	checksum uint64        // of what the range remembers at the base
	state    []byte        // that, encoded; nil when it is empty, or when every follower has opened the segment
}

// follower is what is known of one follower beside what package replica keeps. It outlives a leader that rests.
type follower struct {
	node    base.NodeID
	boot    uint64 // the start of the node that was placed; 0: whichever is met first
	session uint64 // the connection by which it was last told of the segment; 0: none yet
	down    bool   // that has ended, and there is no other yet
	heard   bool   // it has answered on that
	lost    bool   // it never will again
	silent  bool   // lost, without a word of it or of its port
	asks    bool   // for the state too

	sent, acked int64     // ends
	nudgedAt    time.Time // when it was last told of the segment, was heard, or was asked whether something is missing
	nudges      int       // without an answer
	stuck       int64     // the queue to it had no room for the batch at this offset, nor for those behind; -1: it had

	timed   int64     // end of the one batch in flight whose way to the ack is measured; 0: none
	timedAt time.Time // when that was sent
}

// newLead is the leader of the actor's current segment, which has just been opened here.
func (a *actor) newLead(state *rangestate.State, encoded []byte, now time.Time) *lead {
	l := &lead{
		state: state, times: successorOf(a.rest.times, now),
		replica: replica.NewLeader[*batch](a.replicaConfig()),
		beginning: beginning{
			nodes: []base.NodeID{a.plane.o.Node}, memory: isMemory(&a.current), checksum: state.Checksum(), state: encoded,
		},
	}
	for i, r := range a.current.Replicas[1:] {
		l.nodes = append(l.nodes, r.Node)
		l.followers = append(l.followers, follower{node: r.Node, boot: bootOf(a.current.Boots, i+1), stuck: -1, sent: a.current.Base, acked: a.current.Base})
	}
	return l
}

// bootOf is the start of the i-th replica's node that was placed; 0 when that is not known.
func bootOf(boots []uint64, i int) uint64 {
	if i >= len(boots) {
		return 0
	}
	return boots[i]
}

func (a *actor) replicaConfig() replica.Config {
	o := &a.plane.o
	c := replica.Config{Self: o.Node, Base: a.current.Base, Credit: o.CreditBytes, Timeout: o.ReplicaTimeout, ReAsk: reAsk}
	for _, r := range a.current.Replicas[1:] {
		c.Followers = append(c.Followers, r.Node)
	}
	return c
}

// takeLead begins to lead the current segment, or goes on with it. The followers are told.
func (a *actor) takeLead(l *lead, now time.Time) {
	l.seg, l.epoch = a.current.Segment, a.current.Epoch
	l.usedAt, l.beganAt = now, now
	a.lead = l
	for i := range l.followers {
		if f := &l.followers[i]; f.lost { // before the leader rested
			l.replica.FollowerLost(f.node, now)
		}
	}
	a.plane.leadsWith(a, l.followers)
	a.onLinks(now)
}

// dropLead lets the leader go: its segment has ended, or it rests.
func (a *actor) dropLead() {
	if a.lead == nil {
		return
	}
	a.plane.leadsNoMore(a, a.lead.followers)
	a.plane.repay(a.lead, a.lead.credit)
	a.lead = nil
}

// retire gives a leader's memory back. The next append brings it up again.
func (a *actor) retire() {
	l := a.lead
	a.rest = resting{next: l.replica.Next(), bytes: l.bytes, times: l.times, beginning: l.beginning, followers: l.followers}
	a.dropLead()
}

// resume brings a retired leader up again, within the same process start. What became of the links meanwhile is found
// out as for a new one. The state of a segment that has not ended is in the log's memory.
func (a *actor) resume(now time.Time) bool {
	state, err := a.plane.log.RangeState(a.current.Segment)
	if err != nil {
		a.plane.o.Logger.Error("range state not readable", "range", a.ref.String(), "segment", a.current.Segment.String(), "error", err)
		return false
	}
	state.Commit(a.rest.next)
	a.takeLead(&lead{
		state: state, bytes: a.rest.bytes, times: a.rest.times, beginning: a.rest.beginning, followers: a.rest.followers,
		replica: replica.Resume[*batch](a.replicaConfig(), a.rest.next),
	}, now)
	a.schedule()
	return true
}

// follower finds what is known of a node, nil when it is no follower.
func (l *lead) follower(node base.NodeID) *follower {
	i := slices.IndexFunc(l.followers, func(f follower) bool { return f.node == node })
	if i < 0 {
		return nil
	}
	return &l.followers[i]
}

// ackers are the replicas that have acked what lies below end, which is committed: all of them. But where a segment has ended
// above what was acked here, because fenced copies held more, some may never have said so.
func (a *actor) ackers(end int64) []base.NodeID {
	l := a.lead
	if l.replica.State() != replica.Sealed {
		return l.nodes
	}
	var nodes []base.NodeID
	if info, ok := a.plane.log.Info(l.seg); ok && (l.memory || info.DurableEnd >= end) {
		nodes = append(nodes, a.plane.o.Node)
	}
	for i := range l.followers {
		if f := &l.followers[i]; f.acked >= end {
			nodes = append(nodes, f.node)
		}
	}
	return nodes
}

// restless reports whether some follower is to be told something again that it has not answered, or could not be told.
func (l *lead) restless() bool {
	return slices.ContainsFunc(l.followers, func(f follower) bool { return !f.lost && (!f.heard || f.stuck >= 0) })
}
