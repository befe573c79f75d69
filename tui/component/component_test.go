package component

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/tui/styles"
)

// drawings draw every component into a rect, with random contents.
var drawings = map[string]func(t *rapid.T, c *Canvas, r Rect){
	"box": func(t *rapid.T, c *Canvas, r Rect) {
		inside := Box{Title: anyText(t), Note: anyText(t), Focused: rapid.Bool().Draw(t, "focused")}.Draw(c, r)
		require.True(t, inside.Empty() || inside == inside.Intersect(r))
	},
	"spark": func(t *rapid.T, c *Canvas, r Rect) { c.Spark(r, anyValues(t), anyValue(t), styles.OK) },
	"bar":   func(t *rapid.T, c *Canvas, r Rect) { c.Bar(r, anyValue(t), styles.OK) },
	"meter": func(t *rapid.T, c *Canvas, r Rect) { c.Meter(r, anyValue(t), styles.OK) },
	"pen": func(t *rapid.T, c *Canvas, r Rect) {
		n := rapid.IntRange(-3, 20)
		p := c.Pen(r).Text(anyText(t), styles.OK).Field(n.Draw(t, "w"), anyText(t), styles.Dim).Skip(1).To(n.Draw(t, "to"))
		p.AtRight(anyText(t), styles.Key).Number(n.Draw(t, "w"), "1,204", styles.Plain).Sign('●', styles.OK)
		require.True(t, p.Rest().Empty() || p.Rest() == p.Rest().Intersect(r))
	},
	"keyspace": func(t *rapid.T, c *Canvas, r Rect) {
		k := anyKeyspace(t)
		k.Scale(c, r.Line(0))
		k.Bar(c, r.Line(1))
		k.Names(c, r.Line(2))
		DrawNote(c, r.Line(3), Note{rapid.Uint64().Draw(t, "at"), anyText(t), styles.Info})
	},
	"timeline": func(t *rapid.T, c *Canvas, r Rect) { anyTimeline(t).Draw(c, r) },
	"matrix":   func(t *rapid.T, c *Canvas, r Rect) { anyMatrix(t).Draw(c, r) },
	"dialog": func(t *rapid.T, c *Canvas, r Rect) {
		in := NewInput(anyText(t))
		in.At = rapid.IntRange(-2, 40).Draw(t, "cursor")
		place := Dialog{Title: anyText(t), Ask: anyText(t), Input: &in, Lines: []Line{{anyText(t), styles.Plain, 2}, {}, {anyText(t), styles.Warn, 99}}, Foot: []Line{{anyText(t), styles.Info, 1}}}.Draw(c, r)
		require.True(t, place.Empty() || place == place.Intersect(r))
	},
	"help": func(t *rapid.T, c *Canvas, r Rect) {
		Help{Title: "Keys", Note: anyText(t), Groups: []HelpGroup{{"MOVE", []HelpKey{{"↑ ↓", "row"}, {anyText(t), anyText(t)}}}, {"ACT", []HelpKey{{"x", "actions"}}}}}.Draw(c, r)
	},
	"table": func(t *rapid.T, c *Canvas, r Rect) { anyTable(t).Draw(c, r, anyTableState(t)) },
}

func anyValue(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64})).Draw(t, "value")
}

func anyValues(t *rapid.T) []float64 {
	return rapid.SliceOfN(rapid.Custom(anyValue), 0, 50).Draw(t, "values")
}

func anyKeyspace(t *rapid.T) Keyspace {
	starts := rapid.SliceOfN(rapid.Uint64(), 0, 40).Draw(t, "starts")
	slices.Sort(starts)
	k := Keyspace{Most: anyValue(t)}
	for i, start := range starts {
		end := uint64(0)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		k.Slices = append(k.Slices, Slice{start, end, anyValue(t), anyText(t), rapid.SampledFrom([]rune{0, '!', '~', '\x1b', '日'}).Draw(t, "sign"), rapid.Bool().Draw(t, "fresh")})
	}
	return k
}

func anyTimeline(t *rapid.T) Timeline {
	now := time.Unix(1767268800, 0)
	small := rapid.IntRange(-5, 30)
	tl := Timeline{Now: now, Cell: time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "cell")), Name: small.Draw(t, "name"), Note: small.Draw(t, "note"), Notes: anyText(t)}
	for range rapid.IntRange(0, 9).Draw(t, "lanes") {
		at := now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "at")))
		tl.Lanes = append(tl.Lanes, Lane{Name: anyText(t), Note: anyText(t), Marks: []Mark{{at, 'P', styles.OK}, {now, '\n', styles.Bad}}})
		tl.Gap = append(tl.Gap, Sample{at, anyValue(t)})
	}
	return tl
}

func anyMatrix(t *rapid.T) Matrix {
	n := rapid.IntRange(-3, 8)
	m := Matrix{Notes: anyText(t), From: n.Draw(t, "from"), Top: n.Draw(t, "top"), Columns: rapid.SliceOfN(rapid.Custom(anyText), 0, 9).Draw(t, "columns")}
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		m.Rows = append(m.Rows, MatrixRow{Name: anyText(t), Note: anyText(t), Cells: []MatrixCell{{'●', styles.OK}, {}, {'日', styles.Bad}}})
	}
	return m
}

func anyTable(t *rapid.T) *Table {
	texts := rapid.SliceOfN(rapid.Custom(anyText), 0, 30).Draw(t, "rows")
	tb := &Table{Name: "t", Len: len(texts), Empty: anyText(t), SortBy: "A", Gap: rapid.IntRange(0, 3).Draw(t, "gap")}
	for range rapid.IntRange(0, 6).Draw(t, "columns") {
		n := rapid.IntRange(0, 15)
		tb.Columns = append(tb.Columns, Column{Title: rapid.SampledFrom([]string{"A", "日本", "RATE", ""}).Draw(t, "title"), Width: n.Draw(t, "width"), Min: n.Draw(t, "min"), Grow: rapid.Bool().Draw(t, "grow"), Right: rapid.Bool().Draw(t, "right"), Priority: rapid.IntRange(0, 3).Draw(t, "priority"), Wide: rapid.Bool().Draw(t, "wide")})
	}
	tb.ID = func(i int) string { return strconv.Itoa(i) }
	tb.Version = func(i int) uint64 { return uint64(i % 3) }
	tb.Row = func(i int, row *Row) {
		row.Text(0, texts[i], styles.OK)
		row.ID(1, texts[i], styles.Accent)
		row.Number(2, "12,004", styles.Plain)
		row.Sign(3, '●', styles.OK)
		row.Canvas().Bar(row.Cell(4), 0.4, styles.Heat(3))
		row.Pen(5).Text(texts[i], styles.Dim).AtRight("x", styles.Dim)
		if i == 2 {
			row.Fade()
		}
	}
	return tb
}

func anyTableState(t *rapid.T) TableState {
	n := rapid.IntRange(-5, 60)
	return TableState{Selected: rapid.SampledFrom([]string{"", "0", "7", "gone"}).Draw(t, "selected"), At: n.Draw(t, "at"), Top: n.Draw(t, "top"), Focused: rapid.Bool().Draw(t, "focus"), Wide: rapid.Bool().Draw(t, "wide"), Marked: func(id string) bool { return id == "1" }}
}

// TestComponentsStayInTheirRect draws each component at any size: nothing panics, nothing outside its rect changes,
// and the frame is tidy.
func TestComponentsStayInTheirRect(t *testing.T) {
	for name, draw := range drawings {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w, h := rapid.IntRange(0, 60).Draw(t, "w"), rapid.IntRange(0, 16).Draw(t, "h")
				c := NewCanvas(w, h, themes[rapid.IntRange(0, len(themes)-1).Draw(t, "theme")])
				c.Fill(c.Bounds(), '#', styles.Warn)
				before := append([]cell(nil), c.cells...)
				n := rapid.IntRange(-2, 60)
				r := Rect{n.Draw(t, "x"), n.Draw(t, "y") / 4, n.Draw(t, "rw"), n.Draw(t, "rh") / 4}
				draw(t, c, r)
				for i := range c.cells {
					require.True(t, r.Contains(i%w, i/w) || c.cells[i] == before[i], "cell %d,%d lies outside %v", i%w, i/w, r)
				}
				requireTidy(t, c)
			})
		})
	}
}

// A cached row looks as if it were drawn.
func TestCachedRowsAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, s := anyTable(t), anyTableState(t)
		tb.Version = func(i int) uint64 { return uint64(i) + 1 }
		cached := NewCanvas(40, 10, themes[0])
		for range 3 {
			cached.Reset(40, 10, themes[0])
			tb.Draw(cached, cached.Bounds(), s)
		}
		fresh := NewCanvas(40, 10, themes[0])
		tb.Version = nil
		tb.Draw(fresh, fresh.Bounds(), s)
		require.Equal(t, fresh.String(), cached.String())
	})
}

// The same row in other columns, in another width or look, is drawn anew.
func TestCachedRowsAreOfOneLayout(t *testing.T) {
	used := NewCanvas(60, 12, themes[0])
	for _, w := range []int{60, 40, 59, 20, 60} {
		for _, theme := range themes {
			used.Reset(60, 12, theme)
			fresh := NewCanvas(60, 12, theme)
			for _, c := range []*Canvas{used, fresh} {
				benchTable(1, 0).Draw(c, Rect{0, 0, w, 12}, TableState{})
			}
			require.Equal(t, fresh.String(), used.String(), "%d", w)
		}
	}
}

func TestRowCacheForgets(t *testing.T) {
	c := NewCanvas(80, 24, themes[0])
	for version := range uint64(500) {
		c.Reset(80, 24, themes[0])
		benchTable(version, 100).Draw(c, c.Bounds(), TableState{})
		require.LessOrEqual(t, len(c.rows.rows), maxRows+100)
	}
}

func TestTableDrawsVisibleRowsOnly(t *testing.T) {
	tb := benchTable(1, 100)
	row, asked := tb.Row, 0
	tb.Row = func(i int, r *Row) { asked++; row(i, r) }
	c := NewCanvas(80, 24, themes[3])
	view := tb.Draw(c, c.Bounds(), TableState{Selected: benchIDs[5000], At: 5000})
	require.Equal(t, 22, asked)
	require.Equal(t, TableView{Rows: Rect{0, 1, 80, 23}, Top: 4979, Visible: 22}, view)
	require.Equal(t, "… 4,999 more", c.Plain()[23])
	i, ok := view.RowAt(1)
	require.True(t, ok)
	require.Equal(t, 4979, i)
	_, ok = view.RowAt(0)
	require.False(t, ok)
}

func TestSelectionStaysWithItsRow(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e", "f"}
	tb := &Table{Len: len(ids), ID: func(i int) string { return ids[i] }, Row: func(int, *Row) {}}
	const h = 5 // a heading, three rows, the line of what is below
	s := tb.Resolve(TableState{}, h)
	require.Equal(t, "a", s.Selected)
	s = tb.Move(s, 3, h)
	require.Equal(t, TableState{Selected: "d", At: 3, Top: 1}, s)
	ids = []string{"d", "a", "b", "c", "e", "f"}
	s = tb.Resolve(s, h)
	require.Equal(t, TableState{Selected: "d", At: 0, Top: 0}, s)
	s = tb.Select(s, 99, h)
	require.Equal(t, TableState{Selected: "f", At: 5, Top: 3}, s)
	ids = ids[:4]
	tb.Len = 4
	require.Equal(t, "c", tb.Resolve(s, h).Selected, "the nearest when the row is gone")
	tb.Len = 0
	require.Equal(t, TableState{}, tb.Resolve(s, h))
}

func TestColumnsByPriority(t *testing.T) {
	tb := &Table{
		Name: "nodes", Len: 1, ID: func(int) string { return "n1" },
		Columns: []Column{{Title: "NODE", Min: 4, Width: 8}, {Title: "ADDRESS", Width: 14, Priority: 2}, {Title: "IN/s", Width: 6, Right: true}, {Title: "DISK", Width: 4, Right: true, Priority: 1}, {Title: "VERSION", Width: 8, Wide: true}},
		Row: func(_ int, r *Row) {
			r.ID(0, "n-eu-west-17", styles.Plain)
			r.Text(1, "10.0.0.11:2921", styles.Plain)
			r.Number(2, "25.9M", styles.Plain)
			r.Number(3, "41%", styles.Plain)
			r.Text(4, "v0.9.1", styles.Plain)
		},
	}
	for _, tc := range []struct {
		w    int
		wide bool
		want string
	}{
		{70, true, "NODE        ADDRESS             IN/s    DISK    VERSION|n-eu…-17    10.0.0.11:2921     25.9M     41%    v0.9.1"},
		{50, true, "NODE      ADDRESS           IN/s  DISK  VERSION|n-eu…-17  10.0.0.11:2921   25.9M   41%  v0.9.1"},
		{40, false, "NODE      ADDRESS           IN/s  DISK|n-eu…-17  10.0.0.11:2921   25.9M   41%"},
		{33, false, "NODE   ADDRESS          IN/s DISK|n-e…17 10.0.0.11:2921  25.9M  41%"},
		{20, false, "NODE       IN/s DISK|n-eu…-17  25.9M  41%"},
		{16, false, "NODE   IN/s DISK|n-e…  25.9M  41%"},
		{12, false, "NODE    IN/s|n-…17  25.9M"},
		{8, false, "NODE|n-eu…-17"},
		{3, false, "NO…|n-…"},
	} {
		c := NewCanvas(tc.w, 2, themes[3])
		tb.Draw(c, c.Bounds(), TableState{Wide: tc.wide})
		require.Equal(t, tc.want, strings.Join(c.Plain(), "|"), "%d", tc.w)
	}
}

// A column with a share of the table gets it before columns of a lower rank are there.
func TestShareOfTheTable(t *testing.T) {
	tb := &Table{
		Len: 1, ID: strconv.Itoa, Row: func(_ int, r *Row) { r.Canvas().Fill(r.Cell(1), '#', styles.OK) },
		Columns: []Column{{Title: "NAME", Width: 4}, {Title: "BAR", Width: 10, Share: 50, Grow: true}, {Title: "MORE", Width: 10, Priority: 1}},
	}
	for w, want := range map[int]int{15: 10, 26: 21, 32: 16, 40: 24} {
		c := NewCanvas(w, 2, themes[3])
		tb.Draw(c, c.Bounds(), TableState{})
		require.Equal(t, want, strings.Count(c.Plain()[1], "#"), "%d", w)
	}
}

func TestSelectionAndMarksShowWithoutColours(t *testing.T) {
	c := NewCanvas(20, 4, styles.NewTheme(styles.NoColor, false))
	tb := &Table{Len: 3, ID: func(i int) string { return strconv.Itoa(i) }, Columns: []Column{{Title: "ID", Width: 3}}, Row: func(i int, r *Row) { r.Text(0, strconv.Itoa(i), styles.OK) }}
	tb.Draw(c, c.Bounds(), TableState{Selected: "1", At: 1, Focused: true, Marked: func(id string) bool { return id == "2" }})
	lines := c.Lines()
	require.Equal(t, "0                   ", lines[1])
	require.Equal(t, "\x1b[0;7m1                   \x1b[m", lines[2])
	require.Equal(t, "\x1b[0;1;4m2                   \x1b[m", lines[3])
}

func TestSelectionOfOtherPanels(t *testing.T) {
	tb := &Table{Len: 2, ID: strconv.Itoa, Columns: []Column{{Title: "ID", Width: 3}}, Row: func(i int, r *Row) { r.Text(0, strconv.Itoa(i), styles.Plain) }}
	lines := func(s TableState) []string {
		c := NewCanvas(4, 3, styles.NewTheme(styles.NoColor, false))
		tb.Draw(c, c.Bounds(), s)
		return c.Lines()[1:]
	}
	require.Equal(t, []string{"0   ", "1   "}, lines(TableState{}), "nothing was chosen")
	require.Equal(t, []string{"0   ", "\x1b[0;4m1   \x1b[m"}, lines(TableState{Selected: "1"}))
	require.Equal(t, []string{"\x1b[0;7m0   \x1b[m", "1   "}, lines(TableState{Focused: true}))
}

func TestKeyspaceBar(t *testing.T) {
	c := NewCanvas(32, 3, themes[3])
	k := Keyspace{Slices: []Slice{
		{0, 1 << 62, 3, "r3", 0, false},
		{1 << 62, 3 << 61, 9, "r41", '!', true},
		{3 << 61, 1 << 63, 5, "r42", '~', false},
		{1 << 63, 0, 0, "r5", 0, false},
	}}
	k.Bar(c, c.Bounds().Line(0))
	k.Names(c, c.Bounds().Line(1))
	DrawNote(c, c.Bounds().Line(2), Note{1 << 62, "▲▲ r17 ⟶ r41 r42", styles.Info})
	require.Equal(t, []string{
		"▃▃▃▃▃▃▃▃│!██│~▅▅│▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁",
		"r3      r41 r42 r5",
		"        ▲▲ r17 ⟶ r41 r42",
	}, c.Plain())
}

func TestDenseKeyspaceIsHeat(t *testing.T) {
	k := Keyspace{Most: 64}
	for i := range uint64(64) {
		k.Slices = append(k.Slices, Slice{Start: i << 58, End: (i + 1) << 58, Rate: float64(i + 1)})
	}
	require.True(t, k.Dense(40))
	c := NewCanvas(40, 1, themes[3])
	k.Bar(c, c.Bounds())
	require.Equal(t, "▁▁▁▂▂▂▂▂▃▃▃▃▄▄▄▄▄▅▅▅▅▆▆▆▆▆▇▇▇▇██████ ×64", c.Plain()[0])
}

func TestTimeline(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 4, 30, 0, time.UTC)
	tl := Timeline{
		Now: now, Cell: 2 * time.Second, Note: 6, Notes: "121ms",
		Lanes: []Lane{{Name: "n1", Note: "2", Marks: []Mark{{now, 'P', styles.OK}, {now.Add(-19 * time.Second), 'F', styles.Bad}, {now.Add(-time.Hour), 'X', styles.Bad}, {now.Add(time.Hour), 'X', styles.Bad}}}, {Name: "n2"}},
		Gap:   []Sample{{now.Add(-20 * time.Second), 80}, {now.Add(-20 * time.Second), 10}, {now.Add(-2 * time.Second), 20}},
	}
	c := NewCanvas(40, 4, themes[3])
	tl.Draw(c, c.Bounds())
	require.Equal(t, []string{
		"n1  ···················F·········P 2",
		"n2  ······························",
		"gap ···················█········▃· 121ms",
		"                  -30s         now",
	}, c.Plain())
	tl.Now = now.Add(time.Second) // within the cell nothing moves
	same := NewCanvas(40, 4, themes[3])
	tl.Draw(same, same.Bounds())
	require.Equal(t, c.Plain(), same.Plain())
}

func TestInputEdits(t *testing.T) {
	in := NewInput("").Insert("seg 日本").Left().Backspace()
	require.Equal(t, Input{"seg 本", 4}, in)
	require.Equal(t, Input{"seg ", 4}, in.Delete())
	require.Equal(t, Input{"本", 0}, in.DeleteWord())
	require.Equal(t, Input{"seg a b本", 7}, in.Insert("a\nb\x1b\xff"))
	require.Equal(t, Input{"本", 0}, in.DeleteToStart())
	require.Equal(t, Input{"seg ", 4}, in.DeleteToEnd())
	require.Equal(t, in.Text, in.Insert(strings.Repeat("x", maxInput)).Text)
	require.Equal(t, 0, in.Home().Left().At)
	require.Equal(t, len(in.Text), in.End().Right().At)
	require.Equal(t, "👩‍🚀"+"b", NewInput("a👩‍🚀b").Home().Delete().Text)
}

func TestInputScrollsToItsCursor(t *testing.T) {
	c := NewCanvas(10, 1, themes[3])
	NewInput("topics/orders").Draw(c, c.Bounds(), ": ", styles.Plain)
	require.Equal(t, ": /orders", c.Plain()[0])
	require.Contains(t, c.Lines()[0], "\x1b[0;7m \x1b[m")
}

// Edits keep the cursor between graphemes and the text clean, whatever is typed in whatever order.
func TestInputAlwaysHolds(t *testing.T) {
	edits := []func(Input) Input{Input.Left, Input.Right, Input.Home, Input.End, Input.Backspace, Input.Delete, Input.DeleteWord, Input.DeleteToStart, Input.DeleteToEnd}
	rapid.Check(t, func(t *rapid.T) {
		in := Input{At: rapid.IntRange(-9, 9).Draw(t, "at")}
		for range rapid.IntRange(1, 20).Draw(t, "edits") {
			if rapid.Bool().Draw(t, "type") {
				in = in.Insert(anyText(t))
			} else {
				in = edits[rapid.IntRange(0, len(edits)-1).Draw(t, "edit")](in)
			}
			require.True(t, in.At >= 0 && in.At <= len(in.Text))
			require.True(t, utf8.ValidString(in.Text))
			require.False(t, strings.ContainsAny(in.Text, "\x1b\n\t\x00"))
		}
	})
}

// What is too long for a line is wrapped between words, with the indent of its first line; nothing of it is lost.
func TestWrap(t *testing.T) {
	c := NewCanvas(80, 1, themes[0])
	require.Equal(t, []string{"one two", "three"}, c.Wrap("one two three", 9))
	require.Equal(t, []string{"one two three"}, c.Wrap("one two three", 13))
	require.Equal(t, []string{"  a  b", "  c"}, c.Wrap("  a  b c", 7))
	require.Equal(t, []string{"abcd", "efg"}, c.Wrap("abcdefg", 4))
	require.Equal(t, []string{""}, c.Wrap("", 4))
	require.Equal(t, []string{"名前", "名"}, c.Wrap("名前名", 5))
	rapid.Check(t, func(t *rapid.T) {
		s, w := anyText(t), rapid.IntRange(1, 20).Draw(t, "w")
		lines := c.Wrap(s, w)
		require.Equal(t, strings.ReplaceAll(s, " ", ""), strings.ReplaceAll(strings.Join(lines, ""), " ", ""))
		for _, l := range lines {
			require.True(t, c.Width(l) <= w || graphemeLen(strings.TrimLeft(l, " ")) == len(strings.TrimLeft(l, " ")), "%q is wider than %d", l, w)
		}
	})
}

// The help cuts no text where there is room for one column, and what is below the edge can be scrolled to.
func TestHelpIsWhole(t *testing.T) {
	h := Help{Title: "Keys", Groups: []HelpGroup{
		{"MOVE", []HelpKey{{"↑ ↓ j k", "row"}, {"tab", "next, previous panel"}}},
		{"FIND", []HelpKey{{"/", "filter (regex; !re inverts)"}, {"ctrl-l ctrl-z", "redraw, suspend"}}},
	}}
	for _, size := range []Rect{{W: 80, H: 24}, {W: 60, H: 24}, {W: 60, H: 5}} {
		seen := ""
		for h.Top = 0; h.Top <= h.Last(NewCanvas(size.W, size.H, themes[0]), size); h.Top++ {
			c := NewCanvas(size.W, size.H, themes[0])
			h.Draw(c, size)
			seen += strings.Join(c.Plain(), "\n")
		}
		for _, g := range h.Groups {
			for _, k := range g.Keys {
				require.Contains(t, seen, k.Keys)
				require.Contains(t, seen, k.Text, "%dx%d", size.W, size.H)
			}
		}
	}
}

// A dialog without room for all its text keeps the command, the question and the line that is typed.
func TestDialogKeepsItsQuestion(t *testing.T) {
	in := NewInput("ord")
	d := Dialog{Title: "delete orders", Input: &in, Ask: "Type orders to confirm: ", Foot: []Line{{Text: "$ eg-cli topic delete orders"}}}
	for range 30 {
		d.Lines = append(d.Lines, Line{Text: "a line of the plan"})
	}
	c := NewCanvas(80, 12, themes[0])
	d.Draw(c, c.Bounds())
	text := strings.Join(c.Plain(), "\n")
	require.Contains(t, text, "more")
	require.Contains(t, text, "$ eg-cli topic delete orders")
	require.Contains(t, text, "Type orders to confirm: ord")
}
