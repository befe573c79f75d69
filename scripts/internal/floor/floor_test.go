package floor

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFloor(t *testing.T) {
	dir := t.TempDir()
	all, err := Latencies(dir, 4096, 20*time.Millisecond)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	rate, err := Throughput(dir, 1<<20, 20*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, rate)
	all, err = Concurrent(dir, 4096, 3, 20*time.Millisecond)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = Throughput("/nowhere", 1, time.Millisecond)
	require.ErrorContains(t, err, "open the file")
}
