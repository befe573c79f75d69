package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/shard"
)

func TestShardsWithoutALeaderAreTold(t *testing.T) {
	one, two := base.ShardID{Root: 1}, base.ShardID{Root: 2}
	start := time.Unix(1_800_000_000, 0)
	var w leaderWatch
	// A step is who leads shard 1, and then shard 2, some seconds after the start; and what is told.
	for _, step := range []struct {
		at          int
		first, next base.NodeID
		told        []string
	}{
		{0, "n1", "n2", nil},
		{2, "", "n2", nil},
		{4, "", "n2", nil},
		{6, "", "", []string{"SHARD_LEADERLESS shard 1"}},
		{8, "", "n1", nil}, // shard 2 had an election
		{60, "", "n1", nil},
		{62, "n3", "", []string{"SHARD_LED_AGAIN shard 1"}},
		{64, "n3", "", nil},
		{66, "n3", "", []string{"SHARD_LEADERLESS shard 2"}},
	} {
		var told []string
		for _, e := range w.look([]shard.Status{{ID: one, Leader: step.first}, {ID: two, Leader: step.next}}, start.Add(time.Duration(step.at)*time.Second)) {
			told = append(told, e.Type+" "+e.Subject)
			if e.Type == "SHARD_LED_AGAIN" {
				require.EqualValues(t, 60_000, e.GapMs)
				require.Equal(t, "n3", e.After)
			}
		}
		require.Equal(t, step.told, told, "after %d s", step.at)
	}
	require.Empty(t, w.look(nil, start.Add(time.Hour)), "a replica that is gone")
	require.Empty(t, w.lost)
}
