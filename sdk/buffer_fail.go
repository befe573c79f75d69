package sdk

import "github.com/eastguard/eastguard/internal/base"

// maxStrikes is how often a batch with nothing open before it may be called out of order. The first time can be
// the echo of a try that overtook it; the second time broker and producer disagree for good.
const maxStrikes = 2

// failLocked decides what the failed try of bt means for it and for what follows it. The batch is waiting again.
func (b *buffer) failLocked(bt *batch, err error) {
	b.p.stats.retries.Add(1)
	b.lastErr = err
	if bt.ambiguous && !b.p.cfg.idempotent {
		b.dropLocked(bt, lost(err)) // sending it again might store it twice
		return
	}
	switch b.remedy(err) {
	case waitHere:
		b.rewind = true
		b.failures++
		b.mendLocked(err)
	case goElsewhere:
		b.rewind = true
		b.failures++
		if base.CodeOf(err) != base.CodeUnreachable {
			b.leader = nil
		} // else the connection is gone, not the leader: dial it again before asking who leads
		b.mendLocked(err)
	case resequence:
		b.rewind = true
		b.strikeLocked(bt)
	case forgotten:
		// Nothing was ever acknowledged: the batch that would have introduced the producer was refused or is on
		// another way. In order, they will be taken.
		b.rewind = true
		if b.acked {
			b.regress = true
		} else {
			b.strikeLocked(bt)
		}
	case fenced:
		b.fencedLocked(bt, err)
	case giveUp:
		// The sequence number of the batch stays unused, so that all behind it would be out of order for ever.
		b.regress = true
		b.dropLocked(bt, err)
	}
}

// remedy is remedyFor, but for a broker that does not know the topic or the range: it may be behind, or they may be
// no more, and the route will tell. What a broker failed with may have been stored, and is recognised if it was.
func (b *buffer) remedy(err error) remedy {
	switch code := base.CodeOf(err); {
	case code == base.CodeTopicNotFound || code == base.CodeRangeNotFound:
		return goElsewhere
	case code == base.CodeInternal && ambiguous(err) && b.p.cfg.idempotent:
		return goElsewhere // a broker whose disk fails says so, and does not lead for long: its successor may know the batch
	}
	return remedyFor(err)
}

// strikeLocked counts refusals of the batch that is first in line.
func (b *buffer) strikeLocked(bt *batch) {
	if len(b.queue) > 0 && b.queue[0] == bt {
		if bt.strikes++; bt.strikes >= maxStrikes {
			b.regress = true
		}
	}
}

// fencedLocked: a newer epoch writes to the range. Of a named producer that is somebody else, for good. An id of
// our own can only have met its own later epoch, by a copy that was long on its way.
func (b *buffer) fencedLocked(bt *batch, err error) {
	if b.pt.ids.name == "" {
		b.rewind, b.regress = true, true
		return
	}
	b.pt.fail(err)
	for _, open := range append([]*batch(nil), b.queue...) {
		if open.state == batchWaiting {
			b.dropLocked(open, err)
		}
	}
}

// regressLocked gets a newer identity, and reports whether it is there already: a named producer has to ask for it.
// Nothing is flying.
func (b *buffer) regressLocked() bool {
	if !b.p.cfg.idempotent {
		b.regress = false // there is none to end
		return true
	}
	if b.pt.ids.name != "" {
		b.mendLocked(nil) // asks for the epoch; see reidentify
		return false
	}
	b.renewIdentityLocked(b.pt.ids.bump(b.identity))
	return true
}

// renewIdentityLocked ends the identity: what may have been stored under it unseen fails as unknown, and the rest, of
// which each batch is known not to have been stored, goes on under the newer one from sequence 0. Nothing is flying.
func (b *buffer) renewIdentityLocked(who identity) {
	for _, bt := range append([]*batch(nil), b.queue...) {
		if bt.state == batchWaiting && bt.ambiguous {
			b.dropLocked(bt, lost(b.lastErr))
		}
	}
	b.p.stats.identities.Add(1)
	b.identity, b.next, b.acked, b.regress = who, 0, false, false
	for _, bt := range b.queue {
		bt.stamped, bt.strikes = false, 0
	}
}

// dropLocked fails a batch. err says why; the outcome is what is known of it. Its place in the queue keeps the
// callbacks of the range in order.
func (b *buffer) dropLocked(bt *batch, err error) {
	bt.err = about("send", err).WithOutcome(bt.outcome())
	if bt.state == batchFlying {
		b.flying--
		bt.escaped = true
	}
	if b.open == bt {
		b.sealLocked()
	}
	bt.state = batchDone
	b.finishLocked()
}

// lost says of an error that the answer never came. What the broker called otherwise is a timeout to the sender,
// with the reason behind it.
func lost(err error) error {
	if err == nil {
		err = base.CodeTimeout
	}
	return &base.Error{
		Code: base.CodeTimeout, Op: "send", Msg: "the answer was lost and could not be had again: " + err.Error(),
		Outcome: base.Unknown, Err: err,
	}
}
