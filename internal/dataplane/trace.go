package dataplane

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// sinceArrival is how long ago the batch came, as traces count.
func (b *batch) sinceArrival(now time.Time) int64 { return now.Sub(b.arrived).Microseconds() }

// traceTaken notes that a batch has its offset.
func (a *actor) traceTaken(b *batch, now time.Time) {
	if b.AppendRequest.Trace {
		b.trace = &wire.ProduceTrace{Node: a.plane.o.Node, TakenUs: b.sinceArrival(now)}
		a.lead.traced = append(a.lead.traced, b)
	}
}

// sentTo notes when a batch was first handed to the connection to a follower.
func (b *batch) sentTo(node base.NodeID, now time.Time) {
	if b.trace != nil && b.partOf(node) == nil {
		b.trace.Replicas = append(b.trace.Replicas, wire.ReplicaTrace{Node: node, SentUs: b.sinceArrival(now)})
	}
}

func (b *batch) partOf(node base.NodeID) *wire.ReplicaTrace {
	i := slices.IndexFunc(b.trace.Replicas, func(r wire.ReplicaTrace) bool { return r.Node == node })
	if i < 0 {
		return nil
	}
	return &b.trace.Replicas[i]
}

// ackedBy notes when a follower's ack first covered each batch in flight that is traced.
func (l *lead) ackedBy(node base.NodeID, m *ackArrival, now time.Time) {
	for _, b := range l.traced {
		if b.header.End() > m.end {
			return
		}
		if part := b.partOf(node); part != nil && part.AckUs == 0 {
			part.AckUs, part.FsyncUs = b.sinceArrival(now), m.fsync.Microseconds()
		}
	}
}

// traceDone gives a committed batch its trace, which is not touched any more.
func (l *lead) traceDone(b *batch, now time.Time) {
	if b.trace == nil {
		return
	}
	b.trace.CommitUs = b.sinceArrival(now)
	b.AppendResult.Trace, b.trace = b.trace, nil
	l.traced = slices.DeleteFunc(l.traced, func(t *batch) bool { return t == b })
}
