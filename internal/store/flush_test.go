package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestBackPressure(t *testing.T) {
	o := small()
	o.DirtyBytes = 200 << 10
	n := start(t, vfs.NewMem(), o) // not started: nothing is flushed
	n.openSegment(specOf(1, 0, 0))
	var err error
	for i := range 100 {
		if err = n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10_000, -1, 0)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, base.CodeBusy)
	require.LessOrEqual(t, n.dirty.Load(), o.DirtyBytes)
	i, _ := n.Info(1)
	require.NoError(t, n.checkpoint())
	require.NoError(t, n.appendWait(1, makeBatch(1, 0, i.DurableEnd, 1, 10_000, -1, 0)), "room again")

	o = small()
	o.WALBytes = 200 << 10
	n = start(t, vfs.NewMem(), o)
	n.openSegment(specOf(1, 0, 0))
	for i := range 100 {
		if err = n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10_000, -1, 0)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, base.CodeBusy)
}

func TestTheLogIsTrimmedWhateverIsIdle(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	idle := specOf(2, 0, 0)
	idle.Ref = refOf(2)
	n.openSegment(idle)
	once := n.put(2, 1, 10)
	var want []byte
	for range 600 {
		for {
			i, _ := n.Info(1)
			b := makeBatch(1, 0, i.DurableEnd, 1, 10_000, -1, 0)
			err := n.appendWait(1, b)
			if err != nil {
				require.ErrorIs(t, err, base.CodeBusy)
				continue
			}
			n.Publish(1, b.Header.End())
			want = append(want, b.Bytes...)
			break
		}
	}
	require.Eventually(t, func() bool { // the flusher may be a moment behind
		st := n.Stats()
		return st.Checkpoints > 3 && st.WAL.Bytes < 6<<20 && st.CachedBytes < 2<<20
	}, patience, time.Millisecond)
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	sameBytes(t, once, n.mustRead(refOf(2), 0, 1<<20))
}
