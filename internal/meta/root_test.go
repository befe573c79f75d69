package meta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// rootOf is a root shard with one node, n1, and a way to give it commands.
func rootOf(t *testing.T) (s *State, do func(Command) error) {
	s = New(base.RootShard, 1)
	index := uint64(0)
	do = func(c Command) error {
		index++
		c.TimeMs = int64(index)
		r, _ := s.Apply(index, c)
		require.NoError(t, s.Check())
		return r.Err("apply")
	}
	require.NoError(t, do(Command{InitCluster: &InitCluster{Cluster: base.ClusterID{1}}}))
	require.NoError(t, do(start(1, 1, 100)))
	return s, do
}

// start is a registration of n1 with one of its disks, and how far the log on it has come.
func start(disk int, boot, wal uint64) Command {
	return Command{RegisterNode: &RegisterNode{
		Node: "n1", Disk: id('d', disk), Meta: id('m', disk), Boot: boot, Instance: id('i', 10*disk+int(boot)), WALEnd: wal, Address: "n1:2921",
	}}
}

// How far a node's log has come is kept, and is no news for the other nodes' copies of the table.
func TestACheckpointDoesNotRaiseTheTablesVersion(t *testing.T) {
	s, do := rootOf(t)
	version := s.Root().Version
	require.NoError(t, do(start(1, 1, 300)))
	require.EqualValues(t, 300, s.Root().Node("n1").WALEnd)
	require.NoError(t, do(start(1, 1, 200)), "one that comes late")
	require.EqualValues(t, 300, s.Root().Node("n1").WALEnd)
	require.Equal(t, version, s.Root().Version)
	moved := start(1, 1, 300)
	moved.RegisterNode.Address = "n1:3921"
	require.NoError(t, do(moved))
	require.Equal(t, version+1, s.Root().Version)
}

// A new disk begins with a log of its own, which is not measured by the old one's.
func TestAReplacedDiskTakesItsLogsEndAlong(t *testing.T) {
	s, do := rootOf(t)
	require.NoError(t, do(Command{ReplaceNode: &ReplaceNode{Node: "n1"}}))
	require.NoError(t, do(start(2, 2, 7)))
	require.EqualValues(t, 7, s.Root().Node("n1").WALEnd)
	require.NoError(t, do(start(2, 3, 9)), "its next start")
}

// A process that was out of reach when its disk was given up does not get it back by going on.
func TestADiskThatWasGivenUpIsNotTakenBackByItsProcess(t *testing.T) {
	s, do := rootOf(t)
	require.NoError(t, do(Command{ReplaceNode: &ReplaceNode{Node: "n1"}}))
	require.ErrorIs(t, do(start(1, 1, 300)), base.CodeNotAdmitted)
	require.True(t, s.Root().Node("n1").Replaced)
	require.ErrorIs(t, Admit(s.Root().Nodes, start(1, 1, 300).RegisterNode), base.CodeNotAdmitted)
	require.NoError(t, do(start(2, 2, 7)))
	require.False(t, s.Root().Node("n1").Replaced)
	require.ErrorIs(t, do(start(1, 1, 300)), base.CodeNotAdmitted)
}
