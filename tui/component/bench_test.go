package component

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/styles"
)

// The frame of the benchmarks is like a full screen of eg-top: boxes, a table of coloured cells, bars and sparks.

func benchCanvas(tb testing.TB, w, h int) *Canvas {
	tb.Helper()
	c := NewCanvas(w, h, styles.NewTheme(styles.TrueColor, false))
	drawBench(c, 1, 0)
	return c
}

// benchTable has 10,000 rows, of which those of which dirty is set change with every frame.
func benchTable(version uint64, dirtyPercent int) *Table {
	ids := benchIDs
	return &Table{
		Name: "ranges", Len: len(ids), SortBy: "RATE", Descending: true,
		Columns: []Column{
			{Title: "RANGE", Width: 10},
			{Title: "START", Width: 7, Priority: 3},
			{Title: "STATE", Width: 8, Priority: 1},
			{Title: "RATE", Width: RateWidth, Right: true},
			{Title: "SEGS", Width: 6, Right: true, Priority: 2},
			{Title: "LEADER", Width: 8, Priority: 2},
			{Title: "AGE", Width: AgeWidth, Right: true},
			{Title: "KEYS", Width: 20, Grow: true, Priority: 4},
		},
		ID: func(i int) string { return ids[i] },
		Version: func(i int) uint64 {
			if i%100 < dirtyPercent {
				return Mix(uint64(i), version)
			}
			return Mix(uint64(i))
		},
		Row: func(i int, row *Row) {
			rate := float64((i*7919+int(version)*31)%100000) * 1000
			row.ID(0, ids[i], styles.Accent)
			row.Text(1, "0x4000…", styles.Dim)
			row.Text(2, "● ACTIVE", styles.OK)
			row.Number(3, Rate(rate), styles.Heat(i%8))
			row.Number(4, Count(i), styles.Plain)
			row.Text(5, "n17", styles.Plain)
			row.Number(6, Age(time.Duration(i)*time.Second), styles.Dim)
			row.Canvas().Bar(row.Cell(7), rate/1e8, styles.Heat(i%8))
		},
	}
}

var benchIDs = func() []string {
	ids := make([]string, 10000)
	for i := range ids {
		ids[i] = "orders/r" + strconv.Itoa(i)
	}
	return ids
}()

func drawBench(c *Canvas, version uint64, dirtyPercent int) {
	left, right := c.Bounds().CutLeft(c.w / 2)
	benchTable(version, dirtyPercent).Draw(c, Box{Title: "Ranges", Note: "sort: rate ▼"}.Draw(c, left), TableState{Selected: benchIDs[3], At: 3, Focused: true})
	top, bottom := right.CutTop(c.h / 2)
	benchTable(version, dirtyPercent).Draw(c, Box{Title: "More", Note: "all"}.Draw(c, top), TableState{Selected: benchIDs[700], At: 700})
	inside := Box{Title: "Hottest topics"}.Draw(c, bottom)
	for y := range inside.H {
		Keyspace{Slices: benchSlices, Most: 100}.Bar(c, inside.Line(y))
	}
}

var benchSlices = func() []Slice {
	var slices []Slice
	for i := range uint64(24) {
		slices = append(slices, Slice{Start: i << 59 / 3 * 4, End: (i + 1) << 59 / 3 * 4, Rate: float64(i*37%100) + 1})
	}
	slices[23].End = 0
	return slices
}()

func BenchmarkFrameAllDirty(b *testing.B) {
	benchFrames(b, 100, func(c *Canvas) { c.lines.lines = nil }) // every line is made anew
}

func BenchmarkFrameFifthDirty(b *testing.B) { benchFrames(b, 20, func(*Canvas) {}) }

// benchFrames draws frames of which so many percent of the rows have changed.
func benchFrames(b *testing.B, dirty int, drawn func(*Canvas)) {
	c := benchCanvas(b, 200, 60)
	b.ReportAllocs()
	var version uint64
	for b.Loop() {
		version++
		c.Reset(200, 60, c.theme)
		drawBench(c, version, dirty)
		drawn(c)
		c.Lines()
	}
}

func BenchmarkFrameUnchanged(b *testing.B) {
	c := benchCanvas(b, 200, 60)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(200, 60, c.theme)
		drawBench(c, 1, 0)
		c.Lines()
	}
}

// TestBudget holds the frame to OPERATOR 3.9. The times are those of a busy machine, the best of several.
func TestBudget(t *testing.T) {
	factor := time.Duration(8)
	if raceEnabled {
		factor = 60
	}
	for _, tc := range []struct {
		name   string
		dirty  int
		fresh  bool
		within time.Duration
		allocs float64
	}{
		{"all dirty", 100, true, 600 * time.Microsecond, 600},
		{"a fifth dirty", 20, false, 200 * time.Microsecond, 200},
		{"unchanged", 0, false, 150 * time.Microsecond, 40},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := benchCanvas(t, 200, 60)
			var version uint64
			frame := func() {
				version++
				c.Reset(200, 60, c.theme)
				drawBench(c, version, tc.dirty)
				if tc.fresh {
					c.lines.lines = nil
				}
				c.Lines()
			}
			allocs := testing.AllocsPerRun(20, frame)
			if !raceEnabled {
				require.LessOrEqual(t, allocs, tc.allocs)
			}
			best := time.Hour
			for range 50 {
				start := time.Now()
				frame()
				best = min(best, time.Since(start))
			}
			require.LessOrEqual(t, best, tc.within*factor)
			t.Logf("%s: best %v, %v allocations", tc.name, best, allocs)
		})
	}
}
