package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
	"github.com/eastguard/eastguard/tui/styles"
)

// large is 60 nodes with 10,000 ranges of 200 topics, in the middle of an incident: two views, a second apart.
func large() (list [2]*store.View) {
	o := storetest.Large(1)
	o.Start = noon
	o.Length = storetest.DeadAt
	s := store.New(store.Options{History: -1})
	for m := range storetest.Stream(o) {
		if m.Time.After(noon.Add(o.Length-time.Second)) && list[0] == nil {
			list[0] = s.View(m.Time)
		}
		s.Apply(m)
	}
	list[1] = s.View(noon.Add(o.Length))
	return list
}

// BenchmarkDraw draws 200x60 with everything changed since the last frame: the budget is 1 ms.
func BenchmarkDraw(b *testing.B) {
	views := large()
	for _, p := range Pages() {
		b.Run(strings.ToLower(p.ID().String()), func(b *testing.B) { drawAll(b, p, views) })
	}
}

func drawAll(b *testing.B, p Page, views [2]*store.View) {
	b.ReportAllocs()
	draw := drawer(p, views)
	for b.Loop() {
		draw()
	}
}

// drawer draws one view after the other: each time everything has changed.
func drawer(p Page, views [2]*store.View) func() {
	c := component.NewCanvas(200, 60, styles.NewTheme(styles.TrueColor, false))
	st := NewState()
	st.Frame = frame()
	i := 0
	return func() {
		i++
		v := views[i%2]
		st.Frame.Now = v.Time.Add(time.Duration(i) * time.Millisecond)
		c.Reset(200, 60, c.Theme())
		Draw(c, p, v, &st)
		c.Lines()
	}
}

// TestBudget holds each page to 1 ms. The times are those of a busy machine, the best of several.
func TestBudget(t *testing.T) {
	factor := time.Duration(5)
	if raceEnabled {
		factor = 100
	}
	views := large()
	for _, p := range Pages() {
		draw, best := drawer(p, views), time.Hour
		for range 40 {
			start := time.Now()
			draw()
			best = min(best, time.Since(start))
		}
		allocs := testing.AllocsPerRun(10, draw)
		t.Logf("%-9s best %v, %v allocations", p.ID(), best, allocs)
		require.LessOrEqual(t, best, factor*time.Millisecond, p.ID().String())
		if !raceEnabled {
			require.LessOrEqual(t, allocs, 3000.0, p.ID().String())
		}
	}
}
