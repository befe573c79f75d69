package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/chaos"
	"github.com/eastguard/eastguard/sdk"
)

// Brokers are killed, stopped in their tracks and started again while clients write to topics of three replicas and read
// from them. Nothing that was acked is lost, doubled or out of order. scripts/chaos.sh does this longer, with faults of
// the network and of disks.
func TestClusterChaos(t *testing.T) {
	c := newCluster(t, 3, "--shards", "8")
	_, err := c.ColdStart(limit)
	require.NoError(t, err)
	rep, err := chaos.Play(t.Context(), chaos.Options{
		Cluster: c, For: 10 * time.Second, Seed: 1, Calm: 500 * time.Millisecond, Choice: append(chaos.Processes(), chaos.AllAtOnce()),
		Topics: 2, Writers: 2, Pace: 10 * time.Millisecond, Config: sdk.TopicConfig{ReplicationFactor: 3, SegmentBytes: 1 << 20},
	})
	require.NoError(t, err)
	var said strings.Builder
	rep.Print(&said)
	t.Log(said.String())
	require.True(t, rep.Sound(), "records are not as they were promised")
	require.Positive(t, rep.Acked)
	require.NoError(t, c.Stop(limit))
}
