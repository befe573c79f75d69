package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

func TestRangeEndsWith(t *testing.T) {
	r := &meta.Range{State: base.StateSealed, Segments: []*meta.Segment{{ID: 1}, {ID: 5}}}
	require.True(t, endsWith(r, 5))
	require.False(t, endsWith(r, 1))
	r.State = base.StateActive
	require.False(t, endsWith(r, 5), "more may come behind it")
	require.False(t, endsWith(&meta.Range{State: base.StateSealed}, 5))
}
