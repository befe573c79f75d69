package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/wire"
)

// The first record of a time is known when one whole copy of each segment before it has been looked through.
func TestFirstOfAnswers(t *testing.T) {
	r := &meta.Range{Segments: []*meta.Segment{
		{ID: 1, State: base.StateSealed, Base: 0, End: 100, Replicas: replicas(1, 2)},
		{ID: 2, State: base.StateSealed, Base: 100, End: 100, Replicas: replicas(3)}, // empty
		{ID: 3, State: base.StateSealed, Base: 100, End: 200, Replicas: replicas(2, 3)},
		{ID: 4, State: base.StateActive, Base: 200, End: meta.NoEnd, Replicas: replicas(3, 1)},
	}}
	says := func(at int64, holds ...base.SegmentID) offsetsOutcome {
		return offsetsOutcome{offsetsAnswer: offsetsAnswer{Found: at >= 0, Offset: at, TimeMs: at + 1000, Holds: holds}}
	}
	away := offsetsOutcome{err: base.Errorf(base.CodeUnreachable, "ask", "it is away")}
	for name, c := range map[string]struct {
		n1, n2, n3 offsetsOutcome
		want       int64 // -1: there is none
		code       base.Code
	}{
		"everybody":                               {says(50, 1), says(50, 1, 3), says(120, 3, 4), 50, base.CodeOK},
		"one is enough of each":                   {away, says(50, 1, 3), away, 50, base.CodeOK},
		"nothing of it in the first":              {away, says(120, 1, 3), away, 120, base.CodeOK},
		"in the active one":                       {says(230, 1), says(-1, 1, 3), away, 230, base.CodeOK},
		"nowhere":                                 {says(-1, 1), says(-1, 3), says(-1, 3, 4), -1, base.CodeOK},
		"nowhere, and the leader opens the last":  {says(-1, 1), says(-1, 3), says(-1, 3), -1, base.CodeOK},
		"nobody has the first":                    {away, away, says(120, 3, 4), 0, base.CodeNoLeader},
		"who has the first lacks a part":          {says(-1), away, says(120, 3, 4), 0, base.CodeNoLeader},
		"found in the part that it has":           {says(50), away, says(120, 3, 4), 50, base.CodeOK},
		"nowhere, but nobody has all of the last": {says(-1, 1), says(-1, 3), away, 0, base.CodeNoLeader},
	} {
		got, err := firstOf(r, map[base.NodeID]offsetsOutcome{"n1": c.n1, "n2": c.n2, "n3": c.n3})
		if c.code != base.CodeOK {
			require.ErrorIs(t, err, c.code, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want >= 0, got.Found, name)
		if got.Found {
			require.Equal(t, c.want, got.Offset, name)
			require.Equal(t, c.want+1000, got.TimeMs, name)
		}
	}
}

// Nothing found is the range's end, but never one that is only what a node can prove after its restart.
func TestFoundOrTheEnd(t *testing.T) {
	end := wire.OffsetAnswer{Offset: 500, Earliest: 10, Commit: 500}
	found, nothing := offsetsAnswer{Found: true, Offset: 0, TimeMs: 7}, offsetsAnswer{}
	unknown := base.Errorf(base.CodeBehind, "list offsets", "the end is not known yet")

	got, err := found.orEnd(end, nil)
	require.NoError(t, err)
	require.Equal(t, wire.OffsetAnswer{Offset: 0, TimeMs: 7, Earliest: 10, Commit: 500}, got)
	got, err = found.orEnd(wire.OffsetAnswer{Earliest: 10, Commit: 400}, unknown)
	require.NoError(t, err)
	require.Equal(t, wire.OffsetAnswer{Offset: 0, TimeMs: 7, Earliest: 10, Commit: 400}, got)
	got, err = nothing.orEnd(end, nil)
	require.NoError(t, err)
	require.Equal(t, end, got)
	_, err = nothing.orEnd(wire.OffsetAnswer{Earliest: 10, Commit: 400}, unknown)
	require.ErrorIs(t, err, base.CodeBehind)
}
