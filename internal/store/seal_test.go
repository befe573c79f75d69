package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestASealFencesItsEpochForEver(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 3, 10))
	sealed := make(chan error, 1)
	require.NoError(t, n.Seal(1, 10, base.CauseReplicaFailure, func(err error) { sealed <- err }))
	require.ErrorIs(t, n.OpenSegment(specOf(2, 3, 10), nil), base.CodeFenced, "from the call on")
	require.NoError(t, <-sealed)
	again := func() {
		t.Helper()
		require.ErrorIs(t, n.OpenSegment(specOf(1, 3, 10), nil), base.CodeFenced)
		require.ErrorIs(t, n.OpenSegment(specOf(2, 3, 10), nil), base.CodeFenced)
		require.ErrorIs(t, n.OpenSegment(specOf(2, 2, 10), nil), base.CodeFenced)
	}
	again()
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	require.ErrorIs(t, n.OpenSegment(specOf(2, 3, 10), nil), base.CodeFenced, "the fence outlives the file")
	n.restart()
	require.ErrorIs(t, n.OpenSegment(specOf(2, 3, 10), nil), base.CodeFenced)
	n.restart()
	require.ErrorIs(t, n.OpenSegment(specOf(3, 3, 10), nil), base.CodeFenced)
	n.openSegment(specOf(4, 4, 10))
}

func TestForceSealAcceptsALoss(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	all := n.fill(1, 6, 100)
	end := endOf(all[:4])
	require.ErrorIs(t, n.Seal(1, end, base.CauseOperator, nil), base.CodeInvalidArgument)
	wait(t, func(done func(error)) error { return n.ForceSeal(1, end, base.CauseOperator, done) })
	sameBytes(t, bytesOf(all[:4]), n.mustRead(refOf(1), 10, 1<<20))
	n.restart()
	sameBytes(t, bytesOf(all[:4]), n.mustRead(refOf(1), 10, 1<<20))
}
