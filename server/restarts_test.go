package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Each start opens new segments, because a leader leads one for one start only. What was never written to goes again.
func TestRestartsLeaveNoEmptySegments(t *testing.T) {
	n := start(t, vfs.NewMem())
	idle, used := n.create("idle", base.TopicConfig{}), n.create("used", base.TopicConfig{})
	n.mustProduce(used, "a")
	for range 6 {
		n.restart()
		for _, ref := range []base.RangeRef{idle, used} {
			require.NoError(t, n.plane.AwaitLead(t.Context(), ref))
		}
	}
	eventually(t, func() bool { return len(n.store.All()) <= 2+3 })
	require.Equal(t, []string{"a"}, n.fetch(used, 0, 0).values)
}
