package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

// What another node tells as the node table may be no table.
func TestATableThatIsNone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 1)
	m.start()
	s := m.srv
	for what, nodes := range map[string][]*meta.Node{
		"a node is missing": {nil},
		"out of order":      {{ID: "n2"}, {ID: "n1"}},
		"twice":             {{ID: "n1"}, {ID: "n1"}},
	} {
		before := s.members.nodeTable()
		_, err := s.serveTable(t.Context(), nil, tableMessage{Table: &nodeTable{Cluster: s.clusterID(), Version: 1 << 40, Nodes: nodes}})
		require.NoError(t, err)
		require.Same(t, before, s.members.nodeTable(), what)
		s.members.restore(savedTable{Table: &nodeTable{Cluster: s.clusterID(), Nodes: nodes}}, s.clusterID())
		require.Same(t, before, s.members.nodeTable(), what)
	}
	s.rebuild(t.Context())
	_, listed := s.view().Node(base.NodeID("n1"))
	require.True(t, listed)
}

// A copy on the disk is told to others when it is the newest, so none of it may be read wrong.
func TestADamagedTableIsNone(t *testing.T) {
	t.Parallel()
	text := []byte("{\n  \"table\": {\n    \"version\": 35\n  }\n}\n")
	b := vfs.AppendSum(text)
	saved, err := parseTable(b)
	require.NoError(t, err)
	require.EqualValues(t, 35, saved.Table.Version)
	saved, err = parseTable(text)
	require.NoError(t, err, "of a version that wrote no sum")
	require.EqualValues(t, 35, saved.Table.Version)
	for i := range b {
		bad := append([]byte{}, b...)
		bad[i] ^= 1
		_, err := parseTable(bad)
		require.Error(t, err, "%q", bad)
	}
}
