package meta

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// MaxRanges is how many ranges a topic may be created with.
const MaxRanges = 1024

func (a *applier) createTopic(cmd *CreateTopic) Result {
	s := a.state
	if err := s.checkCreate(cmd); err != nil {
		return refuse(err)
	}
	t := &Topic{
		ID: cmd.ID, Name: cmd.Name, Config: cmd.Config, Version: 1, ConfigVersion: 1, Epoch: 1,
		CreatedMs: s.nowMs, Internal: cmd.Internal, NextRange: base.RangeID(len(cmd.Spans) + 1),
	}
	for i, span := range cmd.Spans {
		t.Ranges = append(t.Ranges, &Range{
			ID: base.RangeID(i + 1), Span: span, State: base.StateActive,
			Segments: []*Segment{{
				ID: s.openSegment(), Epoch: t.Epoch, End: NoEnd, State: base.StateActive,
				Replicas: cmd.Replicas[i], CreatedMs: s.nowMs, Version: t.Version,
			}},
		})
		if len(cmd.Boots) > 0 {
			t.Ranges[i].Segments[0].Boots = cmd.Boots[i]
		}
	}
	s.put(t)
	a.emit(Event{Type: EventTopicCreated, Topic: t.ID, Name: t.Name, Node: t.Ranges[0].Segments[0].Leader().Node})
	return Result{TopicID: t.ID, Version: t.Version, Topic: t, Ranges: len(t.Ranges), Segments: len(t.Ranges)}
}

func (s *State) checkCreate(cmd *CreateTopic) *base.Error {
	const op = "create topic"
	if !cmd.Internal {
		if err := base.CheckTopicName(cmd.Name); err != nil {
			return asError(err)
		}
	}
	if err := cmd.Config.Validate(); err != nil {
		return asError(err)
	}
	if err := keyspace.CheckCover(cmd.Spans); err != nil {
		return asError(err)
	}
	switch t := s.names[cmd.Name]; {
	case t != nil:
		return base.Errorf(base.CodeTopicExists, op, "topic %q already exists", cmd.Name)
	case cmd.Name == "" || len(cmd.Name) > base.MaxTopicName:
		return base.Errorf(base.CodeInvalidTopicName, op, "an internal topic's name must have 1 to %d bytes", base.MaxTopicName)
	case !s.id.Contains(nameHash(cmd.Name), s.shards):
		return base.Errorf(base.CodeShardNotFound, op, "topic %q does not belong to shard %s", cmd.Name, s.id)
	case cmd.ID.IsZero() || s.topics[cmd.ID] != nil || s.tombs[cmd.ID] != nil:
		return base.Errorf(base.CodeInvalidArgument, op, "topic id %s is taken", cmd.ID)
	case len(cmd.Spans) > MaxRanges:
		return base.Errorf(base.CodeInvalidArgument, op, "%d ranges, at most %d are allowed", len(cmd.Spans), MaxRanges)
	case len(cmd.Replicas) != len(cmd.Spans):
		return base.Errorf(base.CodeInvalidArgument, op, "%d replica sets for %d ranges", len(cmd.Replicas), len(cmd.Spans))
	case len(cmd.Boots) > 0 && len(cmd.Boots) != len(cmd.Replicas):
		return base.Errorf(base.CodeInvalidArgument, op, "starts of %d replica sets, there are %d", len(cmd.Boots), len(cmd.Replicas))
	}
	for i, set := range cmd.Replicas {
		var boots []uint64
		if len(cmd.Boots) > 0 {
			boots = cmd.Boots[i]
		}
		if err := checkReplicas(set, boots); err != nil {
			return err
		}
	}
	return nil
}

// checkReplicas refuses a set that is empty or names a node twice, and starts that are not one a replica.
func checkReplicas(set []base.Replica, boots []uint64) *base.Error {
	const op = "check replicas"
	if len(boots) > 0 && len(boots) != len(set) {
		return base.Errorf(base.CodeInvalidArgument, op, "%d starts for %d replicas", len(boots), len(set))
	}
	if len(set) == 0 || len(set) > base.MaxReplicationFactor {
		return base.Errorf(base.CodeInvalidArgument, op, "a segment has 1 to %d replicas, not %d", base.MaxReplicationFactor, len(set))
	}
	for i, r := range set {
		if r.Node == "" || r.Disk.IsZero() {
			return base.Errorf(base.CodeInvalidArgument, op, "replica %d names no node or no disk", i)
		}
		if slices.ContainsFunc(set[:i], func(o base.Replica) bool { return o.Node == r.Node }) {
			return base.Errorf(base.CodeInvalidArgument, op, "node %s is named twice", r.Node)
		}
	}
	return nil
}
