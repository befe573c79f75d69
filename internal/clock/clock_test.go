package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNeverGoesBack(t *testing.T) {
	wall := time.UnixMilli(1_000_000)
	c := New(func() time.Time { return wall })

	require.EqualValues(t, 1_000_000, c.NowMs())
	wall = wall.Add(-time.Hour)
	require.EqualValues(t, 1_000_000, c.NowMs(), "a step back must not show")
	wall = time.UnixMilli(1_000_001)
	require.EqualValues(t, 1_000_001, c.NowMs())
	require.Equal(t, time.UTC, c.Now().Location())
}

func TestObservedTimesAreAFloor(t *testing.T) {
	c := New(func() time.Time { return time.UnixMilli(10) })
	require.EqualValues(t, 50, c.Observe(50), "a time found on disk")
	require.EqualValues(t, 50, c.NowMs())
	require.EqualValues(t, 50, c.Observe(20))
}

func TestIsVirtualInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		before := c.NowMs()
		time.Sleep(time.Hour)
		require.EqualValues(t, time.Hour.Milliseconds(), c.NowMs()-before)
	})
}

func TestConcurrentReadersEachSeeNoStepBack(t *testing.T) {
	var mu sync.Mutex
	n := int64(0)
	c := New(func() time.Time { // a clock that jumps both ways
		mu.Lock()
		defer mu.Unlock()
		n++
		return time.UnixMilli(n * 7919 % 1000)
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := int64(-1)
			for range 2000 {
				now := c.NowMs()
				if now < last {
					t.Errorf("went back from %d to %d", last, now)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

func TestMsRoundTrip(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 4, 31, 207_000_000, time.UTC)
	require.Equal(t, at, FromMs(Ms(at)))
}
