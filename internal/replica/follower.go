package replica

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/invariant"
)

// Source is the process that leads a segment: a segment is led by one process start of one node.
type Source struct {
	Node base.NodeID
	Boot uint64
}

// Follower is one segment as a follower holds it. It is a small comparable value: a shell may copy it, keep it while
// the rest of an idle actor is dropped, and go on with it. It is not safe for concurrent use.
type Follower struct {
	state  FollowerState
	source Source // bound by the first Open

	base     int64 // Invariant: base <= commit <= durable <= appended
	appended int64 // end of what was taken
	durable  int64 // end of what this disk holds, as the shell reports it
	known    int64 // the highest commit that the leader told of
	commit   int64 // what readers may see: min(known, durable), or the sealed end as far as it is here

	acked  int64  // the durable end in the last Ack
	ack    bool   // an ack is due, though it may be no news
	missed bool   // appends above appended have been dropped and not been asked for
	full   bool   // do not ask for them yet
	want   bool   // ask for them
	reason Reason // why it will never ack again; zero while it may
	lost   bool   // the leader is to be told so
	news   bool   // the commit has moved
}

// FollowerState is where in its life a follower is; see the package comment.
type FollowerState uint8

// The states, in the order a follower can pass through them; Out and Closed end it.
const (
	Waiting   FollowerState = iota + 1 // assigned; no leader has opened the segment here
	Opening                            // a leader has; the record of it is on its way to this disk
	Following                          // takes appends, acks what is durable
	Out                                // fenced, or the disk refuses: takes nothing more and acks nothing more
	Closed                             // the committed end is known
)

// String prints waiting, opening, following, out or closed.
func (s FollowerState) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Opening:
		return "opening"
	case Following:
		return "following"
	case Out:
		return "out"
	case Closed:
		return "closed"
	}
	return fmt.Sprintf("state_%d", uint8(s))
}

// Reason is why a replica will never ack a segment again. It travels in acks: never renumber.
type Reason uint8

// The reasons.
const (
	ReasonFenced     Reason = iota + 1 // the range is fenced at this epoch, or the segment has another source
	ReasonRestarted                    // this process is not the one that the segment was assigned to
	ReasonFailed                       // the disk is full, or refuses
	ReasonUnassigned                   // no committed assignment names this node as the segment's replica
)

// String prints fenced, restarted, failed or unassigned.
func (r Reason) String() string {
	switch r {
	case ReasonFenced:
		return "fenced"
	case ReasonRestarted:
		return "restarted"
	case ReasonFailed:
		return "failed"
	case ReasonUnassigned:
		return "unassigned"
	}
	return fmt.Sprintf("reason_%d", uint8(r))
}

// Verdict is what the shell is to do with an open or an append.
type Verdict uint8

// The verdicts.
const (
	Take      Verdict = iota + 1 // write it, report Opened or Durable
	Early                        // keep it until the segment is open, then ask again
	Duplicate                    // it is here already; Ready says what to answer
	Gap                          // something before it is missing; Ready says when to ask for it
	Refuse                       // its sender is told that this replica is lost to it, by the reason in Refusal
)

// String prints take, early, duplicate, gap or refuse.
func (v Verdict) String() string {
	switch v {
	case Take:
		return "take"
	case Early:
		return "early"
	case Duplicate:
		return "duplicate"
	case Gap:
		return "gap"
	case Refuse:
		return "refuse"
	}
	return fmt.Sprintf("verdict_%d", uint8(v))
}

// FollowerReady is what the steps since the last Ready have come to: publish Commit to readers if Publish, then tell
// the leader, Lost before anything else.
type FollowerReady struct {
	Publish bool
	Commit  int64
	Ack     bool  // all below Durable is on this disk
	Durable int64 //
	Want    bool  // all below End is here: send again from there
	End     int64
	Lost    Reason // zero unless this replica will never ack again, once
}

// NewFollower begins to follow a segment of which nothing is here.
func NewFollower(start int64) *Follower {
	return &Follower{state: Waiting, base: start, appended: start, durable: start, known: start, commit: start, acked: start}
}

// State says where in its life the follower is.
func (f *Follower) State() FollowerState { return f.state }

// Source is the process that leads the segment; zero until its first Open.
func (f *Follower) Source() Source { return f.source }

// End is the end of what was taken.
func (f *Follower) End() int64 { return f.appended }

// DurableEnd is the end of what this disk holds, as far as the shell has reported.
func (f *Follower) DurableEnd() int64 { return f.durable }

// CommitEnd is the end of what readers may see.
func (f *Follower) CommitEnd() int64 { return f.commit }

// Refusal is the reason to give to whoever is refused.
func (f *Follower) Refusal() Reason {
	if f.reason != 0 {
		return f.reason
	}
	return ReasonFenced
}

// Idle reports whether nothing is on its way to this disk, so that the rest of the actor may be dropped.
func (f *Follower) Idle() bool {
	return f.state != Opening && f.durable == f.appended && !f.missed
}

// Ready hands out what is due.
func (f *Follower) Ready() FollowerReady {
	r := FollowerReady{Publish: f.news, Commit: f.commit, Durable: f.durable, End: f.appended}
	f.news = false
	if f.lost {
		r.Lost, f.lost = f.reason, false
	}
	if f.state == Following {
		r.Ack, r.Want = f.ack || f.durable > f.acked, f.want
		f.acked, f.ack, f.want = f.durable, false, false
	}
	if invariant.Enabled {
		if err := f.Check(); err != nil {
			invariant.Check(false, "%v", err)
		}
	}
	return r
}
