package coord

import (
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/planner"
)

// unplaced are the segments whose successors no fit set of min_replicas nodes could take when they were looked at last. Their
// ranges take no records, by decision: it is for an operator to see, and to bring nodes.
type unplaced map[base.SegmentID]*unplacedSegment

type unplacedSegment struct {
	Stuck
	seen time.Time // when it was wanted last
}

// unplacedFor is how long a segment counts that nobody asks for any more: its leader asks every 200 ms while records wait.
const unplacedFor = 10 * again

// note files what a plan could not place.
func (u unplaced) note(w planner.Waiting, now time.Time) {
	if w.Err.Code != base.CodeNotEnoughNodes {
		delete(u, w.Segment)
		return
	}
	s := u[w.Segment]
	if s == nil {
		s = &unplacedSegment{Stuck: Stuck{Ref: w.Ref, Segment: w.Segment, Since: now, Nodes: true}}
		u[w.Segment] = s
	}
	s.Reason, s.seen = innermost(w.Err), now
}

// dropTopic forgets the segments of a topic that was deleted.
func (u unplaced) dropTopic(id base.TopicID) {
	for seg, s := range u {
		if s.Ref.Topic == id {
			delete(u, seg)
		}
	}
}

// list forgets those that nobody wants any more and lists the others.
func (u unplaced) list(now time.Time) (list []Stuck) {
	for seg, s := range u {
		switch {
		case now.Sub(s.seen) > unplacedFor:
			delete(u, seg)
		case len(list) < maxStuck:
			list = append(list, s.Stuck)
		}
	}
	return list
}

// innermost is what an error says without those who passed it on.
func innermost(e *base.Error) string {
	for {
		var inner *base.Error
		if !errors.As(e.Err, &inner) {
			return e.Msg
		}
		e = inner
	}
}
