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

func TestSealAndSuccessor(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	first := n.put(1, 5, 100)
	void := makeBatch(1, 0, 5, 2, 100, -1, 0)
	require.NoError(t, n.appendWait(1, void)) // durable, never committed
	seal := func(end int64) error {
		return try(t, func(done func(error)) error { return n.Seal(1, end, base.CauseAge, done) })
	}
	require.ErrorIs(t, seal(4), base.CodeInvalidArgument, "below the commit")
	require.NoError(t, seal(5))
	require.NoError(t, seal(5))
	require.ErrorIs(t, seal(7), base.CodePreconditionFailed)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 0, 7, 1, 1, -1, 0)), base.CodeSegmentMoved)
	r, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.NoError(t, err)
	require.True(t, r.Sealed)
	require.Equal(t, int64(5), r.Next)
	require.Equal(t, int64(5), r.End)
	r, err = n.Read(refOf(1), 5, 1<<20, nil)
	require.NoError(t, err)
	require.True(t, r.Sealed)
	_, err = n.Read(refOf(1), 6, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)

	n.openSegment(specOf(2, 1, 5))
	second := n.put(2, 1, 50)
	want := append(append([]byte{}, first...), second...)
	check := func() {
		sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
		i, _ := n.Info(1)
		require.Equal(t, base.StateSealed, i.State)
		require.Equal(t, int64(5), i.SealedEnd)
		require.Equal(t, int64(5), i.Commit)
		require.Equal(t, base.CauseAge, i.SealedCause)
		require.Equal(t, int64(len(first)), i.Bytes)
	}
	check()
	require.NoError(t, n.checkpoint())
	check()
	n.restart()
	check()
	size, err := n.fs.Stat("data/topics/" + topicA.String() + "/1/1-0.log")
	require.NoError(t, err)
	require.Equal(t, int64(len(first)), size.Size, "what was void is cut off the file")
}

func TestSealCutsWhatTheFlusherHadWritten(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	first := n.put(1, 5, 5000)
	for i := range 4 {
		require.NoError(t, n.appendWait(1, makeBatch(1, 0, int64(5+i), 1, 9000, -1, 0)))
	}
	require.NoError(t, n.checkpoint())
	wait(t, func(done func(error)) error { return n.Seal(1, 5, base.CauseRecovery, done) })
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
	require.NoError(t, n.checkpoint())
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
	require.Zero(t, n.dirty.Load())
	i, _ := n.Info(1)
	require.Equal(t, int64(len(first)), i.Bytes)
	n.restart()
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
}
