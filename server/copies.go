package server

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// How many copies a segment has. Without asking anybody: those that metadata names on disks that are there. With the
// word of the nodes that hold them (see extents.go): those that are whole.

// copiesOf is how many copies each segment of a topic is to have.
func copiesOf(t *meta.Topic) int { return t.Config.ReplicationFactor }

// living are the places where a copy counts: the disks of the nodes that are alive, each with the start of its node.
type living map[base.Replica]uint64

func livingDisks(view topology.View) living {
	alive := make(living, len(view.Nodes))
	for i := range view.Nodes {
		if n := &view.Nodes[i]; n.Liveness == topology.Alive {
			alive[base.Replica{Node: n.ID, Disk: n.Disk}] = n.Boot
		}
	}
	return alive
}

func (l living) has(rep base.Replica) bool {
	_, ok := l[rep]
	return ok
}

// copies counts a segment's. A node that has started anew keeps what it had, and is no part of an active segment any
// more: what comes to that goes to the others alone.
func (l living) copies(seg *meta.Segment) int {
	n := 0
	for i, rep := range seg.Replicas {
		boot, ok := l[rep]
		if ok && (seg.State != base.StateActive || !restarted(seg, i, boot)) {
			n++
		}
	}
	return n
}

// lacks is how many copies a segment has too few. One that was sealed without a record has nothing to copy.
func (l living) lacks(t *meta.Topic, seg *meta.Segment) int {
	if seg.State == base.StateSealed && seg.Empty() {
		return 0
	}
	return max(copiesOf(t)-l.copies(seg), 0)
}

// restarted reports whether a replica's node has started anew since the segment was placed on it.
func restarted(seg *meta.Segment, i int, boot uint64) bool {
	return i < len(seg.Boots) && seg.Boots[i] != 0 && boot != 0 && boot != seg.Boots[i]
}

// replicaDetail is a replica as its node's own word shows it; without one, as metadata has it.
func replicaDetail(seg *meta.Segment, i int, h holding, answered bool) wire.ReplicaDetail {
	d := wire.ReplicaDetail{Node: seg.Replicas[i].Node, Disk: seg.Replicas[i].Disk}
	if !answered {
		d.State = wire.ReplicaNoAnswer
		return d
	}
	d.State = replicaState(seg, i, h)
	if h.held && d.State != wire.ReplicaMissing {
		d.DurableEnd = h.durable
	} else if d.State != wire.ReplicaMissing {
		d.DurableEnd = seg.Base
	}
	return d
}

// replicaState judges what a node says of its copy. A copy of an active segment that was not cut off cannot lack what
// is committed, for every ack waited for it; how far its end is above or below another's shows only who was asked first.
func replicaState(seg *meta.Segment, i int, h holding) string {
	active := seg.State == base.StateActive
	switch {
	case h.disk != seg.Replicas[i].Disk:
		return wire.ReplicaMissing
	case h.damaged: // which is worse than a restart
		return wire.ReplicaDamaged
	case active && restarted(seg, i, h.boot):
		return wire.ReplicaRestarted
	case !active && seg.Empty(): // nothing to hold
		return wire.ReplicaInSync
	case !active && !h.held:
		return wire.ReplicaMissing
	case !active && h.durable < seg.End:
		return wire.ReplicaBehind
	case active && i == 0:
		return wire.ReplicaLeader
	}
	return wire.ReplicaInSync
}

// wholeCopies counts the replicas that hold all of a segment.
func wholeCopies(replicas []wire.ReplicaDetail) int {
	n := 0
	for _, r := range replicas {
		if r.State == wire.ReplicaLeader || r.State == wire.ReplicaInSync {
			n++
		}
	}
	return n
}

// mostShort bounds the segments that a shard names as short of copies.
const mostShort = 8

// shortCopies counts segments that lack copies, and names a few of them, those with the fewest first.
type shortCopies struct {
	Under int         `cbor:"1,keyasint,omitempty"` // with fewer living copies than the topic's factor
	Gone  int         `cbor:"2,keyasint,omitempty"` // of them, with none at all
	Named []shortCopy `cbor:"3,keyasint,omitempty"`
}

// shortCopy is one of them.
type shortCopy struct {
	Where   string         `cbor:"1,keyasint"` // orders/r9
	Segment base.SegmentID `cbor:"2,keyasint"`
	Copies  int            `cbor:"3,keyasint,omitempty"`
	Of      int            `cbor:"4,keyasint"`
}

// add counts a segment that lacks some of the copies that it is to have.
func (c *shortCopies) add(p placed, lacks int) {
	if lacks == 0 {
		return
	}
	want := copiesOf(p.topic)
	copies := want - lacks
	c.Under++
	if copies == 0 {
		c.Gone++
	}
	if n := len(c.Named); n == mostShort && copies >= c.Named[n-1].Copies {
		return
	}
	c.name(shortCopy{Where: p.where(), Segment: p.ID, Copies: copies, Of: want})
}

func (c *shortCopies) name(short ...shortCopy) {
	c.Named = append(c.Named, short...)
	slices.SortStableFunc(c.Named, func(a, b shortCopy) int {
		return cmp.Or(cmp.Compare(a.Copies, b.Copies), cmp.Compare(a.Segment, b.Segment))
	})
	c.Named = c.Named[:min(len(c.Named), mostShort)]
}

// join adds another shard's.
func (c *shortCopies) join(o shortCopies) {
	c.Under += o.Under
	c.Gone += o.Gone
	c.name(o.Named...)
}

// names is the sentence's end that says which.
func (c *shortCopies) names() string {
	text := ""
	for i, short := range c.Named {
		text += []string{": ", ", "}[min(i, 1)] + fmt.Sprintf("%s %s (%d of %d)", short.Where, short.Segment, short.Copies, short.Of)
	}
	if c.Under > len(c.Named) {
		text += " …"
	}
	return text
}
