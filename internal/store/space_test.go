package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A disk that does not answer holds up the flusher; those who append, and the log's callbacks, do not wait for it.
func TestAppendsDoNotWaitForALookAtTheDisk(t *testing.T) {
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, fault, small())
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 0, 0))
	fault.Add(vfs.Rule{Ops: vfs.OpFree, Before: func(vfs.Call) {
		asked <- struct{}{}
		<-answer
	}})
	defer close(answer)
	for off := range int64(10) {
		b := makeBatch(1, 0, off, 1, 100, -1, 0)
		b.AppendMs = off * 10 * probeMs
		require.NoError(t, n.appendWait(1, b))
	}
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nobody has looked")
	}
	require.Empty(t, asked, "one look is enough")
}

// Between two looks no more is taken than the last one has allowed.
func TestWhatALookAllowsIsNotExceeded(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small()) // no flusher: nobody looks but this test
	n.openSegment(specOf(1, 0, 0))
	free, total, err := mem.Free("data")
	require.NoError(t, err)
	mem.SetCapacity(total - free + n.space.headroom + 100_000)
	n.space.probe(0)
	var off int64
	for off = 0; err == nil; off++ {
		err = n.appendWait(1, makeBatch(1, 0, off, 1, 10_000, -1, 0))
	}
	require.ErrorIs(t, err, base.CodeBusy)
	require.InDelta(t, 100_000/2/10_000, off, 2)
	require.False(t, n.space.full.Load())
	n.space.probe(n.dirty.Load())
	require.NoError(t, n.appendWait(1, makeBatch(1, 0, off-1, 1, 10_000, -1, 0)))
}

// A record that meets the full disk gets the reserve from the flusher, and all that met it together do.
func TestRecordsGetTheReserveFromTheFlusher(t *testing.T) {
	for _, running := range []bool{true, false} {
		mem := vfs.NewMem()
		o := tiny()
		o.ReserveBytes = 1 << 20
		n := start(t, mem, o)
		n.openSegment(specOf(1, 0, 0))
		n.space.headroom = 2 << 20 // the reserve is not taken back at once
		free, total, err := mem.Free("data")
		require.NoError(t, err)
		mem.SetCapacity(total - free)
		require.NoError(t, n.Start(t.Context()))
		if !running {
			n.flusher.stop()
		}
		const together = 64 // that wait for their answers at a time
		results := make(chan error, together)
		met := func() bool { return n.space.full.Load() }
		if running {
			met = func() bool { return !n.space.reserve.Held() }
		}
		var calls, answered, failed int
		answer := func(err error) {
			answered++
			if err != nil {
				require.ErrorIs(t, err, base.CodeDiskFull)
				failed++
			}
		}
		for deadline := time.Now().Add(patience); !met(); {
			require.Less(t, time.Now(), deadline, "the disk has not become full")
			if calls-answered < together {
				calls++
				require.NoError(t, n.Fence(refOf(base.RangeID(calls)), 1, 1, func(_ FenceAnswer, err error) { results <- err }))
				continue
			}
			select {
			case err := <-results:
				answer(err)
			case <-time.After(time.Millisecond): // all wait for the flusher, or for n.stop: look again
			}
		}
		if !running {
			require.True(t, n.space.reserve.Held(), "it is the flusher's to give")
			n.stop()
		}
		for answered < calls {
			select {
			case err := <-results:
				answer(err)
			case <-time.After(patience):
				t.Fatal("a fence was not answered")
			}
		}
		if running {
			require.Zero(t, failed)
		} else {
			require.Positive(t, failed)
		}
	}
}
