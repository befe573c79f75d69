package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// An ack that did not wait for disks has no times of theirs: neither a negative one, nor an empty row.
func TestTraceTellsFsyncsThatTheAckWaitedFor(t *testing.T) {
	trace := sdk.Trace{
		Leader: "n1", Taken: time.Millisecond, Commit: 4 * time.Millisecond,
		Followers: []sdk.FollowerTrace{{Node: "n2", Sent: time.Millisecond, Acked: 3 * time.Millisecond}},
	}
	stages := func() (names []string) {
		for _, s := range newPublishTrace(trace).Stages {
			require.GreaterOrEqual(t, s.TookMs, 0.0, s.Stage)
			names = append(names, s.Stage)
		}
		return names[4:] // of the brokers, and the total
	}
	require.Equal(t, []string{"commit", "replicate", "total"}, stages())

	trace.LeaderFsync, trace.Followers[0].Fsync = 2*time.Millisecond, time.Millisecond
	require.Equal(t, []string{"commit", "leader_fsync", "replicate", "follower_fsync", "total"}, stages())
}
