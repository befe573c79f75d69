package dataplane

import (
	"math"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

const (
	tickEvery  = 50 * time.Millisecond // watched actors: deadlines, late replicas, requests to repeat
	sweepEvery = time.Second           // all actors: ages, idleness, leaders to retire
)

// watchdog is the plane's one goroutine. It sleeps for as long as nothing waits.
func (p *Plane) watchdog() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	var tick <-chan time.Time
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
			if tick == nil {
				tick = time.After(tickEvery)
			}
		case <-tick:
			tick = nil
			if p.tick() {
				tick = time.After(tickEvery)
			}
		case <-p.linkWake:
			p.relink()
		case <-p.fed:
			p.feed()
		case now := <-sweep.C:
			p.sweep(now)
		}
	}
}

// tick gives every watched actor a turn and reports whether any is left.
func (p *Plane) tick() bool {
	p.watched.Lock()
	actors := make([]*actor, 0, len(p.watched.set))
	for a := range p.watched.set {
		actors = append(actors, a)
	}
	p.watched.Unlock()
	for _, a := range actors {
		a.box.post(event{kind: evTick})
	}
	return len(actors) > 0
}

func (p *Plane) watch(a *actor) {
	p.watched.Lock()
	p.watched.set[a] = struct{}{}
	first := len(p.watched.set) == 1
	p.watched.Unlock()
	if first {
		mark(p.wake)
	}
}

func (p *Plane) unwatch(a *actor) {
	p.watched.Lock()
	delete(p.watched.set, a)
	p.watched.Unlock()
}

// sweep gives a turn to every actor whose time has come.
func (p *Plane) sweep(now time.Time) {
	p.mendDue(now)
	ms := p.age(now)
	for _, a := range p.all() {
		if due := a.due.Load(); due != 0 && due <= ms {
			a.do(a.onSweep)
		}
	}
}

// onTick lets time pass for what waits: the leader's replicas, deadlines, requests without an answer.
func (a *actor) onTick(now time.Time) {
	if a.lead != nil {
		a.nudgeFollowers(now)
		a.lead.replica.Tick(now)
		a.loseDown(now)
		a.settle(now)
		a.expireInFlight(now)
	}
	a.tickFollower(now)
	a.expireWaiting(now)
	if a.phase == interrupted && a.waiting.len() > 0 {
		a.askRecovery(now)
	}
	a.pump(now)
	if a.busy() {
		return
	}
	a.ticking = false
	a.plane.unwatch(a)
	if a.phase == unassigned { // a range nobody has told us about, and nobody waits for any more
		a.become(gone)
		a.plane.remove(a)
	}
}

// expireInFlight answers those whose batch is on its way to the disk for longer than they wait. It stays on its way.
func (a *actor) expireInFlight(now time.Time) {
	late := a.because(base.Errorf(base.CodeTimeout, opAppend, "the batch was not durable by the deadline")).WithOutcome(base.Unknown)
	a.lead.replica.Each(func(b *batch) bool {
		b.expire(now, late)
		return true
	})
}

// expireWaiting refuses appends that waited to their deadline, and says for what.
func (a *actor) expireWaiting(now time.Time) {
	if a.waiting.len() == 0 {
		return
	}
	limit := time.Duration(math.MaxInt64)
	var err *base.Error
	switch a.phase {
	case unassigned:
		limit = a.plane.o.ReplicaTimeout
		err = base.Errorf(base.CodeNotReplica, opAppend, "range %s is not assigned to this node", a.ref)
	case leading:
		err = base.Errorf(base.CodeBusy, opAppend, "the broker has as much in flight as it may")
		if a.lead != nil && a.lead.replica.State() != replica.Leading {
			err = a.because(base.Errorf(base.CodeNoLeader, opAppend, "the range's segment is being sealed"))
		}
	case opening, interrupted, elsewhere, ended, gone:
		err = a.because(base.Errorf(base.CodeNoLeader, opAppend, "the range's next segment is not open yet"))
	}
	dropped := a.waiting.filter(func(b *batch) bool {
		if now.Sub(b.arrived) >= limit {
			b.answer(AppendResult{}, err)
			return false
		}
		b.expire(now, err)
		return b.done != nil || len(b.twins) > 0
	})
	a.plane.waiting.Add(-dropped)
}

// failWaiting refuses everything that waits.
func (a *actor) failWaiting(err error) {
	for a.waiting.len() > 0 {
		b := a.waiting.pop()
		a.plane.unreserve(b.size())
		b.answer(AppendResult{}, err)
	}
}

// schedule says when the next sweep has something to do here.
func (a *actor) schedule() {
	t := a.rest.times
	var due time.Time
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if a.lead != nil {
		t = a.lead.times
		sooner(a.lead.usedAt.Add(a.plane.o.RetireAfter))
	}
	if !t.firstAt.IsZero() { // an empty segment has no age
		sooner(t.firstAt.Add(a.current.Config.SegmentAge))
		if idle := a.plane.o.SegmentIdle; idle > 0 {
			sooner(t.lastAt.Add(idle))
		}
	}
	if due.IsZero() {
		a.due.Store(0)
		return
	}
	a.due.Store(max(1, a.plane.age(due)))
}

// onSweep rolls a segment that is old or idle, and lets a leader without work go.
func (a *actor) onSweep(now time.Time) {
	if a.phase != leading || a.plane.closing.Load() {
		return
	}
	if cause := a.rollDue(now); cause != base.CauseNone {
		if a.lead != nil || a.resume(now) {
			a.startRoll(cause, now)
		}
		a.due.Store(0)
		return
	}
	if a.lead != nil && a.lead.replica.Idle() && !a.lead.restless() && !now.Before(a.lead.usedAt.Add(a.plane.o.RetireAfter)) {
		a.retire()
	}
	a.schedule()
}

func (a *actor) rollDue(now time.Time) base.Cause {
	t, idle := a.rest.times, a.plane.o.SegmentIdle
	if a.lead != nil {
		t = a.lead.times
	}
	switch {
	case t.firstAt.IsZero():
		return base.CauseNone
	case now.Sub(t.firstAt) >= a.current.Config.SegmentAge:
		return base.CauseAge
	case idle > 0 && now.Sub(t.lastAt) >= idle:
		return base.CauseIdle
	}
	return base.CauseNone
}
