package shard

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
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

func TestConfirmed(t *testing.T) {
	a, b := base.UUID{1}, base.UUID{2}
	var c confirmed
	c.added(a, 9)
	c.ordered(a, 9)
	require.False(t, c.has(a), "before a term nothing is known")
	c.begin(3, 20)
	require.False(t, c.has(a))
	c.ordered(a, 19)
	require.False(t, c.has(a), "an order of before the term may be of an earlier seat")
	c.ordered(a, 20)
	require.True(t, c.has(a))
	c.begin(3, 25)
	require.True(t, c.has(a), "the same term")

	c.added(b, 30)
	c.ordered(b, 29)
	require.False(t, c.has(b), "an order that was on its way before it was added again")
	c.ordered(b, 31)
	require.True(t, c.has(b))
	c.added(b, 40)
	require.False(t, c.has(b), "added again")
	c.begin(4, 41)
	require.False(t, c.has(a), "another term")
}
