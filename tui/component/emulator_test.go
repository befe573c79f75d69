package component

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/tui/styles"
)

// A terminal that gets the lines shows the cells: nothing of what was drawn moved the cursor, changed a mode or took
// another place than its own.
func TestTerminalShowsTheCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 30).Draw(t, "w"), rapid.IntRange(1, 5).Draw(t, "h")
		c := NewCanvas(w, h, themes[rapid.IntRange(0, len(themes)-1).Draw(t, "theme")])
		for range rapid.IntRange(1, 6).Draw(t, "texts") {
			x, y := rapid.IntRange(0, w).Draw(t, "x"), rapid.IntRange(0, h-1).Draw(t, "y")
			c.Text(x, y, ToEdge, anyText(t), styles.Style(rapid.Uint16().Draw(t, "style")))
		}
		screen := vt.NewEmulator(w, h)
		defer screen.Close()
		_, err := screen.WriteString(strings.Join(c.Lines(), "\r\n"))
		require.NoError(t, err)
		for y := range h {
			requireRow(t, c, screen, y)
		}
	})
}

func requireRow(t require.TestingT, c *Canvas, screen *vt.Emulator, y int) {
	var before cell
	for x := range c.w {
		v := c.cells[y*c.w+x]
		if v&rest != 0 {
			continue
		}
		want := string(c.appendCell(nil, before, v))
		width := 1
		if v&wide != 0 {
			width = 2
		}
		if want == "??" { // a grapheme that gave way to its neighbour
			want, width = "?", 1
		}
		got := screen.CellAt(x, y)
		require.NotNil(t, got)
		require.Equal(t, want, got.Content, "cell %d,%d", x, y)
		require.Equal(t, width, got.Width, "cell %d,%d", x, y)
		before = v
	}
}
