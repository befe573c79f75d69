package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// told is a second in which one node counts one range.
func told(s *store.Store, second int, rate int64) *store.Range {
	at := t0.Add(time.Duration(second) * time.Second)
	key := store.RangeKey{Topic: "orders", Range: 1}
	c := &sdk.NodeCounters{InBytesPerSec: rate, Ranges: []sdk.RangeCounters{{Topic: key.Topic, Range: key.Range, InBytesPerSec: rate, Load: "normal"}}}
	s.Apply(store.Message{Time: at, Node: "n1", Boot: 1, Counters: c})
	return s.View(at).Ranges.Get(key)
}

// A load that wobbles by a few per cent is drawn as one that does not.
func TestSteadyWobble(t *testing.T) {
	s := store.New(store.Options{History: -1})
	wobble := []int64{0, 29, -30, 12, -25, 30, 30, -18, -30, 5}
	var drawn float64
	for second := range 60 {
		r := told(s, second, 100_000+wobble[second%len(wobble)]*100)
		if second == 0 {
			drawn = r.Steady
		}
		require.Equal(t, drawn, r.Steady)
		require.InDelta(t, 100_000, r.InBytes, 3000)
		v := s.View(t0.Add(time.Duration(second) * time.Second))
		require.Equal(t, drawn, v.Cluster.Busiest)
	}
}

// A load that has truly changed is told within the time that is averaged over, and exactly in the end.
func TestSteadyFollows(t *testing.T) {
	s := store.New(store.Options{History: -1})
	second := 0
	lasts := func(rate int64, seconds int) (r *store.Range) {
		for range seconds {
			r = told(s, second, rate)
			second++
		}
		return r
	}
	require.Equal(t, 1000.0, lasts(1000, 1).InBytes, "what is told first is all that is known")
	require.Greater(t, lasts(2000, 3).InBytes, 1600.0, "after the three seconds most of it is there")
	r := lasts(2000, 30)
	require.Equal(t, 2000.0, r.InBytes)
	require.InDelta(t, 2000.0, r.Steady, 200)
	require.Equal(t, r.Version, lasts(2000, 1).Version, "a row that stays as it is has the same version")

	r = lasts(0, 10)
	require.Zero(t, r.InBytes, "nothing is nothing, and soon")
	require.Zero(t, r.Steady)
	require.Zero(t, s.View(t0.Add(time.Hour)).Cluster.Busiest)
}

func TestSteady(t *testing.T) {
	for _, tt := range []struct{ shown, now, want float64 }{
		{0, 5, 5}, {100, 109, 100}, {100, 91, 100}, {100, 111, 111}, {100, 89, 89}, {100, 0, 0}, {100, -1, -1}, {-1, -1, -1}, {-1, 100, 100},
	} {
		require.Equal(t, tt.want, store.Steady(tt.shown, tt.now), "%v, then %v", tt.shown, tt.now)
	}
}
