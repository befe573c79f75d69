package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// Renewal is an active segment that should roll although nobody is held up by it: it has fewer replicas than it should
// and better can be had, or one of its replicas is on a node that is being drained, or its leader stops. Its leader is
// asked for a planned roll with this cause.
//
// A node that is drained is to hold nothing that is written to, so all goes that it leads or follows. One that stops comes
// back with what it has, as a rule, and hands over what it leads, for that costs writers less than to find out. What it
// follows stays: a segment that is written to rolls when the follower is gone, which costs its writers about as much as a
// roll before that would; one that is not costs nothing, where it would roll twice, now and when the node is back.
type Renewal struct {
	Ref     base.RangeRef
	Segment base.SegmentID
	Epoch   base.Epoch
	Leader  base.Replica
	Cause   base.Cause // RECOVERY or DRAIN
	Have    int        // replicas that are well
	Want    int
	DueMs   int64 // not before
	Why     string
}

// Renewals lists the renewals of a topic's active segments. Those whose leader is gone are not among them, for they are
// recovered. Renewals that nodes are not settled enough for are listed with the time at which they will be.
func Renewals(t *meta.Topic, view topology.View, nowMs int64) []Renewal {
	var list []Renewal
	for _, r := range t.Ranges {
		if seg := r.Active(); seg != nil {
			if n, ok := renewal(t, seg, view, nowMs); ok {
				n.Ref = base.RangeRef{Topic: t.ID, Range: r.ID}
				list = append(list, n)
			}
		}
	}
	return list
}

func renewal(t *meta.Topic, seg *meta.Segment, view topology.View, nowMs int64) (Renewal, bool) {
	n := Renewal{Segment: seg.ID, Epoch: seg.Epoch, Leader: seg.Leader(), Want: t.Config.ReplicationFactor, DueMs: nowMs}
	parting, stay := "", 0
	for i, r := range seg.Replicas {
		health := healthOf(seg, r, view)
		if i == 0 && health == lost {
			return Renewal{}, false
		}
		if health != lost {
			n.Have++
		}
		if parting == "" && (health == parts || health == stops && i == 0) {
			parting = string(r.Node)
		}
		if node, ok := view.Node(r.Node); ok && health == well && node.Unfit() == "" && !node.Full && (i == 0 || !node.Slow) {
			stay++
		}
	}
	if parting == "" && n.Have >= n.Want || !Replaceable(t.Config, nil, nil, view) { // a roll that waits would hold up writers
		return Renewal{}, false
	}
	if parting != "" {
		n.Cause, n.Why = base.CauseDrain, parting+" is being drained, or stops"
		return n, true
	}
	others := candidates(seg, view)
	more := n.Have + 1 - stay // so many others make the next set larger than this one
	if len(others) < more {
		return Renewal{}, false
	}
	n.Cause, n.DueMs = base.CauseRecovery, max(nowMs, others[more-1].SettledMs)
	n.Why = fmt.Sprintf("%d of %d replicas are well, and %s can be one", n.Have, n.Want, others[0].ID)
	return n, true
}

// health is how a replica of an active segment stands.
type health int

const (
	well  health = iota
	parts        // its node is being drained
	stops        // its node stops, and does not take part in what rolls
	lost         // its node is gone, or has started again since
)

func healthOf(seg *meta.Segment, r base.Replica, view topology.View) health {
	n, ok := view.Node(r.Node)
	switch {
	case !ok:
		return well // nobody has said otherwise yet
	case n.Liveness >= topology.Dead, n.Standing == topology.Out, n.Disk != r.Disk, movedOn(seg, r, &n):
		return lost
	case n.Standing == topology.Draining:
		return parts
	case n.Leaving:
		return stops
	}
	return well
}

// candidates are the nodes that the segment's successor could have beside the replicas that are well, those first that
// are settled soonest.
func candidates(seg *meta.Segment, view topology.View) []*topology.Node {
	var list []*topology.Node
	for i := range view.Nodes {
		n := &view.Nodes[i]
		r := base.Replica{Node: n.ID, Disk: n.Disk}
		taken := slices.Contains(seg.Replicas, r) && healthOf(seg, r, view) != lost
		if !taken && n.Unfit() == "" && !n.Slow && !n.Full {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *topology.Node) int { return cmp.Compare(a.SettledMs, b.SettledMs) })
	return list
}

// Replaceable reports whether a segment of a topic could go on without some of its replicas: whether a set of min_replicas
// can be had among the others. A slow node takes nobody's place, but it keeps its own, for it keeps up. Where it cannot,
// waiting for a late replica is better than a roll.
func Replaceable(config base.TopicConfig, replicas []base.Replica, without []base.NodeID, view topology.View) bool {
	fit := 0
	for i := range view.Nodes {
		n := &view.Nodes[i]
		stays := slices.Contains(replicas, base.Replica{Node: n.ID, Disk: n.Disk})
		if n.Unfit() == "" && (stays || !n.Slow && !n.Full) && !slices.Contains(without, n.ID) {
			fit++
		}
	}
	return fit >= config.MinReplicasOrDefault()
}
