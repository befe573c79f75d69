package task

import (
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDisk = errors.New("disk on fire")

func TestFirstErrorCancelsTheOthersAndIsNamed(t *testing.T) {
	g := NewGroup(t.Context(), "server")
	var cause error
	g.Go("waiter", func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return ctx.Err()
	})
	g.Go("flusher", func(context.Context) error { return errDisk })

	err := g.Wait()
	require.ErrorIs(t, err, errDisk)
	require.EqualError(t, err, "server/flusher: disk on fire")
	require.Equal(t, err, cause, "the others must be able to see why they were stopped")
}

func TestOnlyTheFirstErrorCounts(t *testing.T) {
	g := NewGroup(t.Context(), "g")
	g.Go("late", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("a consequence")
	})
	g.Go("first", func(context.Context) error { return errDisk })
	require.ErrorIs(t, g.Wait(), errDisk)
}

func TestCloseIsNotAFailure(t *testing.T) {
	g := NewGroup(t.Context(), "g")
	g.Go("loop", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	require.NoError(t, g.Close())
	require.NoError(t, g.Close(), "twice is fine")
	require.ErrorIs(t, context.Cause(g.Context()), ErrClosed)
	require.False(t, g.Go("too late", func(context.Context) error { panic("must not run") }))
}

func TestParentsEndIsNotAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := NewGroup(ctx, "g")
	g.Go("loop", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	cancel()
	require.NoError(t, g.Wait())
}

func TestContextErrorOfSomeoneElseIsAFailure(t *testing.T) {
	g := NewGroup(t.Context(), "g")
	g.Go("dial", func(context.Context) error { return context.DeadlineExceeded })
	require.ErrorIs(t, g.Wait(), context.DeadlineExceeded)
}

func TestNothingStartsAfterAFailure(t *testing.T) {
	g := NewGroup(t.Context(), "g")
	g.Go("first", func(context.Context) error { return errDisk })
	require.Error(t, g.Wait())
	require.False(t, g.Go("second", func(context.Context) error { return nil }))
}

func TestTasksMayStartTasks(t *testing.T) {
	g := NewGroup(t.Context(), "g")
	ran := make(chan struct{})
	g.Go("outer", func(context.Context) error {
		g.Go("inner", func(context.Context) error { close(ran); return nil })
		return nil
	})
	require.NoError(t, g.Wait())
	<-ran
}

func TestNameIsAProfilerLabel(t *testing.T) {
	g := NewGroup(t.Context(), "wal")
	g.Go("flusher", func(ctx context.Context) error {
		label, ok := pprof.Label(ctx, "task")
		if !ok || label != "wal/flusher" {
			return errors.New("label is " + label)
		}
		return nil
	})
	require.NoError(t, g.Wait())
}

func TestWaitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), "g")
		start := time.Now()
		g.Go("slow", func(context.Context) error { time.Sleep(time.Minute); return nil })
		require.NoError(t, g.Close())
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestCloserRunsInReverseAndGoesOnAfterErrors(t *testing.T) {
	var c Closer
	var order []string
	for _, name := range []string{"store", "mux", "listener"} {
		c.Push(name, func() error {
			order = append(order, name)
			if name == "mux" {
				return errDisk
			}
			return nil
		})
	}
	err := c.Close()
	require.ErrorIs(t, err, errDisk)
	require.EqualError(t, err, "close mux: disk on fire")
	require.Equal(t, []string{"listener", "mux", "store"}, order)
	require.Equal(t, err, c.Close(), "a second call runs nothing and says the same")
	require.Len(t, order, 3)
	require.Panics(t, func() { c.Push("late", func() error { return nil }) })
}

func TestSecondCloseWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Closer
		var order []string
		c.Push("slow", func() error { time.Sleep(time.Second); order = append(order, "closed"); return nil })
		go func() { _ = c.Close() }()
		synctest.Wait()
		require.NoError(t, c.Close())
		require.True(t, slices.Contains(order, "closed"))
	})
}

func TestZeroCloserCloses(t *testing.T) {
	var c Closer
	require.NoError(t, c.Close())
}

func TestErrorTextStaysShort(t *testing.T) {
	g := NewGroup(t.Context(), "a")
	g.Go("b", func(context.Context) error { return errDisk })
	require.False(t, strings.Contains(g.Wait().Error(), "\n"))
}

func TestPauseEndsWithItsTimeOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		require.True(t, Pause(ctx, time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
		time.AfterFunc(time.Second, cancel)
		require.False(t, Pause(ctx, time.Hour))
		require.Equal(t, time.Minute+time.Second, time.Since(began))
		require.False(t, Pause(ctx, 0), "nothing to wait for, but nobody to wait any more")
		require.True(t, Pause(t.Context(), -time.Second))
	})
}
