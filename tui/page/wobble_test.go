package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
	"github.com/eastguard/eastguard/tui/styles"
)

// calmViews are what a store shows of 60 nodes on which nothing happens, four times a second, once the averages have
// settled.
func calmViews() (list []*store.View, times []time.Time) {
	o := storetest.Large(1)
	o.Start, o.Calm, o.Length = noon, true, 20*time.Second
	s, next := store.New(store.Options{History: -1}), noon.Add(8*time.Second)
	for m := range storetest.Stream(o) {
		for m.Time.After(next) {
			list, times = append(list, s.View(next)), append(times, next)
			next = next.Add(250 * time.Millisecond)
		}
		s.Apply(m)
	}
	return list, times
}

// TestCalmScreen lets nothing happen but that rates wobble by a few per cent. What changes on the screen then is numbers,
// and few of them: bars, sparklines and the order of rows stand still.
func TestCalmScreen(t *testing.T) {
	views, times := calmViews()
	for _, p := range Pages() {
		c := component.NewCanvas(200, 60, styles.NewTheme(styles.TrueColor, false))
		st := NewState()
		var before []string
		changed := 0
		for i, v := range views {
			st.Frame = frame()
			st.Frame.Now, st.Frame.Clock = times[i], times[i]
			c.Reset(200, 60, c.Theme())
			Draw(c, p, v, &st)
			lines := c.Plain()
			for y := range before {
				changed += differences(before[y], lines[y])
			}
			before = lines
		}
		updates := len(views) - 1
		require.LessOrEqual(t, changed/updates, 100, "%s: cells that change in an update", p.ID())
		t.Logf("%-9s %d cells an update", p.ID(), changed/updates)
	}
}

// differences counts the cells in which two lines differ.
func differences(a, b string) (n int) {
	x, y := []rune(a), []rune(b)
	for i := range max(len(x), len(y)) {
		if i >= len(x) || i >= len(y) || x[i] != y[i] {
			n++
		}
	}
	return n
}
