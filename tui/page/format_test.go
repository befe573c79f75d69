package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/styles"
)

// TestNumbersOfAColumn: a disk is as full as eg-cli says, and a wait has no tenths that nobody measured.
func TestNumbersOfAColumn(t *testing.T) {
	require.Equal(t, "92%", share(248_263_905_280, 270_553_174_016))
	require.Equal(t, none, share(1, 0))
	for ms, want := range map[int64]string{0: "0ms", 5: "5ms", 96: "96ms", 1449: "1.4s", 131_000: "2m11s"} {
		require.Equal(t, want, stood(ms))
	}
	require.Equal(t, "2^64", end(0))
	require.Equal(t, "0x5000", end(0x5000<<48))
}

// TestAnEventEndsWithAWholePart: where there is not room for all, no number is cut; a text is.
func TestAnEventEndsWithAWholePart(t *testing.T) {
	d := &drawing{c: component.NewCanvas(80, 24, styles.NewTheme(styles.NoColor, false))}
	parts := []string{"shard 1", "n2→n3", "leaderless 227 ms", "term=4"}
	require.Equal(t, "shard 1  n2→n3  leaderless 227 ms  term=4", d.whole(parts, 80))
	require.Equal(t, "shard 1  n2→n3  leaderless 227 ms …", d.whole(parts, 40))
	require.Equal(t, "shard 1  n2→n3 …", d.whole(parts, 30))
	require.Equal(t, "shard 1 …", d.whole(parts, 3), "the canvas cuts what is left")
	require.Equal(t, "s1→s2  DATA_PRESSURE …", d.whole([]string{"s1→s2", "DATA_PRESSURE", "gap 96ms"}, 18), "the canvas cuts the cause")
	text := []string{"n2 is not heard any more", "the connection was closed by the broker"}
	require.Equal(t, strings.Join(text, "  "), d.whole(text, 30))
}
