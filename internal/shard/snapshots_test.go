package shard

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
)

// A snapshot that does not fit is tried again later; one whose sync failed is the end, like every sync.
func TestSyncOfASnapshotIsFinal(t *testing.T) {
	for _, c := range []struct {
		rule  vfs.Rule
		fatal bool
	}{
		{vfs.Rule{Ops: vfs.OpWrite, Path: "*.snap.tmp", Err: syscall.ENOSPC}, false},
		{vfs.Rule{Ops: vfs.OpSync, Path: "*.snap.tmp", Err: syscall.ENOSPC}, true},
		{vfs.Rule{Ops: vfs.OpRename, Path: "*.snap.tmp", Err: syscall.EIO}, true},
		{vfs.Rule{Ops: vfs.OpSyncDir, Path: "meta/snapshots/0", Err: syscall.EIO}, true},
	} {
		fault := vfs.NewFault(vfs.NewMem())
		o := options(fault)
		o.Shards = 1
		ends := make(chan error, 1)
		o.OnFatal = func(err error) { ends <- err }
		h := start(t, o)
		require.NoError(t, create(t.Context(), h, 1))
		fault.Add(c.rule)
		require.Error(t, h.all()[0].raft.Snapshot().Error())
		require.Len(t, ends, map[bool]int{true: 1}[c.fatal], "%s", c.rule.Ops)
		fault.Clear()
		require.NoError(t, h.Close())
	}
}
