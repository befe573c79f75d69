package planner

import (
	"fmt"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// TopicRequest is a wish for a new topic.
type TopicRequest struct {
	RequestID            base.RequestID
	ID                   base.TopicID
	Name                 string
	Config               base.TopicConfig // a factor of 0 means the smaller of 3 and the nodes that count
	Spans                []keyspace.Span  // nil: one range
	Internal             bool
	AllowUnderReplicated bool // open with min_replicas when there are not enough nodes for the factor
}

// DefaultReplicationFactor is what a topic gets that asks for none, on a cluster that is large enough.
const DefaultReplicationFactor = 3

// CreateTopic plans a new topic: the command to propose, and a sentence a node on where its segments go.
func CreateTopic(req TopicRequest, view topology.View, rand Source, nowMs int64) (meta.Command, []string, error) {
	const op = "create topic"
	config, asked := req.Config, req.Config.ReplicationFactor > 0
	if !asked {
		config.ReplicationFactor = max(1, min(DefaultReplicationFactor, view.Counted()))
	}
	if err := config.Validate(); err != nil {
		return meta.Command{}, nil, base.Wrap(base.CodeInvalidArgument, op, err)
	}
	spans := req.Spans
	if len(spans) == 0 {
		spans = keyspace.Tile(1)
	}
	least := config.ReplicationFactor
	if req.AllowUnderReplicated || !asked { // who names no factor does not insist on it
		least = config.MinReplicasOrDefault()
	}
	cmd := meta.CreateTopic{ID: req.ID, Name: req.Name, Config: config, Spans: spans, Internal: req.Internal}
	placer := NewPlacer(view, nowMs, rand)
	var explain []string
	for i := range spans {
		placement, err := placer.Place(Want{Config: config, Least: least})
		for _, line := range placement.Explain() {
			explain = append(explain, fmt.Sprintf("%s %s", base.RangeID(i+1), line))
		}
		if err != nil {
			err := notEnough(config, least, view)
			if n := fit(view); least == config.ReplicationFactor && n < least && n >= config.MinReplicasOrDefault() {
				err = err.WithHint("lower the replication factor to %d, add nodes, or begin with fewer copies: --allow-under-replicated", n)
			}
			return meta.Command{}, explain, err
		}
		cmd.Replicas = append(cmd.Replicas, placement.Replicas)
		cmd.Boots = append(cmd.Boots, placement.Boots)
	}
	return meta.Command{RequestID: req.RequestID, TimeMs: nowMs, CreateTopic: &cmd}, explain, nil
}

// CheckReplication refuses settings that the nodes there are could not serve: a topic altered to them would stop
// taking records with its next roll.
func CheckReplication(config base.TopicConfig, view topology.View) error {
	if fit(view) < config.ReplicationFactor {
		return notEnough(config, config.ReplicationFactor, view)
	}
	return nil
}

func fit(view topology.View) int {
	n := 0
	for i := range view.Nodes {
		if view.Nodes[i].Unfit() == "" {
			n++
		}
	}
	return n
}

func notEnough(config base.TopicConfig, least int, view topology.View) *base.Error {
	fit := fit(view)
	const op = "place topic"
	if least < config.ReplicationFactor { // fewer copies were allowed, and even those cannot be had
		why := "a majority of the factor, unless min_replicas is set"
		if config.MinReplicas > 0 {
			why = "its min_replicas"
		}
		err := base.Errorf(base.CodeNotEnoughNodes, op, "replication factor %d is not begun with fewer than %d replicas (%s), and %d of %d nodes can take a segment",
			config.ReplicationFactor, least, why, fit, len(view.Nodes))
		if fit > 0 {
			err = err.WithHint("pass --min-replicas %d, lower the replication factor to %d, or add nodes", fit, fit)
		}
		return err
	}
	err := base.Errorf(base.CodeNotEnoughNodes, op, "replication factor %d needs %d nodes, %d of %d can take a segment", config.ReplicationFactor, least, fit, len(view.Nodes))
	if fit > 0 && least > fit {
		err = err.WithHint("lower the replication factor to %d, or add nodes", fit)
	}
	return err
}
