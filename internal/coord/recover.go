package coord

import (
	"cmp"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// recovery is one segment whose leader cannot go on: its replicas are fenced, then it is sealed by their answers.
type recovery struct {
	planner.Recovery
	state   recoveryState
	haste   haste
	lost    bool        // for want of its leader alone: when that is heard again, there is nothing to recover
	appends int64       // when the range was appended to last, as committed
	why     *base.Error // it could not be decided the last time
	retryAt time.Time
	fencing
}

// recoveryState: to be fenced; fences are under way; the answers are here.
type recoveryState int

const (
	toFence recoveryState = iota
	fencesOut
	answered
)

// haste says which recoveries come first.
type haste int

const (
	asked   haste = iota // somebody waits for it
	filled               // it holds records that somebody may want to read
	nobodys              // in the background
)

// maxFences is how many segments one round of fences covers; one round begins at a time.
const maxFences = planner.BatchSize

// recoveries are the segments of one shard that wait for a seal. Those that somebody waits for come first, then those
// with records; the others are sealed in the background, at the node's pace.
type recoveries struct {
	all     map[base.SegmentID]*recovery
	flying  map[base.SegmentID]*recovery // those whose fences are out, or answered
	unknown int                          // those of which it is known why they could not be decided
	sorted  bool                         // nothing has changed since next looked at all of them
	wait    time.Time                    // when it is to look again nevertheless; zero: not
	round   uint64                       // of fences, that was sent last
	fresh   int                          // segments of which answers may still come that are worth waiting for
	pace    *idlePace                    // of the background, which all shards share
}

func newRecoveries(pace *idlePace) recoveries {
	return recoveries{all: make(map[base.SegmentID]*recovery), flying: make(map[base.SegmentID]*recovery), pace: pace}
}

func (rs *recoveries) len() int { return len(rs.all) }

// file adds a segment, or puts the one that is there in more haste.
func (rs *recoveries) file(ref base.RangeRef, seg base.SegmentID, epoch base.Epoch, h haste, now time.Time) (r *recovery, fresh bool) {
	if r = rs.all[seg]; r != nil {
		rs.hasten(r, h, now)
		return r, false
	}
	r = &recovery{haste: h, Recovery: planner.Recovery{
		Ref: ref, Segment: seg, Epoch: epoch, Cause: base.CauseRecovery, SinceMs: now.UnixMilli(),
	}}
	rs.all[seg], rs.sorted = r, false
	return r, true
}

// hasten makes somebody's wish felt: the gap is counted from there.
func (rs *recoveries) hasten(r *recovery, h haste, now time.Time) {
	if h < r.haste {
		if r.haste == nobodys {
			r.SinceMs = now.UnixMilli()
		}
		r.haste, rs.sorted = h, false
	}
}

// hurry puts a segment first, if it is to be recovered.
func (rs *recoveries) hurry(seg base.SegmentID, now time.Time) {
	if r := rs.all[seg]; r != nil {
		rs.hasten(r, asked, now)
	}
}

// found files a segment that a node says it cannot lead any more.
func (rs *recoveries) found(a *meta.Assignment, h haste, now time.Time) {
	r, _ := rs.file(a.Ref, a.Segment, a.Epoch, h, now)
	r.lost = false
}

// lost files a segment whose leader has gone, or has started anew.
func (rs *recoveries) lost(a *active, cause base.Cause, wanted bool, now time.Time) {
	h := nobodys
	if wanted {
		h = asked
	}
	r, fresh := rs.file(a.ref, a.ID, a.Epoch, h, now)
	if fresh {
		r.lost, r.Cause, r.appends = cause == base.CauseLeaderFailure, cause, a.LastAppendMs
	}
	r.lost = r.lost && cause == base.CauseLeaderFailure
}

// foundAgain drops the recovery of a segment whose leader is heard again and has led it all the time, unless its fences
// are out.
func (rs *recoveries) foundAgain(seg base.SegmentID) {
	if r := rs.all[seg]; r != nil && r.lost && r.state == toFence {
		rs.done(seg)
	}
}

// stateless files a segment that its leader cannot open, since it reaches nobody who knows what the range remembers: the
// successor goes to one of those who do.
func (rs *recoveries) stateless(a *meta.Assignment, now time.Time) {
	if r, fresh := rs.file(a.Ref, a.Segment, a.Epoch, filled, now); fresh {
		r.On = a.From.Replicas
	}
}

// opened drops the recovery of a segment that could be opened after all.
func (rs *recoveries) opened(seg base.SegmentID) {
	if r := rs.all[seg]; r != nil && len(r.On) > 0 && r.state == toFence {
		rs.done(seg)
	}
}

// want files a segment that somebody waits for.
func (rs *recoveries) want(req *RollRequest, now time.Time) {
	r, fresh := rs.file(req.Ref, req.Segment, req.Epoch, asked, now)
	r.lost = false
	if fresh && req.Cause == base.CauseOperator {
		r.Cause = req.Cause
	}
}

// ready lists those whose answers are here.
func (rs *recoveries) ready() []planner.Recovery {
	var list []planner.Recovery
	for _, r := range rs.flying {
		if r.state != answered {
			continue
		}
		rec := r.Recovery
		if r.haste == nobodys {
			rec.SinceMs = 0 // it took its time because nobody waited
		}
		list = append(list, rec)
	}
	return list
}

func (rs *recoveries) done(seg base.SegmentID) {
	if r := rs.all[seg]; r != nil {
		rs.explain(r, nil)
		delete(rs.all, seg)
		delete(rs.flying, seg)
	}
}

// explain keeps why a recovery could not be decided.
func (rs *recoveries) explain(r *recovery, why *base.Error) {
	if r.why != nil {
		rs.unknown--
	}
	if r.why = why; why != nil {
		rs.unknown++
	}
}

// undecided starts a recovery over, later: the answers did not suffice, or the seal was not committed.
func (rs *recoveries) undecided(seg base.SegmentID, why *base.Error, now time.Time) {
	if r := rs.all[seg]; r != nil {
		rs.explain(r, why)
		r.state, r.Answers, r.retryAt = toFence, nil, now.Add(again)
		rs.sorted = false
		delete(rs.flying, seg)
	}
}

// rouse ends the pauses: what has changed about the nodes may be what was waited for.
func (rs *recoveries) rouse() {
	rs.sorted = false
	for _, r := range rs.all {
		r.retryAt = time.Time{}
	}
}

// next picks the segments of the next round: those in a hurry, then what the background may have. wait is when to
// look again for the rest.
func (rs *recoveries) next(now time.Time) (list []*recovery, wait time.Time) {
	if rs.sorted && (rs.wait.IsZero() || now.Before(rs.wait)) {
		return nil, rs.wait
	}
	list, rs.wait = rs.pick(now)
	rs.sorted = true
	return list, rs.wait
}

func (rs *recoveries) pick(now time.Time) (list []*recovery, wait time.Time) {
	var idle []*recovery
	for _, r := range rs.all {
		switch {
		case r.state != toFence:
		case now.Before(r.retryAt):
			wait = earlierOf(wait, r.retryAt)
		case r.haste == nobodys:
			idle = append(idle, r)
		default:
			list = append(list, r)
		}
	}
	if len(list) > maxFences {
		slices.SortFunc(list, func(a, b *recovery) int {
			if a.haste != b.haste {
				return int(a.haste) - int(b.haste)
			}
			return int(a.SinceMs - b.SinceMs)
		})
		return list[:maxFences], now
	}
	return rs.addIdle(list, idle, wait, now)
}

// addIdle fills a round up with the background: those that were appended to last come first. A round of the background
// alone waits until it is worth its messages.
func (rs *recoveries) addIdle(list, idle []*recovery, wait, now time.Time) ([]*recovery, time.Time) {
	if len(idle) == 0 {
		return list, wait
	}
	least := min(len(idle), rs.pace.round)
	if len(list) > 0 {
		least = 1
	}
	if n := rs.pace.take(min(len(idle), maxFences-len(list)), least, now); n > 0 {
		slices.SortFunc(idle, func(a, b *recovery) int { return cmp.Compare(b.appends, a.appends) })
		list = append(list, idle[:n]...)
		idle = idle[n:]
	}
	if len(idle) > 0 {
		wait = earlierOf(wait, now.Add(idleRound/5))
	}
	return list, wait
}

// earlierOf is earlier, for which the zero time is none.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return earlier(a, b)
}
