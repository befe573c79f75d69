package planner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
)

func TestStanding(t *testing.T) {
	known := []base.NodeID{"n1", "n2", "n3", "n4"}
	now := time.Unix(1000, 0)
	view := topology.View{}
	for _, id := range known[:3] {
		view = topology.Reduce(view, topology.Event{Seen: &topology.Seen{ID: id, Boot: 1, Admitted: true}})
	}
	move := func(id base.NodeID, to topology.Liveness) {
		view = topology.Reduce(view, topology.Event{Moved: &topology.Moved{ID: id, Boot: 1, Liveness: to}})
	}
	var a Absences
	look := func(after time.Duration) []base.NodeID {
		now = now.Add(after)
		return a.Standing(now, known, view, 10*time.Second)
	}
	require.Empty(t, look(0))
	move("n2", topology.Suspect)
	for range 5 {
		require.Empty(t, look(time.Second))
	}
	move("n2", topology.Dead)
	for range 4 {
		require.Empty(t, look(time.Second))
	}
	// n4 was never met; its time began with the first look.
	require.Equal(t, []base.NodeID{"n4"}, look(time.Second))
	require.Equal(t, 4*time.Second, a.Gone("n2"))

	// Time in which nobody looked does not count: it adds one step.
	require.Equal(t, []base.NodeID{"n4"}, look(time.Hour))
	require.Equal(t, 4*time.Second+AbsenceStep, a.Gone("n2"))
	require.Equal(t, []base.NodeID{"n2", "n4"}, look(time.Second))

	// Who is out already is not named again, and who comes back begins anew.
	view = topology.Reduce(view, topology.Event{Standing: &topology.StandingChange{ID: "n2", Standing: topology.Out}})
	require.Equal(t, []base.NodeID{"n4"}, look(time.Second))
	view = topology.Reduce(view, topology.Event{Seen: &topology.Seen{ID: "n4", Boot: 2, Admitted: true}})
	require.Empty(t, look(time.Second))
	require.Zero(t, a.Gone("n4"))
	move("n3", topology.Left)
	require.Empty(t, look(0))
	for range 2 {
		require.Empty(t, look(4*time.Second))
	}
	require.Equal(t, []base.NodeID{"n3"}, look(2*time.Second))
}
