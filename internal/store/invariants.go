package store

import "github.com/eastguard/eastguard/internal/invariant"

// check states what holds of a segment whenever its range's lock is free. rng.mu is held.
func (g *segmentLog) check() {
	if !invariant.Enabled {
		return
	}
	commit, durable, end := g.commit.Load(), g.durable.Load(), g.sealed.Load()
	flushed := *g.flushed.Load()
	invariant.Check(g.spec.Base <= commit, "segment %s: commit %d is below base %d", g.spec.Segment, commit, g.spec.Base)
	invariant.Check(commit <= durable || g.spec.Memory, "segment %s: commit %d is above the durable end %d", g.spec.Segment, commit, durable)
	invariant.Check(durable <= g.appended, "segment %s: durable end %d is above the appended end %d", g.spec.Segment, durable, g.appended)
	invariant.Check(end < 0 || durable <= end, "segment %s: durable end %d is above the sealed end %d", g.spec.Segment, durable, end)
	invariant.Check(flushed.End <= durable || end >= 0, "segment %s: the file's end %d is above the durable end %d", g.spec.Segment, flushed.End, durable)
	invariant.Check(g.flushSeq <= g.tail.Next(), "segment %s: entry %d of %d is in the file", g.spec.Segment, g.flushSeq, g.tail.Next())
	invariant.Check(g.tail.Head() <= g.flushSeq, "segment %s: entry %d left memory before it was in the file", g.spec.Segment, g.tail.Head())
}
