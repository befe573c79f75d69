package replica

import "fmt"

// Check proves what holds between any two steps of a leader. Builds with assertions do it in each Ready.
func (l *Leader[T]) Check() error {
	broken := func(rule string) error {
		return fmt.Errorf("leader %s: base %d, commit %d, next %d, end %d: %s", l.state, l.cfg.Base, l.commit, l.next, l.end, rule)
	}
	switch {
	case l.commit < l.cfg.Base || l.commit > l.next:
		return broken("the commit lies in what was assigned")
	case l.state < Sealed && l.commit > l.minAcked():
		return broken("all replicas hold what is committed")
	case l.state == Frozen && l.end != l.commit:
		return broken("a frozen end is the commit")
	case l.state == Sealed && l.end < l.commit:
		return broken("a sealed end covers what was committed")
	case l.state < Frozen && l.end >= 0:
		return broken("a segment that can grow has no end")
	}
	for i := 1; i < len(l.replicas); i++ {
		if p := &l.replicas[i]; p.acked > p.sent || p.sent > l.next {
			return fmt.Errorf("follower %s acked %d, was sent %d of %d", p.node, p.acked, p.sent, l.next)
		}
	}
	return nil
}

// Check proves what holds between any two steps of a follower. Builds with assertions do it in each Ready.
func (f *Follower) Check() error {
	broken := func(rule string) error {
		return fmt.Errorf("follower %s: base %d, commit %d, durable %d, end %d: %s", f.state, f.base, f.commit, f.durable, f.appended, rule)
	}
	switch {
	case f.base > f.commit:
		return broken("the commit begins at the base")
	case f.commit > f.durable:
		return broken("readers see what this disk holds")
	case f.durable > f.appended:
		return broken("nothing is durable that was not taken")
	case f.acked > f.durable:
		return broken("nothing is acked that is not durable")
	case f.state == Following && f.source == Source{}:
		return broken("who follows follows somebody")
	case f.state == Waiting && f.appended > f.base:
		return broken("nothing is taken before an open")
	}
	return nil
}
