package meta

import (
	"github.com/eastguard/eastguard/internal/base"
)

// ForceSealSegment ends the active segment of a range at End, which nobody could prove, and opens its successor: an
// operator accepts that acked records above End are lost. It takes effect only if (Segment, Epoch) is what is active.
type ForceSealSegment struct {
	Topic        base.TopicID   `cbor:"1,keyasint"`
	Range        base.RangeID   `cbor:"2,keyasint"`
	Segment      base.SegmentID `cbor:"3,keyasint"`
	Epoch        base.Epoch     `cbor:"4,keyasint"`
	End          int64          `cbor:"5,keyasint"`
	Replicas     []base.Replica `cbor:"6,keyasint"` // of the successor, leader first
	Boots        []uint64       `cbor:"7,keyasint,omitempty"`
	Reason       string         `cbor:"8,keyasint,omitempty"` // the operator's words
	Silent       []base.Replica `cbor:"9,keyasint,omitempty"` // replicas that did not answer, or not with an intact copy
	Bytes        int64          `cbor:"10,keyasint,omitempty"`
	LastAppendMs int64          `cbor:"11,keyasint,omitempty"`
	GapMs        int64          `cbor:"12,keyasint,omitempty"`
	Opened       bool           `cbor:"13,keyasint,omitempty"` // some replica has confirmed Segment
}

// Forced is what is remembered of it, for ever.
type Forced struct {
	Reason string         `cbor:"1,keyasint,omitempty"`
	TimeMs int64          `cbor:"2,keyasint"`
	Silent []base.Replica `cbor:"3,keyasint,omitempty"`
}

// MaxReason is how many bytes of an operator's words are kept.
const MaxReason = 1024

// forceSeal is a roll whose end an operator answers for.
func (a *applier) forceSeal(cmd *ForceSealSegment) Result {
	const op = "force seal"
	if len(cmd.Reason) > MaxReason || len(cmd.Silent) > base.MaxReplicationFactor {
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "a reason has at most %d bytes, and a segment %d replicas", MaxReason, base.MaxReplicationFactor))
	}
	roll := a.rollSegment(&RollSegment{
		Topic: cmd.Topic, Range: cmd.Range, Segment: cmd.Segment, Epoch: cmd.Epoch, End: cmd.End, Cause: base.CauseOperator,
		Replicas: cmd.Replicas, Boots: cmd.Boots, Bytes: cmd.Bytes, LastAppendMs: cmd.LastAppendMs, GapMs: cmd.GapMs, Opened: cmd.Opened,
	}, &Forced{Reason: cmd.Reason, TimeMs: a.state.nowMs, Silent: cmd.Silent})
	result := Result{Code: roll.Code, Message: roll.Message, TopicID: cmd.Topic, Topic: roll.Topic, Rolls: []RollResult{roll}}
	if roll.Topic != nil {
		result.Version = roll.Topic.Version
	}
	return result
}
