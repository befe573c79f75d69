package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// It takes two to call a leader gone, and each of them must not have heard it for two seconds.
func TestWhomToCallGone(t *testing.T) {
	now := time.Unix(1000, 0)
	segment := &active{Segment: &meta.Segment{Replicas: []base.Replica{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}}}
	for name, c := range map[string]struct {
		here   time.Duration // for which the leader has not been heard here
		n2, n3 time.Duration // and by the others
		age    time.Duration // of their words
		want   bool
	}{
		"nobody hears it":                    {2 * time.Second, 2 * time.Second, 2 * time.Second, 0, true},
		"one of the others does":             {2 * time.Second, 0, 2 * time.Second, 0, true},
		"both of the others do":              {time.Minute, 0, 0, 0, false},
		"heard here a moment ago":            {1999 * time.Millisecond, time.Minute, time.Minute, 0, false},
		"heard by the others a moment ago":   {time.Minute, 1999 * time.Millisecond, time.Second, 0, false},
		"their words are not of this moment": {time.Minute, time.Minute, time.Minute, time.Second, false},
	} {
		coord := New(Options{})
		l := newLoop(coord, base.RootShard)
		l.known["n1"] = life{lost: silent, silentSince: now.Add(-c.here)}
		for node, said := range map[base.NodeID]time.Duration{"n2": c.n2, "n3": c.n3} {
			// Each is being asked again, so that nobody is asked now.
			put(&coord.hearsay.words, question{witness: node, of: "n1"}, &word{at: now.Add(-c.age), silent: said, asking: true})
		}
		require.Equal(t, c.want, l.unheard(segment, now), name)
		require.NoError(t, coord.Close())
	}
}
