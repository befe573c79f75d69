package server

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/vfs"
)

// refusedStart starts a broker that must not come up, and returns why.
func (m *machine) refusedStart() *base.Error {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	var e *base.Error
	require.ErrorAs(m.t, m.tryStart(ctx), &e)
	require.NoError(m.t, ctx.Err(), "it waited instead: %v", e)
	require.NotEmpty(m.t, e.HintText())
	return e
}

// wipe gives the machine an empty disk.
func (m *machine) wipe() { m.mem = vfs.NewMem() }

func TestOneGrowsToThree(t *testing.T) {
	one := newMachine(t, 1)
	one.start()
	more := []*machine{newMachine(t, 2), newMachine(t, 3)}
	for _, m := range more {
		m.cfg.JoinSeedNodes = []string{one.seed()}
	}
	together(more, (*machine).start)
	formed(t, append(more, one))
}

// All nodes stop and start again: they find each other by what they remember, seeds or not.
func TestWholeClusterStartsAgain(t *testing.T) {
	machines := three(t, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	together(machines, (*machine).start)
	formed(t, machines)
	soon(t, "three voters of the root", func() bool { return len(machines[0].srv.host.Voters(base.RootShard)) == 3 })
	began := time.Now()
	together(machines, (*machine).stop)
	t.Logf("stopped in %v", time.Since(began))
	began = time.Now()
	for _, m := range machines {
		m.cfg.JoinSeedNodes, m.cfg.BootstrapExpect = nil, 0
	}
	together(machines, (*machine).start)
	t.Logf("started in %v", time.Since(began))
	formed(t, machines)
	t.Logf("formed in %v", time.Since(began))
	for _, m := range machines {
		require.EqualValues(t, 2, m.srv.id.Boot)
	}
}

func TestNamesAndIPv6(t *testing.T) {
	for _, tc := range []struct{ name, host, advertise string }{
		{"IPv6", "::1", "::1"},
		{"a name", "127.0.0.1", "broker.test"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var machines []*machine
			for i := range 3 {
				m := newMachine(t, i+1, func(c *config.Config) { c.Host, c.AdvertiseHost = tc.host, tc.advertise })
				m.deps = func(d *Deps) {
					d.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
						require.Equal(t, "broker.test", host)
						return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
					}
				}
				machines = append(machines, m)
			}
			seeds(machines, func(_ int, c *config.Config) { c.BootstrapExpect = 2 })
			together(machines, (*machine).start)
			formed(t, machines)
			n, ok := machines[1].srv.view().Node("n1")
			require.True(t, ok)
			require.Contains(t, n.Address, tc.advertise)
		})
	}
}

// Who waits for a cluster joins it whenever there is one, and says meanwhile what it waits for.
func TestJoinerWaits(t *testing.T) {
	founder, joiner := newMachine(t, 1), newMachine(t, 2)
	joiner.cfg.JoinSeedNodes = []string{founder.seed()}
	started := make(chan error, 1)
	srv, err := New(joiner.cfg, Deps{FS: joiner.mem, Logger: testLogger(t), Version: "test"})
	require.NoError(t, err)
	go func() { started <- srv.Start(t.Context()) }()
	soon(t, "it says so", func() bool { return strings.Contains(srv.progress.String(), "waits for a cluster to join") })
	founder.start()
	require.NoError(t, <-started)
	joiner.srv = srv
	formed(t, []*machine{founder, joiner})
}

// A configuration that says bootstrap for good makes no second cluster after the loss of a disk.
func TestBootstrapMeetsACluster(t *testing.T) {
	yes := true
	machines := []*machine{newMachine(t, 1), newMachine(t, 2)}
	seeds(machines, func(i int, c *config.Config) {
		if i == 0 {
			c.Bootstrap = &yes
		}
	})
	together(machines, (*machine).start)
	formed(t, machines)
	machines[0].stop()
	machines[0].wipe()
	e := machines[0].refusedStart()
	require.Contains(t, e.Error(), "is there already")
	require.Contains(t, e.HintText(), "set bootstrap to false")
}

func TestFoundersOfDifferentLists(t *testing.T) {
	machines := three(t, func(i int, c *config.Config) {
		c.BootstrapExpect = 3
		if i == 1 {
			c.BootstrapExpect = 2
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	together(machines, func(m *machine) {
		require.ErrorIs(t, m.tryStart(ctx), context.DeadlineExceeded)
	})
	for _, m := range machines {
		id, locks, err := store.OpenIdentity(m.mem, m.cfg.DataDir, m.cfg.MetaDir, store.IdentityRequest{})
		require.NoError(t, err)
		require.NoError(t, locks.Close())
		require.True(t, id.Cluster.IsZero(), "nobody has minted")
	}
}

// threeFormed is three nodes that found together, the first of which is never touched.
func threeFormed(t *testing.T) []*machine {
	machines := three(t, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	together(machines, (*machine).start)
	formed(t, machines)
	soon(t, "three voters of the root", func() bool {
		return len(machines[0].srv.host.Voters(base.RootShard)) == 3
	})
	return machines
}

// A node id comes back with an empty disk: refused, until an operator has given the old disk up; then it is a member
// again, with starts that go on.
func TestWipedDiskIsRefusedThenReplaced(t *testing.T) {
	machines := threeFormed(t)
	wiped := machines[2]
	old := wiped.srv.id.Disk
	wiped.stop()
	wiped.wipe()
	e := wiped.refusedStart()
	require.ErrorIs(t, e, base.CodeNotAdmitted)
	require.Contains(t, e.Error(), "is known with disk "+old.String())
	require.Contains(t, e.HintText(), "eg-cli node replace n3")

	member, _ := machines[0].srv.members.member("n3")
	require.EqualValues(t, 1, member.Boot, "nobody has met the stranger")
	replace(t, machines[:2], "n3")
	wiped.start()
	formed(t, machines)
	require.Greater(t, wiped.srv.id.Boot, uint64(1))
	require.NotEqual(t, old, wiped.srv.id.Disk)

	wiped.stop()
	wiped.start()
	formed(t, machines)
}

// replace gives the disk of a node up, by whoever leads the root.
func replace(t *testing.T, machines []*machine, node base.NodeID) {
	t.Helper()
	soon(t, "the root takes it", func() bool {
		for _, m := range machines {
			_, err := m.srv.propose(t.Context(), "replace", base.RootShard, meta.Command{
				TimeMs: time.Now().UnixMilli(), ReplaceNode: &meta.ReplaceNode{Node: node},
			})
			if err == nil {
				return true
			}
		}
		return false
	})
}

func TestRolledBackDiskIsRefused(t *testing.T) {
	machines := threeFormed(t)
	m := machines[2]
	m.stop()
	old := m.mem.Snapshot()
	m.start()
	formed(t, machines)
	m.stop()
	m.mem = old
	e := m.refusedStart()
	require.ErrorIs(t, e, base.CodeNotAdmitted)
	require.Contains(t, e.Error(), "its disk is an older image, or runs twice")
}

// The address of a node is given to another one: that one is another node, and the first can come back elsewhere.
func TestSameAddressAnotherDisk(t *testing.T) {
	machines := threeFormed(t)
	m := machines[2]
	m.stop()
	other := newMachine(t, 4, func(c *config.Config) { c.ClusterPort = m.cfg.ClusterPort })
	other.cfg.JoinSeedNodes = []string{machines[0].seed()}
	other.start()
	m.cfg.ClusterPort = freePort(t, m.cfg.Host)
	m.start()
	formed(t, append(machines, other))
}

// Two copies of one directory: whoever comes second ends, and the first goes on.
func TestCloneOfARunningNode(t *testing.T) {
	machines := threeFormed(t)
	original := machines[2]
	clone := newMachine(t, 3)
	clone.mem = original.mem.Snapshot()
	e := clone.refusedStart()
	require.ErrorIs(t, e, base.CodeFenced)
	require.Contains(t, e.Error(), "runs already")
	select {
	case err := <-original.srv.Stopped():
		t.Fatal(err)
	default:
	}
	formed(t, machines)
}

// A new node with the node_id of one that runs does not take its place either.
func TestNodeIDTwice(t *testing.T) {
	machines := threeFormed(t)
	stranger := newMachine(t, 3)
	stranger.cfg.JoinSeedNodes = []string{machines[0].seed()}
	e := stranger.refusedStart()
	require.ErrorIs(t, e, base.CodeFenced)
	require.Contains(t, e.Error(), "node n3 runs already")
	require.Contains(t, e.HintText(), "another node_id")
	formed(t, machines)
}

func TestCopyUnderAnotherName(t *testing.T) {
	machines := threeFormed(t)
	clone := newMachine(t, 3)
	clone.mem = machines[2].mem.Snapshot()
	clone.cfg.NodeID = "n9"
	e := clone.refusedStart()
	require.Contains(t, e.Error(), "belongs to node n3, the configuration says n9")
}

// With the root's quorum gone the newest node table among the peers lets a known node start again, and nobody else.
func TestStartWithoutARoot(t *testing.T) {
	machines := threeFormed(t)
	fourth := newMachine(t, 4)
	fourth.cfg.JoinSeedNodes = []string{machines[0].seed()}
	fourth.start()
	machines = append(machines, fourth)
	formed(t, machines)
	var voters, others []*machine
	soon(t, "one of four has no seat in the root", func() bool {
		voters, others = nil, nil
		for _, m := range machines {
			if m.srv.host.Hosts(base.RootShard) {
				voters = append(voters, m)
			} else {
				others = append(others, m)
			}
		}
		return len(voters) == 3 && len(machines[0].srv.members.nodeTable().Nodes) == 4
	})
	left, m := voters[0], others[0]
	for _, gone := range []*machine{m, voters[1], voters[2]} {
		gone.stop()
	}
	m.start()
	soon(t, "its peer takes it for admitted", func() bool {
		n, ok := left.srv.view().Node(base.NodeID(m.cfg.NodeID))
		return ok && n.Admitted && n.Boot == m.srv.id.Boot && n.Liveness == topology.Alive
	})
	require.Less(t, left.srv.members.nodeTable().node(m.srv.id.Node).Boot, m.srv.id.Boot)

	stranger := newMachine(t, 5)
	stranger.cfg.JoinSeedNodes = []string{left.seed()}
	ctx, cancel := context.WithTimeout(t.Context(), withoutRoot+2*time.Second)
	defer cancel()
	require.ErrorIs(t, stranger.tryStart(ctx), context.DeadlineExceeded)

	together(voters[1:], (*machine).start)
	soon(t, "the root has the last word", func() bool {
		n := left.srv.members.nodeTable().node(m.srv.id.Node)
		return n != nil && n.Boot == m.srv.id.Boot
	})
}
