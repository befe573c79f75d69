package dataplane

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

// That a segment has ended, and where, is the coordinator's to tell. But a segment that ended without a record is
// forgotten by metadata, and a follower that was not told in time never will be: it would go on thinking that it hears all
// there is from a leader that has nothing more to say, and let readers wait there. So leaders tell their followers when
// they lead a segment no more; and a follower at which readers wait asks now and then, for what is told may be lost.

// askLeaderEvery is how often a follower asks whether what it follows is led still, at most and while somebody cares.
const askLeaderEvery = time.Second

// tellEnded tells the followers of what was led here until now that it is not any more.
func (a *actor) tellEnded() {
	followers := a.rest.followers
	if a.lead != nil {
		followers = a.lead.followers
	}
	for i := range followers {
		if f := &followers[i]; !f.lost && f.session != 0 {
			a.sendEnded(f.node, segmentHead{ref: a.ref, epoch: a.current.Epoch, segment: a.current.Segment})
		}
	}
}

func (a *actor) sendEnded(to base.NodeID, s segmentHead) {
	m := appendMessage{segmentHead: s, ended: true}
	var head [appendHeadSize]byte
	m.put(&head)
	_ = a.plane.o.Links.SendParts(to, kindAppend, false, head[:]) // one that is lost is asked for
}

// hasEnded reports whether a segment is led here no more, whoever led it.
func (a *actor) hasEnded(s *segmentHead) bool {
	return s.epoch < a.current.Epoch || s.segment == a.current.Segment && a.current.State != base.StateActive
}

// leaderEnded hears from the leader that there is nothing more to follow. The end itself comes from the coordinator.
func (a *actor) leaderEnded(from replica.Source) {
	if a.leadsFrom(from) {
		a.endFollowing()
	}
}

// askLeader has a follower repeat what it holds, which a leader that has ended answers.
func (a *actor) askLeader(now time.Time) {
	if last := a.asked.Load(); a.plane.age(now)-last < askLeaderEvery.Milliseconds() || !a.asked.CompareAndSwap(last, a.plane.age(now)) {
		return
	}
	a.do(func(time.Time) {
		if f := a.following; f != nil {
			a.ackAgain(f, f.replica.Source())
		}
	})
}
