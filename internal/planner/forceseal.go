package planner

import (
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// ForceSeal plans the end of a segment whose end nobody can prove, at an operator's word: it ends with the longest
// extent that is intact (of a damaged copy, what lies below the damage), or is empty where there is none. Its answers
// are of replicas that are fenced, as for any recovery. Where the answers do prove an end there is nothing to force, and
// the error is CodePreconditionFailed.
func ForceSeal(in Input, rec Recovery, reason string) (meta.ForceSealSegment, Placement, error) {
	const op = "force seal"
	t, seg := in.find(rec.Ref, rec.Segment)
	switch {
	case t == nil:
		return meta.ForceSealSegment{}, Placement{}, base.Errorf(base.CodeTopicNotFound, op, "topic %s not found", rec.Ref.Topic)
	case seg == nil || seg.State != base.StateActive:
		return meta.ForceSealSegment{}, Placement{}, base.Errorf(base.CodePreconditionFailed, op, "%s is not the active segment of its range", rec.Segment)
	}
	if v := DecideEnd(seg, t.Config, rec.Answers, in.View); v.Decided {
		return meta.ForceSealSegment{}, Placement{}, base.Errorf(base.CodePreconditionFailed, op, "the end of %s is known without force: %s", rec.Segment, v.Why).
			WithHint("it is sealed by itself; to do it now: eg-cli segment seal %s", rec.Segment)
	}
	cmd := meta.ForceSealSegment{
		Topic: rec.Ref.Topic, Range: rec.Ref.Range, Segment: seg.ID, Epoch: seg.Epoch, Reason: reason, End: seg.Base, Opened: rec.remembersAlone(t),
	}
	for _, r := range seg.Replicas {
		a := answerOf(seg, r, rec.Answers)
		if a == nil || a.Kind != meta.Extent || a.End < seg.Base {
			cmd.Silent = append(cmd.Silent, r)
		}
		if a != nil && a.Kind != meta.NotMine && a.End >= cmd.End && !a.Unlisted {
			cmd.End, cmd.Bytes, cmd.LastAppendMs = a.End, a.Bytes, a.LastAppendMs
		}
	}
	if rec.SinceMs > 0 {
		cmd.GapMs = max(0, in.NowMs-rec.SinceMs)
	}
	placer := NewPlacer(in.View, in.NowMs, in.Rand)
	placement, err := placer.Place(in.heir(placer, t, seg, &rec, cmd.End))
	if err != nil {
		return meta.ForceSealSegment{}, placement, base.Wrap(base.CodeNotEnoughNodes, op, err)
	}
	cmd.Replicas, cmd.Boots = placement.Replicas, placement.Boots
	return cmd, placement, nil
}
