package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeter(t *testing.T) {
	var m meter
	bytesAt := func(ms int64) float64 {
		bytes, _ := m.now(ms)
		return bytes
	}
	require.Zero(t, bytesAt(1_000))
	ms := int64(1_000_000)
	for range 300 { // 30 s of 10 batches a second
		ms += 100
		m.add(20_000, 50, ms)
	}
	require.InEpsilon(t, 200_000, bytesAt(ms), 0.02)
	_, records := m.now(ms)
	require.InEpsilon(t, 500, records, 0.02)
	require.InEpsilon(t, bytesAt(ms)/2.718, bytesAt(ms+5_000), 0.01)
	require.Less(t, bytesAt(ms+60_000), 10.0, "it forgets")

	m.add(5_000, 1, ms-3_000) // a new leader whose clock is behind
	require.InEpsilon(t, 201_000, bytesAt(ms), 0.02)
	require.InDelta(t, bytesAt(ms), bytesAt(0), 0)
}
