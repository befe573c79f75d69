package sdk

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{limit: 10}
		require.NoError(t, m.take(t.Context(), 10, time.Hour, false))
		var order []int
		var mu sync.Mutex
		for i, n := range []int64{8, 1, 1} {
			go func() {
				require.NoError(t, m.take(t.Context(), n, time.Hour, false))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		m.release(2)
		synctest.Wait()
		require.Empty(t, order, "a small one does not overtake a large one for ever")
		m.release(6)
		synctest.Wait()
		require.Equal(t, []int{0}, order)
		m.release(2)
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1, 2}, order)
		require.EqualValues(t, 10, m.used.Load())
	})
}

func TestMemoryLetsOneGiantIn(t *testing.T) {
	m := &memory{limit: 10}
	require.NoError(t, m.take(t.Context(), 100, 0, true))
	require.ErrorIs(t, m.take(t.Context(), 1, 0, true), CodeBusy)
	m.release(100)
	require.NoError(t, m.take(t.Context(), 1, 0, true))
}

func TestMemoryGivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{limit: 10}
		require.NoError(t, m.take(t.Context(), 10, 0, false))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.take(ctx, 5, time.Hour, false), context.DeadlineExceeded)
		require.ErrorIs(t, m.take(t.Context(), 5, time.Minute, false), CodeTimeout)
		require.Zero(t, m.waiting.Load())
		m.release(10)
		require.Zero(t, m.used.Load())
	})
}

// No wake-up is lost and nothing is counted twice, whoever gives up when.
func TestMemoryUnderPressure(t *testing.T) {
	m := &memory{limit: 100}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 3000 {
				n := rng.Int64N(60) + 1
				timeout := time.Minute
				if rng.IntN(4) == 0 {
					timeout = time.Microsecond
				}
				if m.take(t.Context(), n, timeout, false) == nil {
					if used := m.used.Load(); used > 100 {
						t.Errorf("%d in use", used)
					}
					m.release(n)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, m.used.Load())
	require.Empty(t, m.queue)
}
