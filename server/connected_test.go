package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// A start that only the connection knows of is placed on once the root has admitted it, and has not been up for long.
func TestAStartThatOnlyTheConnectionKnows(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	was := topology.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 3, Liveness: topology.Alive, Admitted: true, Leaving: true}
	for name, c := range map[string]struct {
		listed *meta.Node
		alive  bool
	}{
		"the root has not admitted it": {&meta.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 3}, false},
		"the root does not list it":    {nil, false},
		"its disk is another one":      {&meta.Node{ID: "n2", Disk: base.DiskID{9}, Boot: 4}, false},
		"it is admitted":               {&meta.Node{ID: "n2", Disk: base.DiskID{2}, Boot: 4}, true},
	} {
		n := startedAnew(was, 4, c.listed, now)
		if !c.alive {
			require.Equal(t, topology.Suspect, n.Liveness, name)
			continue
		}
		require.Empty(t, n.Unfit(), name)
		require.EqualValues(t, 4, n.Boot)
		require.EqualValues(t, 1_010_000, n.SettledMs)
	}
}
