package dataplane

import (
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

// phase is what an actor can do with an append that arrives now.
type phase uint8

const (
	unassigned  phase = iota + 1 // nothing is known of the range: appends wait for an assignment, briefly
	opening                      // the active segment is being made durable: appends wait
	leading                      // appends are taken, or wait while the leader drains or is frozen
	interrupted                  // the active segment was led in an earlier boot, or comes too late, and is never led: appends wait for its seal
	elsewhere                    // another node leads
	ended                        // the range has no active segment
	gone                         // removed from the plane: topic deleted, or nothing was ever heard of the range
)

// actor is one range on this node: at most one leader at a time, and the appends that wait for one. All its fields
// belong to whoever drains its mailbox.
type actor struct {
	plane *Plane
	ref   base.RangeRef
	box   mailbox[event]

	phase    phase
	stranger bool            // counted as one; see maxStrangers
	current  meta.Assignment // the range's newest segment as assigned; zero while unassigned
	leader   base.NodeID     // elsewhere: who leads, as far as this node was told
	lead     *lead           // the leader of current; nil unless leading, and while retired
	rest     resting         // what is kept of a leader that was retired

	following *following     // current, as one that another node leads; nil otherwise
	early     []earlyMessage // from leaders of segments that are not assigned here yet

	waiting   waitQueue
	confirms  []confirm      // whoever waits for current to be open
	leadWaits []chan error   // AwaitLead; each has room for its answer
	underway  base.SegmentID // being made durable; 0 when that failed, so that it is tried again
	asking    bool           // a roll request is under way
	askAgain  time.Time      // interrupted: not before
	busyUntil time.Time      // the log had no room
	rolledAt  time.Time      // when appends began to wait for a successor; zero when they do not
	waited    time.Duration  // for an ack of the segment before, of whoever had waited longest then
	refusal   error          // why the last request for a roll was not granted; nil when none was refused since rolledAt
	warnedAt  time.Time      // that a roll is not answered
	ticking   bool           // in the plane's set of watched actors
	starved   bool           // among those that wait for the node's credit

	// Written in the turn, read without it.
	due      atomic.Int64 // ms of the plane's life at which a sweep has something to do here, 0 = never
	earliest atomic.Int64 // of the range, as committed, as far as was told
	leads    atomic.Bool  // the range's active segment is led here, is being opened here, or was led here before a restart
	base     atomic.Int64 // of the newest segment
	open     atomic.Bool  // the range's active segment is led here by this process, or about to be
	follows  atomic.Int64 // ... or is followed here, since this ms of the plane's life; 0: it is not

	asked atomic.Int64 // ms of the plane's life at which the leader was last asked whether it leads still

	source atomic.Pointer[replica.Source] // who leads the segment that is open here as a follower's; nil: none is
}

// resting is what a leader leaves behind. Of a retired one: enough to judge the segment's age and size without asking
// the store, and to go on leading. Of a sealed one: what the successor begins with.
type resting struct {
	next, bytes int64
	times
	beginning
	followers []follower
	cause     base.Cause        // of a sealed one: why
	state     *rangestate.State // of a sealed one: as of its end, until the successor is open
}

// event is one message to an actor. The frequent kinds are fields of their own, so that they allocate no closure.
type event struct {
	kind  eventKind
	batch *batch
	end   int64
	err   error
	in    inbound
	run   func(now time.Time)
}

type eventKind uint8

const (
	evAppend  eventKind = iota + 1 // batch has arrived
	evDurable                      // batch is on this disk up to end, or err
	evInbound                      // another node's plane sent a message
	evLinks                        // the links to followers have changed
	evFed                          // the node has credit again
	evTick                         // something may be due
	evRun                          // anything rare
)

func newActor(p *Plane, ref base.RangeRef) *actor {
	a := &actor{plane: p, ref: ref, phase: unassigned}
	a.box.handle = a.on
	return a
}

// do runs a rare event in turn.
func (a *actor) do(run func(now time.Time)) { a.box.post(event{kind: evRun, run: run}) }

func (a *actor) on(e event) {
	defer a.panicked()
	now := time.Now()
	if a.phase == gone && e.kind == evAppend {
		// Removed while the event was on its way. A range that comes back has a new actor.
		if err := a.plane.post(a.ref, e); err != nil {
			e.batch.answer(AppendResult{}, err)
		}
		return
	}
	switch e.kind {
	case evAppend:
		a.onAppend(e.batch, now)
	case evDurable:
		a.onDurable(e.batch, e.end, e.err, now)
	case evInbound:
		e.in.deliver(a, now)
	case evLinks:
		a.onLinks(now)
	case evFed:
		a.starved = false
		a.pump(now)
	case evTick:
		a.onTick(now)
	case evRun:
		e.run(now)
	}
}

// panicked makes a panic in a turn fatal. Whoever posted may be a request that survives it; the range does not: it is half
// changed, and its mailbox takes events that nobody will handle.
func (a *actor) panicked() {
	if cause := recover(); cause != nil {
		a.plane.fail(base.Errorf(base.CodeInternal, "serve range", "range %s met a bug of the broker: %v", a.ref, cause))
		panic(cause)
	}
}

// become changes the phase and keeps the plane's count of leaders.
func (a *actor) become(next phase) {
	if next == leading {
		a.plane.leads.Add(1)
	}
	if a.phase == leading {
		a.plane.leads.Add(-1)
	}
	a.phase = next
	a.base.Store(a.current.Base)
	a.leads.Store(next == opening || next == leading || next == interrupted)
	a.open.Store(next == opening || next == leading)
}

// trimmed raises the range's earliest offset.
func (a *actor) trimmed(earliest int64) {
	for was := a.earliest.Load(); was < earliest && !a.earliest.CompareAndSwap(was, earliest); was = a.earliest.Load() {
	}
}

// settle carries out what the leader has come to: send, publish, answer, ask for a roll. What is sent goes first, so that
// the disks of all replicas are at it together.
func (a *actor) settle(now time.Time) {
	l := a.lead
	for ended := true; ended; {
		r := l.replica.Ready()
		a.replicate(r.Sends, now)
		if r.Advanced {
			a.committed(r, now)
		}
		if r.AskRoll {
			a.askRoll(r.Roll, now)
		}
		ended = a.judgeLate(r.Late, now)
	}
}

// committed publishes what every replica holds, and answers for it. Readers come first: a producer that has its ack may
// ask a consumer next door to read it.
func (a *actor) committed(r replica.Ready[*batch], now time.Time) {
	l := a.lead
	a.plane.log.Publish(l.seg, r.Commit)
	l.state.Commit(r.Commit)
	var freed int64
	for i, b := range r.Done {
		freed += int64(b.size())
		a.plane.acked(b, now)
		l.traceDone(b, now)
		b.Replicas = a.ackers(b.header.End())
		b.answer(b.AppendResult, nil)
		r.Done[i] = nil
	}
	a.plane.repay(l, freed)
}

// busy reports whether the actor has something that time alone can change.
func (a *actor) busy() bool {
	return a.waiting.len() > 0 || a.phase == unassigned && len(a.leadWaits) > 0 ||
		a.lead != nil && (!a.lead.replica.Idle() || a.lead.restless()) ||
		len(a.early) > 0 || a.following != nil && a.following.busy()
}

// watch puts the actor among those that are ticked. It takes itself out when a tick finds nothing to wait for.
func (a *actor) watch() {
	if !a.ticking {
		a.ticking = true
		a.plane.watch(a)
	}
}

// notHere sends a client to where the range's appends are taken, as far as this node knows.
func (a *actor) notHere() *base.Error {
	if a.phase == ended {
		return base.Errorf(base.CodeRangeMoved, opAppend, "range %s takes no appends any more", a.ref)
	}
	return base.Errorf(base.CodeSegmentMoved, opAppend, "range %s is led by %s", a.ref, a.leader).
		WithRedirect(base.Redirect{Node: a.leader})
}
