package component

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/styles"
)

// TestTallKeyspace: a bar of several lines is the same bar with finer steps, and one line is what it was.
func TestTallKeyspace(t *testing.T) {
	c := NewCanvas(16, 3, styles.NewTheme(styles.NoColor, false))
	k := Keyspace{Slices: []Slice{{End: 1 << 62, Rate: 12}, {Start: 1 << 62, End: 1 << 63, Rate: 6, Sign: '!'}, {Start: 1 << 63, Rate: 0}}}
	k.Bar(c, Rect{0, 0, 16, 3})
	require.Equal(t, []string{
		"████│   │",
		"████│▅▅▅│",
		"████│!██│▁▁▁▁▁▁▁",
	}, c.Plain())
	c.Reset(16, 3, c.Theme())
	k.Bar(c, Rect{0, 1, 16, 1})
	require.Equal(t, []string{"", "████│!▅▅│▁▁▁▁▁▁▁", ""}, c.Plain())
	c.Reset(16, 3, c.Theme())
	Keyspace{}.Bar(c, Rect{0, 0, 16, 3})
	require.Equal(t, []string{"", "", "················"}, c.Plain())
}
