package component

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/styles"
)

// TestGallery compares one screen with every component to the files in testdata, as plain text and with its styles.
// EASTGUARD_REWRITE=1 writes them anew: look at what changed.
func TestGallery(t *testing.T) {
	for name, theme := range map[string]*styles.Theme{
		"truecolor": styles.NewTheme(styles.TrueColor, false), "256": styles.NewTheme(styles.Color256, false),
		"16": styles.NewTheme(styles.Color16, false), "none": styles.NewTheme(styles.NoColor, false), "ascii": styles.NewTheme(styles.NoColor, true),
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCanvas(100, 40, theme)
			drawGallery(c)
			requireTidy(t, c)
			plain := "gallery.txt" // colours change no text
			if theme.ASCII {
				plain = "gallery-ascii.txt"
			}
			requireFile(t, plain, strings.Join(c.Plain(), "\n")+"\n")
			requireFile(t, "gallery-"+name+".ansi.txt", strings.ReplaceAll(c.String(), "\x1b", "␛")+"\n")
		})
	}
}

func requireFile(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("EASTGUARD_REWRITE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "EASTGUARD_REWRITE=1 go test writes it")
	require.Equal(t, string(want), got)
}

func drawGallery(c *Canvas) {
	now := time.Date(2026, 1, 1, 12, 4, 31, 0, time.UTC)
	top, below := c.Bounds().CutTop(11)
	left, right := top.CutLeft(58)
	drawGalleryTable(c, left)
	drawGalleryBars(c, right)
	mid, bottom := below.CutTop(7)
	Timeline{
		Now: now, Cell: 2 * time.Second, Note: 14, Notes: "p99 121 ms",
		Lanes: []Lane{
			{Name: "n1", Note: " 6", Marks: []Mark{{now.Add(-9 * time.Second), 'P', styles.Plain}, {now.Add(-48 * time.Second), 'I', styles.Dim}, {now.Add(-90 * time.Second), 'S', styles.Info}}},
			{Name: "n3", Note: " 8 ◂ suspect", Style: styles.Warn, Marks: []Mark{{now, 'F', styles.Bad}, {now.Add(-2 * time.Second), 'F', styles.Bad}}},
		},
		Gap: []Sample{{now.Add(-9 * time.Second), 40}, {now.Add(-2 * time.Second), 96}, {now.Add(-48 * time.Second), 12}},
	}.Draw(c, Box{Title: "Seals (1 cell = 2 s)", Note: "P pressure  I idle  F failure  S split  M merge"}.Draw(c, mid))
	mid, bottom = bottom.CutTop(6)
	alive, suspect := MatrixCell{c.Glyphs().Alive, styles.OK}, MatrixCell{c.Glyphs().Suspect, styles.Warn}
	Matrix{Columns: []string{"n1", "n2", "n3"}, Notes: "ring hash   epoch   agrees", Rows: []MatrixRow{
		{Name: "n1", Cells: []MatrixCell{alive, alive, suspect}, Note: "0x9f3c        184   yes"},
		{Name: "n2", Cells: []MatrixCell{alive, alive, suspect}, Note: "0x9f3c        184   yes"},
		{Name: "n3", Cells: []MatrixCell{{}, {}, {}}, Note: "(no stream for 3s)", NoteStyle: styles.Dim},
	}}.Draw(c, Box{Title: "What each node believes", Note: "rows = observer"}.Draw(c, mid))
	in := NewInput("ord")
	left, right = bottom.CutLeft(68)
	Dialog{Title: "Split orders/r5", Warn: "protected context", Ask: "Type the topic name to confirm: ", Input: &in, Lines: []Line{
		{Text: "Seal r5 [0x2000…, 0x4000…) and open two children."}, {}, {Text: "produce gap   about 100 ms on this range, as long as the new segment takes to open", Indent: 2},
	}, Foot: []Line{{Text: "$ eg-cli range split orders r5 --at mid", Style: styles.Info, Indent: 2}}}.Draw(c, left)
	help := Help{Title: "Keys", Note: "esc to close", Groups: []HelpGroup{{"MOVE", []HelpKey{{"↑ ↓ j k", "row"}}}, {"ACT", []HelpKey{{"x", "actions"}}}}}
	help.Draw(c, right)
}

func drawGalleryTable(c *Canvas, r Rect) {
	names := []string{"orders/r41", "日本語/r1", "evil\x1b[2J\u202e/r2", "שלום/r3", "n-eu-central-1-17/r5", "é/r9", "clicks/r1", "clicks/r2"}
	t := &Table{
		Name: "gallery", Len: len(names), SortBy: "RATE", Descending: true,
		Columns: []Column{{Title: "RANGE", Min: 10, Width: 16, Grow: true}, {Title: "ST", Width: 2}, {Title: "RATE", Width: RateWidth, Right: true}, {Title: "SIZE", Width: 8, Right: true, Priority: 1}, {Title: "AGE", Width: AgeWidth, Right: true}, {Title: "TREND", Width: 7, Priority: 2}},
		ID:      strconv.Itoa,
		Row: func(i int, row *Row) {
			rate := 61.2e6 / float64(i*i+1)
			row.ID(0, names[i], styles.Accent)
			row.Sign(1, c.Glyphs().Alive, styles.OK)
			row.Number(2, Rate(rate), styles.Heat(7-i))
			row.Number(3, Bytes(uint64(i+1)<<(20+i)), styles.Plain)
			row.Number(4, Age(time.Duration(1+i*i*i*97)*time.Second), styles.Dim)
			c.Spark(row.Cell(5), []float64{1, 2, float64(i), 3, 5}, 8, styles.Info)
			if i == 5 {
				row.Fade()
			}
		},
	}
	t.Draw(c, Box{Title: "Ranges", Note: "sort: rate ▼", Focused: true}.Draw(c, r), TableState{Selected: "1", At: 1, Focused: true, Marked: func(id string) bool { return id == "3" }})
}

func drawGalleryBars(c *Canvas, r Rect) {
	in := Box{Title: "Bars", Note: "WARN 1", NoteStyle: styles.Warn}.Draw(c, r)
	k := Keyspace{Slices: []Slice{
		{0, 1 << 62, 3, "r3", 0, false},
		{1 << 62, 3 << 61, 9, "r41", '!', true},
		{3 << 61, 1 << 63, 5, "r42", '~', false},
		{1 << 63, 0, 1, "r5", 0, false},
	}}
	k.Scale(c, in.Line(0))
	k.Bar(c, in.Line(1))
	k.Names(c, in.Line(2))
	DrawNote(c, in.Line(3), Note{1 << 62, "▲▲ r17 ⟶ r41 r42", styles.Info})
	var many []Slice
	for i := range uint64(200) {
		many = append(many, Slice{Start: i * (1 << 56) / 200 * 256, End: (i + 1) * (1 << 56) / 200 * 256, Rate: float64(i % 67)})
	}
	Keyspace{Slices: many}.Bar(c, in.Line(4))
	c.Spark(in.Line(5), []float64{1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 2, 9}, 0, styles.Info)
	c.Bar(in.Line(6), 0.53, styles.Heat(4))
	c.Meter(in.Line(7), 0.62, styles.OK)
	c.Pen(in.Line(8)).Text("in ", styles.Dim).Number(RateWidth, Rate(128.4e6), styles.Plain).Skip(2).Text(Records(512e3), styles.Plain).AtRight("3d04h", styles.Dim)
}
