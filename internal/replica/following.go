package replica

import "github.com/eastguard/eastguard/internal/base"

// Open is a leader's "I lead this segment". Take: make it durable, then report Opened. Duplicate: the same leader by a
// new session; what is here is acked again, so that it goes on from there.
func (f *Follower) Open(from Source) Verdict {
	switch f.state {
	case Waiting:
		return f.openWaiting(from)
	case Opening, Following:
		return f.openAgain(from)
	case Out, Closed:
	}
	return Refuse
}

func (f *Follower) openWaiting(from Source) Verdict {
	f.state, f.source = Opening, from
	return Take
}

func (f *Follower) openAgain(from Source) Verdict {
	if from != f.source {
		return Refuse
	}
	f.ack, f.missed, f.want = true, false, false // what was missed comes again with the session
	return Duplicate
}

// Opened reports that the segment's open record is on this disk.
func (f *Follower) Opened() {
	if f.state == Opening {
		f.state, f.ack = Following, true
	}
}

// Append is a batch with the offsets [first, end) from a leader. Take: write it behind all that was taken before it,
// then report Durable. A batch that is not wholly above or below what is here cannot come from the leader of this
// segment, which cuts nothing anew.
func (f *Follower) Append(from Source, first, end int64) Verdict {
	switch f.state {
	case Waiting:
		return Early
	case Opening:
		return f.appendOpening(from)
	case Following:
		return f.appendFollowing(from, first, end)
	case Out, Closed:
	}
	return Refuse
}

func (f *Follower) appendOpening(from Source) Verdict {
	if from != f.source {
		return Refuse
	}
	return Early
}

func (f *Follower) appendFollowing(from Source, first, end int64) Verdict {
	switch {
	case from != f.source || end <= first:
		return Refuse
	case end <= f.appended:
		f.ack = f.ack || end <= f.durable // or its own ack is still to come
		return Duplicate
	case first > f.appended:
		f.miss()
		return Gap
	case first < f.appended:
		return Refuse
	}
	f.appended, f.missed = end, false
	return Take
}

// miss notes that something above appended was sent and is not here. It is asked for once; a session that begins anew
// brings it unasked.
func (f *Follower) miss() {
	if !f.missed {
		f.missed, f.want = true, !f.full
	}
}

// Probe is a leader's word, without a batch, that it has sent all below next. What of that is not here is asked for, also
// if it was before: the asking may not have been heard.
func (f *Follower) Probe(from Source, next int64) {
	if f.state == Following && from == f.source && next > f.appended {
		f.missed, f.want = true, !f.full
	}
}

// Dropped reports that the shell had no room for an append. What is missing is asked for when it has Room again.
func (f *Follower) Dropped() {
	if f.state == Following || f.state == Opening {
		f.full, f.missed, f.want = true, true, false
	}
}

// Room reports that the shell has room again.
func (f *Follower) Room() {
	f.want = f.want || f.full && f.missed
	f.full = false
}

// Durable reports that all below end is on this disk; in memory, where the topic's acks promise no more.
func (f *Follower) Durable(end int64) {
	if end = min(end, f.appended); end > f.durable {
		f.durable = end
		f.publish()
	}
}

// Commit is the leader's commit, which travels with its appends.
func (f *Follower) Commit(from Source, commit int64) {
	if from == f.source && commit > f.known && (f.state == Opening || f.state == Following) {
		f.known = commit
		f.publish()
	}
}

// Fence ends the follower for good: what was taken is written before the fence, nothing is after it. No ack leaves any
// more, not even of what the fence covers: the leader learns the end from metadata.
func (f *Follower) Fence() { f.out(ReasonFenced) }

// Failed ends the follower because its disk is full or refuses.
func (f *Follower) Failed() { f.out(ReasonFailed) }

func (f *Follower) out(why Reason) {
	if f.state == Out || f.state == Closed {
		return
	}
	f.lost = f.state != Waiting
	f.state, f.reason = Out, why
}

// Seal tells the committed end. Records above it are no longer part of the segment, whatever was acked of them; a
// follower that does not hold all below it is Short. An end below what readers saw means that acked records are lost,
// another end than before that metadata has changed its mind: errors that no caller may go on after.
func (f *Follower) Seal(end int64) error {
	const op = "seal segment"
	if f.state == Closed && end != f.known {
		return base.Errorf(base.CodeInternal, op, "the committed end changed from %d to %d", f.known, end)
	}
	if end < f.commit {
		return base.Errorf(base.CodeInternal, op, "the committed end %d is below %d, which was readable", end, f.commit)
	}
	f.state, f.reason, f.lost = Closed, ReasonFenced, false
	f.known = end
	f.appended, f.durable, f.acked = min(f.appended, end), min(f.durable, end), min(f.acked, end)
	f.publish()
	return nil
}

// Short reports whether the committed end is above what was ever taken here.
func (f *Follower) Short() bool { return f.state == Closed && f.appended < f.known }

// publish moves the commit to what is known and here.
func (f *Follower) publish() {
	if commit := min(f.known, f.durable); commit > f.commit {
		f.commit, f.news = commit, true
	}
}
