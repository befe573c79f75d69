package store

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
)

// A full disk is waited for, but not where a sync or a rename met it: what became of it nobody knows.
func TestSyncOfTheCatalogueOnAFullDiskIsTheEnd(t *testing.T) {
	for _, rule := range []vfs.Rule{
		{Ops: vfs.OpSync, Path: "catalogue.tmp"},
		{Ops: vfs.OpClose, Path: "catalogue.tmp"},
		{Ops: vfs.OpRename, Path: "catalogue.tmp"},
		{Ops: vfs.OpSyncDir, Path: "data"},
	} {
		fault := vfs.NewFault(vfs.NewMem())
		n := start(t, fault, small())
		n.openSegment(specOf(1, 0, 0))
		n.put(1, 1, 3)
		rule.Err = syscall.ENOSPC
		fault.Add(rule)
		require.ErrorIs(t, n.checkpoint(), syscall.ENOSPC)
		require.False(t, isNoSpace(n.checkpoint()), rule.Ops)
		fault.Clear()
	}
}
