package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/telemetry"
)

func TestRecentQuantiles(t *testing.T) {
	h := telemetry.NewHistogram()
	r := &recent{histogram: h}
	now := time.Unix(1_800_000_000, 0)
	p99 := func() time.Duration { return r.quantile(0.99, now) }
	near := func(want time.Duration) {
		t.Helper()
		require.InEpsilon(t, want.Seconds(), p99().Seconds(), 0.04)
	}
	require.Zero(t, p99())
	for range 100 {
		h.Observe(time.Second) // a bad start
	}
	near(time.Second)
	for range 2 {
		now = now.Add(recentWindow)
		r.sample(now)
		h.Observe(time.Millisecond)
	}
	near(time.Millisecond)
	now = now.Add(time.Hour)
	r.sample(now)
	now = now.Add(time.Hour)
	r.sample(now)
	near(time.Second) // nothing happened: its whole life
}

func TestRates(t *testing.T) {
	r := rates{in: telemetry.NewCounter(), out: telemetry.NewCounter(), inRecords: telemetry.NewCounter(), outRecords: telemetry.NewCounter()}
	now := time.Unix(1_800_000_000, 0)
	require.Zero(t, r.now(now), "one sample is no rate")
	for range 5 {
		now = now.Add(rateWindow)
		r.in.Add(2000)
		r.outRecords.Add(10)
		r.now(now)
	}
	require.Equal(t, perSecond{inBytes: 1000, outRecords: 5}, r.now(now))
	for range 2 {
		now = now.Add(rateWindow)
		r.now(now)
	}
	require.Zero(t, r.now(now), "it has stopped")
}
