package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// Verdict is where a segment whose leader is gone ends, or why that cannot be said yet.
type Verdict struct {
	Decided      bool
	End          int64
	Bytes        int64 // of the copy that decided
	LastAppendMs int64
	Opened       bool // all copies had been opened: they know what the range remembered at the segment's base
	Lossy        bool // a maximum on a topic that acks before fsync: recorded as possible loss
	Why          string
}

// DecideEnd judges the fence answers of one segment. Every ack needed all replicas, so any intact copy
// holds all that was acked, and the shortest intact one is the safest end that all can be brought to:
//
//  1. Copies on another disk than the one named, damaged copies and refusals prove nothing. A disk that is gone for good
//     is waited for no more than a node that is.
//  2. Extents of replicas that ran unbroken since they got the segment decide, by minimum; one is enough.
//  3. Only if none came, the maximum of the restarted ones decides, so that one silently shortened disk never lowers
//     the end: two or more of them, or one if the factor is 1 or the others are out.
//
// After a maximum some copies may be short, in the worst case all but one. The successor opens all the same: they copy what
// they lack as soon as they hear of the end, and to hold the range's writers up for that would make the copying no faster
// and the one whole copy no safer. Nor may the commit wait, since it is what keeps a later verdict, made without that copy,
// from ending the segment below it.
func DecideEnd(seg *meta.Segment, config base.TopicConfig, answers []meta.FenceAnswer, view topology.View) Verdict {
	var unbroken, restarted []meta.FenceAnswer
	var out, silent, unusable int
	for _, r := range seg.Replicas {
		switch a := answerOf(seg, r, answers); {
		case (a == nil || a.Kind == meta.NotMine) && gone(r, view):
			out++
		case a == nil:
			silent++
		case a.Kind != meta.Extent || a.End < seg.Base:
			unusable++
		case a.Unbroken:
			unbroken = append(unbroken, *a)
		default:
			restarted = append(restarted, *a)
		}
	}
	opened := !slices.ContainsFunc(slices.Concat(unbroken, restarted), func(a meta.FenceAnswer) bool { return a.Unlisted })
	byEnd := func(a, b meta.FenceAnswer) int { return int(min(max(a.End-b.End, -1), 1)) }
	if len(unbroken) > 0 {
		a := slices.MinFunc(unbroken, byEnd)
		return decided(a, opened, fmt.Sprintf("the shortest of %d unbroken copies ends at %d", len(unbroken), a.End))
	}
	lone := len(seg.Replicas) == 1 || silent+unusable == 0
	if len(restarted) > 1 || len(restarted) == 1 && lone {
		a := slices.MaxFunc(restarted, byEnd)
		v := decided(a, opened, fmt.Sprintf("the longest of %d restarted copies ends at %d", len(restarted), a.End))
		v.Lossy = config.Durability == base.DurabilityReplicated
		return v
	}
	return Verdict{Why: "no end is certain: of " + copies(len(seg.Replicas)) + " " + listed(
		count{len(restarted), "restarted"}, count{unusable, "damaged or on another disk"}, count{silent, "without an answer"}, count{out, "lost for good"},
	)}
}

// count is how many copies are in some state.
type count struct {
	n  int
	as string
}

// listed puts counts into words; what there is none of is left out.
func listed(counts ...count) string {
	var list []string
	for _, c := range counts {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.as))
		}
	}
	return strings.Join(list, ", ")
}

func copies(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}

// answerOf is the replica's answer, or nil when there is none.
func answerOf(seg *meta.Segment, r base.Replica, answers []meta.FenceAnswer) *meta.FenceAnswer {
	i := slices.IndexFunc(answers, func(a meta.FenceAnswer) bool { return a.Replica == r && a.Segment == seg.ID && a.Err == "" })
	if i < 0 {
		return nil
	}
	return &answers[i]
}

// gone reports whether a replica is off for good, as committed: its node is out, or was given another disk. One that the
// view does not know may come any moment.
func gone(r base.Replica, view topology.View) bool {
	n, ok := view.Node(r.Node)
	return ok && (n.Standing == topology.Out || n.Admitted && n.Disk != r.Disk)
}

func decided(a meta.FenceAnswer, opened bool, why string) Verdict {
	return Verdict{Decided: true, End: a.End, Bytes: a.Bytes, LastAppendMs: a.LastAppendMs, Opened: opened, Why: why}
}
