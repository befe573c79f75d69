package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

func TestCutOff(t *testing.T) {
	now := time.Now()
	link := func(s peer.Status, since time.Duration) peer.State {
		return peer.State{Status: s, Since: now.Add(-since)}
	}
	for name, c := range map[string]struct {
		links map[base.NodeID]peer.State
		want  bool
	}{
		"nobody is there":        {nil, false},
		"one of two is":          {map[base.NodeID]peer.State{"n2": link(peer.Reachable, time.Hour), "n3": link(peer.Refused, time.Hour)}, false},
		"one was a moment ago":   {map[base.NodeID]peer.State{"n2": link(peer.Refused, time.Millisecond), "n3": link(peer.Refused, time.Hour)}, false},
		"all have long been out": {map[base.NodeID]peer.State{"n2": link(peer.Refused, time.Minute), "n3": link(peer.Unreachable, time.Hour)}, true},
	} {
		require.Equal(t, c.want, cutOff(c.links, now), name)
	}
}
