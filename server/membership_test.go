package server

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
)

// refusedStart starts a broker that must not come up, and returns why.
func (m *machine) refusedStart() *base.Error {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	var e *base.Error
	require.ErrorAs(m.t, m.tryStart(ctx), &e)
	require.NoError(m.t, ctx.Err(), "it waited instead: %v", e)
	require.NotEmpty(m.t, e.HintText())
	return e
}

// wipe gives the machine an empty disk.
func (m *machine) wipe() { m.mem = vfs.NewMem() }

// What becomes of disks that are not the node's, and of starts without a root, is in internal/sim, in virtual time.

func TestOneGrowsToThree(t *testing.T) {
	t.Parallel()
	one := newMachine(t, 1)
	one.start()
	more := []*machine{newMachine(t, 2), newMachine(t, 3)}
	for _, m := range more {
		m.cfg.JoinSeedNodes = []string{one.seed()}
	}
	together(more, (*machine).start)
	formed(t, append(more, one))
}

func TestNamesAndIPv6(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	machines := three(t, func(i int, c *config.Config) {
		c.BootstrapExpect = 3
		if i == 1 {
			c.BootstrapExpect = 2
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
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

// Nodes with one key form a cluster; one with another key, or without, is turned away before it is admitted.
func TestClusterKey(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, 32)
	machines := []*machine{newMachine(t, 1), newMachine(t, 2), newMachine(t, 3)}
	for _, m := range machines {
		m.deps = func(d *Deps) { d.ClusterKey = key }
		m.cfg.JoinSeedNodes = []string{machines[0].seed()}
	}
	machines[0].cfg.JoinSeedNodes = nil
	together(machines[:2], (*machine).start)
	formed(t, machines[:2])
	for says, other := range map[string][]byte{"with another key": bytes.Repeat([]byte{8}, 32), "this node has none": nil} {
		machines[2].deps = func(d *Deps) { d.ClusterKey = other }
		e := machines[2].refusedStart()
		require.Contains(t, e.Error(), says)
		require.Contains(t, e.HintText(), "cluster_key_file")
	}
	machines[2].deps = machines[1].deps
	machines[2].start()
	formed(t, machines)
	machines[2].stop() // a member whose configuration has changed meets nobody either
	machines[2].deps = func(d *Deps) { d.ClusterKey = nil }
	e := machines[2].refusedStart()
	require.Contains(t, e.Error(), "this node has none")
	require.Contains(t, e.HintText(), "cluster_key_file")
	machines[2].deps = machines[1].deps
	machines[2].start()
	formed(t, machines)
}
