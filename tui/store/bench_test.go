package store_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// large is the cluster of the budgets, and two seconds of it.
func large(tb testing.TB, opts store.Options) (s *store.Store, second [2][]store.Message) {
	tb.Helper()
	o := storetest.Large(1)
	o.Quiet, o.Length = true, 5*time.Second
	s = store.New(opts)
	for m := range storetest.Stream(o) {
		s.Apply(m)
		if at := int(m.Time.Sub(t0) / time.Second); at == 3 || at == 4 {
			m.Time = m.Time.Add(time.Duration(3-at) * time.Second)
			second[at-3] = append(second[at-3], m)
		}
	}
	s.View(t0.Add(5 * time.Second))
	return s, second
}

// BenchmarkSecond applies what 60 nodes say in a second, and takes the four views of it.
func BenchmarkSecond(b *testing.B) {
	s, second := large(b, store.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := time.Duration(i+2) * time.Second
		for j, m := range second[i%2] {
			m.Time = m.Time.Add(at)
			s.Apply(m)
			if j%(len(second[i%2])/4) == 0 {
				s.View(m.Time)
			}
		}
	}
	b.ReportMetric(float64(s.HistoryBytes())/(1<<20), "history-MB")
}

func BenchmarkViewOfNothingNew(b *testing.B) {
	s, _ := large(b, store.Options{})
	now := t0.Add(5 * time.Second)
	b.ReportAllocs()
	for b.Loop() {
		s.View(now)
	}
}

// BenchmarkAt goes back by a second at a time, which is what a key does.
func BenchmarkAt(b *testing.B) {
	s, second := large(b, store.Options{})
	end := time.Duration(0)
	for i := range 100 {
		for _, m := range second[i%2] {
			end = time.Duration(i+2) * time.Second
			m.Time = m.Time.Add(end)
			s.Apply(m)
		}
	}
	now := t0.Add(end)
	for i := 0; b.Loop(); i++ {
		s.At(now.Add(-time.Duration(i%80) * time.Second))
	}
}

// spent is the processor time that this thread has had: what else the machine does is not in it.
func spent(t *testing.T) time.Duration {
	t.Helper()
	const thisThread = 1 // RUSAGE_THREAD
	var r syscall.Rusage
	require.NoError(t, syscall.Getrusage(thisThread, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// A second of 60 nodes and 10,000 ranges: 5 ms of a core are the budget; here three times that is let pass.
func TestBudget(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, second := large(t, store.Options{})
	const rounds = 20
	began := spent(t)
	for i := range rounds {
		for _, m := range second[i%2] {
			m.Time = m.Time.Add(time.Duration(i+2) * time.Second)
			s.Apply(m)
		}
		s.View(t0.Add(time.Duration(i+6) * time.Second))
	}
	each := (spent(t) - began) / rounds
	t.Logf("%v of a core a second", each)
	require.Less(t, each, 15*time.Millisecond*raceFactor)
	now := t0.Add(30 * time.Second)
	v := s.View(now)
	require.Zero(t, testing.AllocsPerRun(10, func() { s.View(now) }))
	require.Same(t, v, s.View(now))
}

// Fifteen minutes of 60 nodes fit into what the history may take: nothing is dropped for its size.
func TestFifteenMinutesFit(t *testing.T) {
	o := storetest.Large(1)
	o.Quiet, o.Length = true, 4*time.Minute
	if soak {
		o.Length = 20 * time.Minute
	}
	s := store.New(store.Options{})
	first, begun := 0, time.Duration(0)
	for m := range storetest.Stream(o) {
		s.Apply(m)
		if at := m.Time.Sub(t0); first == 0 && at > 100*time.Second {
			first, begun = s.HistoryBytes(), at
		}
	}
	if soak {
		require.LessOrEqual(t, s.HistoryBytes(), 14<<20)
		require.GreaterOrEqual(t, t0.Add(o.Length).Sub(s.Oldest()), 15*time.Minute)
		return
	}
	perMinute := int(float64(s.HistoryBytes()-first) / (o.Length - begun).Minutes())
	t.Logf("history: %d KB to begin with, %d KB a minute", first>>10, perMinute>>10)
	require.LessOrEqual(t, first+perMinute*14, 14<<20)
	require.Equal(t, t0, s.Oldest())
}
