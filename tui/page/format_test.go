package page

import (
	"testing"

	"github.com/stretchr/testify/require"
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
