package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/sim/testport"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/vfs"
)

// machine is one place where a broker runs in a test of several: a disk in memory and fixed ports on the loopback.
type machine struct {
	t    *testing.T
	cfg  config.Config
	mem  *vfs.Mem
	srv  *Server
	deps func(*Deps)
	prep func(*Server) // before it starts
}

// freePort is a port that nobody else listens on while the test runs.
func freePort(t *testing.T, host string) int {
	p, err := testport.Take(host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Release() })
	return p.Number
}

// newMachine prepares node nI. Others name it by its cluster port, clients by its client port: a restart keeps both.
func newMachine(t *testing.T, i int, edit ...func(*config.Config)) *machine {
	m := &machine{t: t, cfg: testConfig(), mem: vfs.NewMem()}
	m.cfg.NodeID = fmt.Sprintf("n%d", i)
	for _, e := range edit {
		e(&m.cfg)
	}
	for _, port := range []*int{&m.cfg.ClusterPort, &m.cfg.ClientPort} {
		if *port == 0 {
			*port = freePort(t, m.cfg.Host)
		}
	}
	t.Cleanup(func() { m.stop() })
	return m
}

// seed is the machine as others name it.
func (m *machine) seed() string {
	return net.JoinHostPort(m.cfg.AdvertiseHost, strconv.Itoa(m.cfg.ClusterPort))
}

// tryStart runs a broker on the machine until ctx ends its start.
func (m *machine) tryStart(ctx context.Context) error {
	deps := Deps{FS: m.mem, Logger: testLogger(m.t).With("node", m.cfg.NodeID), Version: "test"}
	if m.deps != nil {
		m.deps(&deps)
	}
	s, err := New(m.cfg, deps)
	if err != nil {
		return err
	}
	if m.prep != nil {
		m.prep(s)
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	m.srv = s
	return nil
}

func (m *machine) start() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	require.NoError(m.t, m.tryStart(ctx), m.cfg.NodeID)
}

func (m *machine) stop() {
	if m.srv != nil {
		srv := m.srv
		m.srv = nil
		require.NoError(m.t, srv.Close())
	}
}

// together runs an action on all machines side by side.
func together(machines []*machine, do func(*machine)) {
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

// seeds names machines in the configurations of all.
func seeds(machines []*machine, edit func(i int, c *config.Config)) {
	var names []string
	for _, m := range machines {
		names = append(names, m.seed())
	}
	for i, m := range machines {
		m.cfg.JoinSeedNodes = names
		edit(i, &m.cfg)
	}
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 20*time.Millisecond, what)
}

// formed waits until every machine sees all of them alive and admitted, with one ring.
func formed(t *testing.T, machines []*machine) {
	t.Helper()
	for _, m := range machines {
		soon(t, m.cfg.NodeID+" sees all", func() bool {
			view := m.srv.view()
			n := 0
			for i := range view.Nodes {
				if v := &view.Nodes[i]; v.Liveness == topology.Alive && v.Admitted {
					n++
				}
			}
			r, version := m.srv.ringNow()
			first, firstVersion := machines[0].srv.ringNow()
			return n == len(machines) && r.Len() == len(machines) && r.Hash() == first.Hash() && version == firstVersion
		})
	}
	cluster := machines[0].srv.clusterID()
	require.False(t, cluster.IsZero())
	for _, m := range machines {
		require.Equal(t, cluster, m.srv.clusterID())
		require.Equal(t, cluster, m.srv.id.Cluster)
	}
}

func three(t *testing.T, edit func(i int, c *config.Config)) []*machine {
	machines := []*machine{newMachine(t, 1), newMachine(t, 2), newMachine(t, 3)}
	seeds(machines, edit)
	return machines
}

func TestThreeFormTogether(t *testing.T) {
	t.Parallel()
	machines := three(t, func(_ int, c *config.Config) { c.BootstrapExpect = 3 })
	together(machines, (*machine).start)
	formed(t, machines)
	require.Equal(t, base.NodeID(machines[0].cfg.NodeID), machines[0].srv.id.Node)
}

func TestOneFoundsAndTwoJoin(t *testing.T) {
	t.Parallel()
	yes := true
	machines := three(t, func(i int, c *config.Config) {
		if i == 0 {
			c.Bootstrap = &yes
		}
	})
	together(machines, (*machine).start)
	formed(t, machines)
}
