package coord

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// life is what a loop remembers of a node: a higher boot is a process that knows of no segment any more that it should
// lead.
type life struct {
	boot        uint64
	alive       bool
	lost        loss
	silentSince time.Time // while it is lost by silence
	retreats    bool      // it is to be emptied
	leaving     bool      // it is stopping, and has said so
	out         bool      // it does not count as a node any more, though it may live
}

func lifeOf(n *topology.Node, c Contact) life {
	return life{
		boot: max(n.Boot, c.Boot), alive: n.Liveness == topology.Alive,
		lost: lossOf(n, c), retreats: n.Standing != topology.Normal, leaving: n.Leaving, out: n.Standing == topology.Out,
	}
}

// lookAtNodes compares what is known of the nodes with what was, and returns those that have started since. What waits
// for a node that lives again is sent at once, and what a node leads that cannot go on is filed for recovery.
func (l *loop) lookAtNodes(view topology.View, now time.Time) (returned []base.NodeID) {
	changed := false
	contacts := l.coord.o.Contacts()
	for i := range view.Nodes {
		n := &view.Nodes[i]
		contact := contacts[n.ID]
		was := l.known[n.ID]
		is := lifeOf(n, contact)
		is.boot = max(is.boot, was.boot)
		if is.lost == silent {
			is.silentSince = was.silentSince
			if was.lost != silent {
				is.silentSince = now.Add(-contact.Silent)
			}
		}
		if was == is {
			continue
		}
		changed = true
		l.known[n.ID] = is
		if is.boot > was.boot {
			returned = append(returned, n.ID)
		}
		if is.alive && !was.alive || is.boot > was.boot {
			l.rouse(n.ID)
		}
		l.noteLoss(n.ID, was, is, now)
	}
	if changed {
		l.recover.rouse()
		l.wishes.stale = true
	}
	return returned
}

// noteLoss acts on what has become of a node.
func (l *loop) noteLoss(node base.NodeID, was, is life, now time.Time) {
	if is.lost == silent {
		l.silent[node] = true
	} else {
		delete(l.silent, node)
	}
	if is.lost == notLost && was.lost != notLost && is.boot == was.boot {
		for a := range l.actives.ledBy(node) {
			l.recover.foundAgain(a.ID)
		}
	}
	l.judgeLed(node, now)
}

// rouse ends the pauses after a node's failures.
func (l *loop) rouse(node base.NodeID) {
	for to, b := range l.outboxes {
		if to.Node != node {
			continue
		}
		for i := range b.lanes {
			b.lanes[i].fails, b.lanes[i].retryAt = 0, time.Time{}
		}
	}
}

// remind files again all that nodes hold which have started anew: by their answers it is found which segments they led
// before and cannot go on with.
func (l *loop) remind(s *meta.State, nodes []base.NodeID) {
	if len(nodes) == 0 {
		return
	}
	for t := range s.All() {
		for _, r := range t.Ranges {
			ref := base.RangeRef{Topic: t.ID, Range: r.ID}
			for _, seg := range r.Placed() {
				for _, replica := range seg.Replicas {
					if slices.Contains(nodes, replica.Node) {
						put(&l.outbox(replica).lanes[background].waiting.segments, seg.ID, ref)
					}
				}
			}
		}
	}
}

// anyFit reports whether one of the replicas may lead a new segment, as far as is known here.
func (l *loop) anyFit(replicas []base.Replica) bool {
	view := l.coord.o.View()
	return slices.ContainsFunc(replicas, func(r base.Replica) bool {
		n, ok := view.Node(r.Node)
		return ok && n.Disk == r.Disk && n.Unfit() == ""
	})
}
