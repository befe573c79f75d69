package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianAndQuantile(t *testing.T) {
	require.Zero(t, median(nil))
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Zero(t, quantile(nil, 0.5))
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	require.EqualValues(t, 51, quantile(all, 0.5))
	require.EqualValues(t, 100, quantile(all, 0.99))
	require.EqualValues(t, 100, quantile(all, 1))
}

func TestUpdateReplacesOnlyTheTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "PERFORMANCE.md")
	require.NoError(t, os.WriteFile(file, []byte("# head\n"+beginMark+"\nold\n"+endMark+"\ntail\n"), 0o600))
	r := &report{options: options{commit: "abc", rounds: 5, period: time.Second, dir: "/"}}
	r.add("what", "%.1f MB/s", 12.34, "0.5 × floor").goal("≥ 1", false)
	require.NoError(t, r.update(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^# head\n.*\| what \| 12\.3 MB/s \| 0\.5 × floor \| ≥ 1 \| missed \|\n\n.*\ntail\n$`, string(text))
	require.NotContains(t, string(text), "old")
	require.Contains(t, string(text), "commit abc")
	require.NoError(t, r.update(file), "and can be written again")

	require.NoError(t, os.WriteFile(file, []byte("no marks"), 0o600))
	require.ErrorContains(t, r.update(file), "lacks the lines")
}

func TestPayloadIsOfItsSizeAndVaries(t *testing.T) {
	next := payload(100)
	a, b := next(), next()
	require.Len(t, a, 100)
	require.NotEqual(t, a, b)
	for range 10_000 {
		require.Len(t, next(), 100)
	}
}
