package planner

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// lostPatience is how long a follower that its leader has lost stays out of the successor even if that is not opened
// for want of it. A link that is cut for a moment heals in that time, and one that stays cut costs a roll each time.
const lostPatience = time.Second

// suspectFor is how long after a roll the next one makes its leader suspect.
const suspectFor = 10 * time.Second

// successor is the set for a roll that the segment's leader asks for. When replicas fail, are too few or leave, the others
// stay, the leader first: it goes on with what it has in memory, and producers see nothing but the wait. Where the leader
// names itself, is suspect, or is the one that leaves, the best of the others leads. The other rolls are planned, and
// spread the load anew.
func (in *Input) successor(placer *Placer, t *meta.Topic, seg *meta.Segment, req *RollRequest) Want {
	w := Want{Config: t.Config, Least: t.Config.MinReplicasOrDefault()}
	if in.suspect(t.Range(req.Ref.Range), seg, req) {
		w.Late = []base.NodeID{seg.Leader().Node} // and not those that it names
	} else {
		w.Late, w.Lost = in.failed(seg, req)
	}
	switch req.Cause {
	case base.CauseReplicaFailure:
		// A node whose disk is full refuses the first batch: the next roll would follow at once, and another, for as long as
		// there is no room, where to wait for it costs nothing.
		w.Keep, w.Room = in.remaining(placer, seg, w.Late), true
	case base.CauseRecovery, base.CauseDrain:
		w.Keep = in.remaining(placer, seg, w.Late)
	default:
	}
	return w
}

// failed are the replicas that are taken again only where there are no others, and those that are not taken at all.
func (in *Input) failed(seg *meta.Segment, req *RollRequest) (late, lost []base.NodeID) {
	late = slices.Clone(req.Late)
	for _, id := range req.Lost {
		switch n, ok := in.View.Node(id); {
		case ok && movedOn(seg, base.Replica{Node: id, Disk: n.Disk}, &n):
			// What was lost is a start that is over: the next one is a candidate like any other, once it is settled.
		case in.waited(req) >= lostPatience:
			late = append(late, id)
		default:
			lost = append(lost, id)
		}
	}
	return late, lost
}

// suspect reports whether it is rather the leader that failed: it names all of its followers, and they are well as far
// as anybody else knows. With a single one that takes its own suspicion, or a second time soon after the first.
func (in *Input) suspect(r *meta.Range, seg *meta.Segment, req *RollRequest) bool {
	well := 0
	for _, f := range seg.Replicas[1:] {
		if !slices.Contains(req.Late, f.Node) && !slices.Contains(req.Lost, f.Node) {
			return false
		}
		if n, ok := in.View.Node(f.Node); ok && n.Unfit() == "" && !n.Slow && !n.Full && !movedOn(seg, f, &n) {
			well++
		}
	}
	return well > 1 || well == 1 && (slices.Contains(req.Late, seg.Leader().Node) || in.again(r, seg))
}

// again reports whether the segment before this one, of the same leader, ended a moment ago because replicas failed.
func (in *Input) again(r *meta.Range, seg *meta.Segment) bool {
	i := slices.Index(r.Segments, seg) - 1
	return i >= 0 && r.Segments[i].Cause == base.CauseReplicaFailure && r.Segments[i].Leader() == seg.Leader() &&
		time.Duration(in.NowMs-seg.CreatedMs)*time.Millisecond < suspectFor
}

// remaining are the replicas of a segment that are well, in the order in which they should go on.
func (in *Input) remaining(placer *Placer, seg *meta.Segment, late []base.NodeID) []base.Replica {
	list := slices.DeleteFunc(in.well(seg), func(r base.Replica) bool { return slices.Contains(late, r.Node) })
	if len(list) > 0 && list[0] == seg.Leader() && placer.able(list[0]) {
		return list
	}
	return placer.led(list)
}

// waited is how long the request's writers have waited. The leader's clock may be another than the coordinator's.
func (in *Input) waited(req *RollRequest) time.Duration {
	if req.FrozenMs == 0 {
		return 0
	}
	return (time.Duration(in.NowMs-req.FrozenMs) * time.Millisecond).Abs()
}

// well are those of the segment's replicas whose nodes have not started again since they were placed. A start that
// came later knows nothing of the segment: it is a candidate like any other.
func (in *Input) well(seg *meta.Segment) []base.Replica {
	var list []base.Replica
	for _, r := range seg.Replicas {
		if n, ok := in.View.Node(r.Node); ok && !movedOn(seg, r, &n) {
			list = append(list, r)
		}
	}
	return list
}

// movedOn reports whether a replica's node has started again since it was placed.
func movedOn(seg *meta.Segment, r base.Replica, n *topology.Node) bool {
	boot := seg.BootOf(r)
	return boot != 0 && n.Boot > boot
}

// heir is the set for the successor of a segment that the coordinator seals. The leader is one of the fenced replicas
// that hold the segment to its end, for they know what the range remembers and have its tail in memory; the others of
// them stay. Who did not answer the fence is taken only where it must be.
func (in *Input) heir(placer *Placer, t *meta.Topic, seg *meta.Segment, rec *Recovery, end int64) Want {
	w := Want{Config: t.Config, Least: t.Config.MinReplicasOrDefault(), Leads: rec.On}
	var opened, unopened []base.Replica
	for _, r := range seg.Replicas {
		switch a := answerOf(seg, r, rec.Answers); {
		case a == nil:
			w.Late = append(w.Late, r.Node)
		case a.Kind != meta.Extent || a.End < end:
		case a.Unlisted:
			unopened = append(unopened, r)
		default:
			opened = append(opened, r)
		}
	}
	if w.Keep = placer.led(opened); len(w.Keep) == 0 {
		w.Keep, unopened = placer.led(unopened), nil
	}
	w.Keep = append(w.Keep, unopened...)
	return w
}
