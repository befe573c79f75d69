package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

func TestWhoMayVoteAndLead(t *testing.T) {
	seen := topology.Seen{ID: "n1", Boot: 1, Admitted: true}
	starting, leaving := seen, seen
	starting.Admitted, leaving.Leaving = false, true
	standing := func(s topology.Standing) topology.Event {
		return topology.Event{Standing: &topology.StandingChange{ID: "n1", Standing: s}}
	}
	for name, c := range map[string]struct {
		events      []topology.Event
		votes, lead bool
	}{
		"nobody knows it": {nil, false, false},
		"alive":           {[]topology.Event{{Seen: &seen}}, true, true},
		"not admitted":    {[]topology.Event{{Seen: &starting}}, false, false},
		"leaving":         {[]topology.Event{{Seen: &leaving}}, false, false},
		"draining":        {[]topology.Event{{Seen: &seen}, standing(topology.Draining)}, true, false},
		"out":             {[]topology.Event{{Seen: &seen}, standing(topology.Out)}, false, false},
		"dead":            {[]topology.Event{{Seen: &seen}, {Moved: &topology.Moved{ID: "n1", Boot: 1, Liveness: topology.Dead}}}, false, false},
	} {
		view := topology.Build(1, c.events)
		require.Equal(t, c.votes, canVote(view, base.NodeID("n1")), name)
		require.Equal(t, c.lead, canLead(view, base.NodeID("n1")), name)
	}
}
