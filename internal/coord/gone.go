package coord

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

// loss is what is known against a node.
type loss uint8

// The losses. Of a silent node it is not known whether it is gone: whoever shares a segment with it is asked, too.
const (
	notLost loss = iota
	silent
	gone
)

// lossOf says what the connection and the failure detector hold against a node. Whoever is heard is not gone, whatever is
// rumoured; whose port is closed is gone, though it may not be rumoured yet.
func lossOf(n *topology.Node, c Contact) loss {
	switch {
	case c.heard():
		return notLost
	case c.Refused, n.Liveness == topology.Dead, n.Liveness == topology.Left:
		return gone
	case c.Kept && c.Silent > 0:
		return silent
	}
	return notLost
}

// judge files a segment for recovery if its leader cannot go on with it, or is about to stop.
func (l *loop) judge(a *active, now time.Time) {
	leader := a.Leader().Node
	is := l.known[leader]
	switch placed := a.BootOf(a.Leader()); {
	case placed != 0 && is.boot > placed:
		// A leader leads a segment for one start of its process.
		l.recover.lost(a, base.CauseRecovery, l.wanted(a, now), now)
	case is.lost == gone, is.lost == silent && l.unheard(a, now):
		l.recover.lost(a, base.CauseLeaderFailure, l.wanted(a, now), now)
	case is.leaving, is.out:
		l.wishes.farewell = append(l.wishes.farewell, a)
	}
}

// unheard reports whether another replica of the segment, too, has not heard its leader for long enough.
func (l *loop) unheard(a *active, now time.Time) bool {
	leader := a.Leader().Node
	if now.Sub(l.known[leader].silentSince) < silentFor {
		return false
	}
	for _, r := range a.Replicas[1:] {
		if l.coord.silent(r.Node, leader, now) {
			return true
		}
	}
	return false
}

// judgeSilent looks at those who lead segments and are not heard, until they are again, or known to be gone. Only who is
// silent costs anything.
func (l *loop) judgeSilent(now time.Time) {
	for node := range l.silent {
		if due := l.known[node].silentSince.Add(silentFor); now.Before(due) {
			l.lookAgain(due)
			continue
		}
		for a := range l.actives.ledBy(node) {
			l.judge(a, now)
		}
		l.lookAgain(now.Add(again))
	}
}

// judgeLed looks at everything that a node leads, after news of it.
func (l *loop) judgeLed(node base.NodeID, now time.Time) {
	for a := range l.actives.ledBy(node) {
		l.judge(a, now)
	}
}

const (
	wantHolds = 10 * time.Second // for which it is remembered that somebody wants a range
	maxWants  = 16_384
)

// want remembers who is asked for, so that it comes first if its leader turns out to be gone, now or soon.
func (l *loop) want(refs map[base.RangeRef]bool, now time.Time) {
	for ref := range refs {
		a := l.actives.get(ref)
		if a == nil {
			continue
		}
		l.recover.hurry(a.ID, now)
		if len(l.wants) >= maxWants {
			clear(l.wants)
		}
		l.wants[ref] = now
	}
}

func (l *loop) wanted(a *active, now time.Time) bool {
	at, ok := l.wants[a.ref]
	if ok && now.Sub(at) >= wantHolds {
		delete(l.wants, a.ref)
		ok = false
	}
	return ok || len(l.asks[a.ID]) > 0
}
