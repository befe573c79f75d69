package planner

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// BatchSize is how many rolls or trims share one entry of the log.
const BatchSize = 256

// RollRequest is a leader's wish to end its active segment at End, which it has frozen: it will ack nothing above.
type RollRequest struct {
	Ref          base.RangeRef
	Segment      base.SegmentID
	Epoch        base.Epoch
	End          int64
	Cause        base.Cause    // REPLICA_FAILURE and RECOVERY keep the leader and whoever is well; the others bring a fresh set
	Late         []base.NodeID // replicas that it waited for in vain, itself perhaps among them
	Lost         []base.NodeID // followers that will never ack again: gone, restarted, or fenced
	Bytes        int64
	LastAppendMs int64
	FrozenMs     int64 // when it stopped acking; 0 when it still can
	WaitedMs     int64 // for how long a writer had waited for an ack then, in vain
}

// Recovery is a segment whose leader cannot go on, with the answers of its fenced replicas so far.
type Recovery struct {
	Ref     base.RangeRef
	Segment base.SegmentID
	Epoch   base.Epoch
	Cause   base.Cause // RECOVERY or LEADER_FAILURE
	SinceMs int64      // when somebody began to wait; 0 when nobody does
	Answers []meta.FenceAnswer

	// On, when not empty, are the only replicas that may lead the successor: they alone know what the range remembers,
	// and the segment's leader could not reach them.
	On []base.Replica
}

// Input is all that a plan is made of.
type Input struct {
	NowMs      int64
	View       topology.View
	Rand       Source
	Topic      func(base.TopicID) *meta.Topic // committed, nil when unknown
	Opened     Opened
	Rolls      []RollRequest
	Recoveries []Recovery
	Due        []base.TopicID // topics whose retention may have something to drop
}

// Plan is what to propose, and why the rest has to wait.
type Plan struct {
	Rolls   []meta.RollSegment
	Trims   []meta.TrimRange
	Waiting []Waiting
	Notes   []string // placements and verdicts, for the log
}

// Waiting is a roll or recovery that cannot be decided now; it is asked again.
type Waiting struct {
	Ref     base.RangeRef
	Segment base.SegmentID
	Err     *base.Error
}

// Make plans everything in the input. What names a segment that is not active any more is proposed all the same: the
// state machine answers it with what was committed, which is what whoever asked needs to know.
func Make(in Input) Plan {
	var p Plan
	placer := NewPlacer(in.View, in.NowMs, in.Rand)
	for i := range in.Rolls {
		p.roll(in, placer, &in.Rolls[i])
	}
	for i := range in.Recoveries {
		p.recovery(in, placer, &in.Recoveries[i])
	}
	for _, id := range in.Due {
		if t := in.Topic(id); t != nil {
			p.Trims = append(p.Trims, Trims(t, in.NowMs, in.Opened)...)
		}
	}
	return p
}

func (p *Plan) roll(in Input, placer *Placer, req *RollRequest) {
	t, seg := in.find(req.Ref, req.Segment)
	if t == nil {
		p.wait(req.Ref, req.Segment, base.Errorf(base.CodeTopicNotFound, "roll segment", "topic %s not found", req.Ref.Topic))
		return
	}
	cmd := meta.RollSegment{
		Topic: req.Ref.Topic, Range: req.Ref.Range, Segment: req.Segment, Epoch: req.Epoch, End: req.End, Cause: req.Cause,
		Bytes: req.Bytes, LastAppendMs: req.LastAppendMs, Opened: true, Late: req.Late, Lost: req.Lost,
	}
	if req.FrozenMs > 0 {
		cmd.GapMs = max(0, in.NowMs-req.FrozenMs) + max(0, req.WaitedMs)
	}
	if seg == nil || seg.State != base.StateActive {
		p.Rolls = append(p.Rolls, cmd) // there is nothing to place, and no want of nodes to wait for
		return
	}
	p.open(placer, cmd, in.successor(placer, t, seg, req))
}

func (p *Plan) recovery(in Input, placer *Placer, rec *Recovery) {
	t, seg := in.find(rec.Ref, rec.Segment)
	if seg == nil || seg.State != base.StateActive {
		return // sealed in the meantime, or gone: its holders are told by the assignment
	}
	verdict := DecideEnd(seg, t.Config, rec.Answers, in.View)
	p.Notes = append(p.Notes, fmt.Sprintf("%s of %s %s: %s", rec.Segment, t.Name, rec.Ref.Range, verdict.Why))
	if !verdict.Decided {
		p.wait(rec.Ref, rec.Segment, base.Errorf(base.CodeBusy, "recover segment", "%s", verdict.Why))
		return
	}
	cmd := meta.RollSegment{
		Topic: rec.Ref.Topic, Range: rec.Ref.Range, Segment: rec.Segment, Epoch: rec.Epoch, End: verdict.End, Cause: rec.Cause,
		Bytes: verdict.Bytes, LastAppendMs: verdict.LastAppendMs, Opened: verdict.Opened || rec.remembersAlone(t), Lossy: verdict.Lossy,
	}
	cmd.GapMs = rec.gapMs(in.NowMs, verdict.LastAppendMs)
	p.open(placer, cmd, in.heir(placer, t, seg, rec, verdict.End))
}

// noticedMs is how long after a leader's end clients may still find out about it.
const noticedMs = 10_000

// gapMs is how long those who wait have waited by now. Nobody knows when a dead leader acked for the last time, but it was
// right after the last append that its replicas have; who wrote then has waited ever since, and not only since it was known
// to the coordinator that somebody does. Where that append is old nobody wrote when the leader went, and the wish counts.
func (rec *Recovery) gapMs(nowMs, lastAppendMs int64) int64 {
	if rec.SinceMs == 0 {
		return 0
	}
	since := rec.SinceMs
	if before := since - lastAppendMs; before > 0 && before <= noticedMs {
		since = lastAppendMs
	}
	return max(0, nowMs-since)
}

// remembersAlone reports whether what the range remembers is in this segment alone: some copy of it was opened, and all
// before it was trimmed since.
func (rec *Recovery) remembersAlone(t *meta.Topic) bool {
	opened := func(a meta.FenceAnswer) bool { return a.Kind == meta.Extent && !a.Unlisted }
	return len(t.Range(rec.Ref.Range).Segments) == 1 && slices.ContainsFunc(rec.Answers, opened)
}

// open gives a roll the replica set of its successor.
func (p *Plan) open(placer *Placer, cmd meta.RollSegment, w Want) {
	placement, err := placer.Place(w)
	if err != nil {
		p.wait(base.RangeRef{Topic: cmd.Topic, Range: cmd.Range}, cmd.Segment, base.Wrap(base.CodeNotEnoughNodes, "roll segment", err))
		return
	}
	cmd.Replicas, cmd.Boots = placement.Replicas, placement.Boots
	p.Rolls = append(p.Rolls, cmd)
}

func (p *Plan) wait(ref base.RangeRef, seg base.SegmentID, err *base.Error) {
	p.Waiting = append(p.Waiting, Waiting{Ref: ref, Segment: seg, Err: err})
}

func (in *Input) find(ref base.RangeRef, id base.SegmentID) (*meta.Topic, *meta.Segment) {
	t := in.Topic(ref.Topic)
	if t == nil {
		return nil, nil
	}
	r := t.Range(ref.Range)
	if r == nil {
		return t, nil
	}
	return t, r.Segment(id)
}

// Commands cuts the plan into entries of the log. The rolls keep their order, so the results can be told apart.
func (p *Plan) Commands(nowMs int64) []meta.Command {
	var cmds []meta.Command
	for rolls := p.Rolls; len(rolls) > 0; {
		n := min(len(rolls), BatchSize)
		cmds = append(cmds, meta.Command{TimeMs: nowMs, RollSegments: rolls[:n:n]})
		rolls = rolls[n:]
	}
	for trims := p.Trims; len(trims) > 0; {
		n := min(len(trims), BatchSize)
		cmds = append(cmds, meta.Command{TimeMs: nowMs, TrimRanges: trims[:n:n]})
		trims = trims[n:]
	}
	return cmds
}
