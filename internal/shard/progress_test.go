package shard

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	var p progress
	now := time.Now()
	require.False(t, p.of(0, "a").follows(now))
	entries := func(term, before uint64, n int, success bool) {
		req := &raft.AppendEntriesRequest{Term: term, PrevLogEntry: before, Entries: make([]*raft.Log, n)}
		p.appended("a", req, &raft.AppendEntriesResponse{Success: success})
	}
	entries(3, 10, 5, false)
	require.Zero(t, p.of(3, "a"), "a refusal says nothing")
	entries(3, 10, 5, true)
	require.Equal(t, uint64(15), p.of(3, "a").match)
	require.True(t, p.of(3, "a").follows(now))
	entries(3, 0, 0, true)
	require.Equal(t, uint64(15), p.of(3, "a").match, "a heartbeat says nothing of the log")
	entries(3, 12, 0, true)
	require.Equal(t, uint64(15), p.of(3, "a").match, "a late answer takes nothing back")
	require.False(t, p.of(3, "a").follows(now.Add(time.Minute)))

	p.installed("a", &raft.InstallSnapshotRequest{Term: 4, LastLogIndex: 9}, &raft.InstallSnapshotResponse{Success: true})
	require.Equal(t, uint64(9), p.of(4, "a").match, "another term begins anew")
	require.Zero(t, p.of(3, "a"))
	p.forget("a")
	require.Zero(t, p.of(4, "a"))
	p.installed("a", &raft.InstallSnapshotRequest{Term: 4, LastLogIndex: 9}, &raft.InstallSnapshotResponse{Success: true})
	entries(3, 20, 1, true)
	require.Equal(t, uint64(9), p.of(4, "a").match, "an answer to an earlier term is late")
}
