package routing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is some routers, what is true about one shard, and faults between them.
type cluster struct {
	t     *testing.T
	nodes map[base.NodeID]*member

	mu     sync.Mutex
	leader base.NodeID
	term   uint64
	silent map[base.NodeID]bool // takes messages and says nothing
	lost   map[base.NodeID]bool // is known to be gone
	late   map[base.NodeID]bool // serves, and its answer is lost
	done   []string             // the changes carried out
}

// member is one node: what it believes, and its router.
type member struct {
	c    *cluster
	id   base.NodeID
	r    *Router
	mu   sync.Mutex
	here Claim // what its replica knows
}

var shard = base.ShardID{Root: 7}

func newCluster(t *testing.T, ids ...base.NodeID) *cluster {
	c := &cluster{t: t, nodes: make(map[base.NodeID]*member), silent: make(map[base.NodeID]bool), lost: make(map[base.NodeID]bool), late: make(map[base.NodeID]bool)}
	for _, id := range ids {
		m := &member{c: c, id: id}
		m.r = New(Options{
			Self: id, Replicas: m, Peers: m, Prepare: m.prepare,
			Nodes:    func() []base.NodeID { return ids },
			Address:  func(n base.NodeID) string { return string(n) + ":2921" },
			Intended: func(base.ShardID) []base.NodeID { return ids[:min(3, len(ids))] },
		})
		c.nodes[id] = m
		m.r.Start()
		t.Cleanup(func() { m.r.Close(context.Background()) })
	}
	return c
}

func (m *member) Leader(base.ShardID) (base.NodeID, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.here.Leader, m.here.Term
}

func (m *member) Voters(base.ShardID) []base.NodeID { return nil }

// believe sets what some nodes' replicas know.
func (c *cluster) believe(leader base.NodeID, term uint64, nodes ...base.NodeID) {
	for _, n := range nodes {
		m := c.nodes[n]
		m.mu.Lock()
		m.here = Claim{Leader: leader, Term: term}
		m.mu.Unlock()
	}
}

func (c *cluster) lead(leader base.NodeID, term uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader, c.term = leader, term
}

func (c *cluster) set(faults map[base.NodeID]bool, n base.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults[n] = true
}

func (m *member) prepare(kind wire.Kind, message []byte, shard base.ShardID) (Request, error) {
	return m.request(kind, string(message)), nil
}

// request is a change with an id, unless the kind only looks.
func (m *member) request(kind wire.Kind, message string) Request {
	q := Request{Kind: kind, Message: []byte(message), Shard: shard, Changes: kind == wire.KindCreateTopic}
	if q.Changes {
		q.ID = base.RequestID{1}
	}
	q.Serve = func(context.Context) ([]byte, error) {
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		if m.c.leader != m.id {
			here, _ := m.Leader(shard)
			if here != "" && here != m.id {
				return nil, base.Errorf(base.CodeNotLeader, "serve", "%s leads", here).WithRedirect(base.Redirect{Node: here})
			}
			return nil, base.Errorf(base.CodeNoLeader, "serve", "nobody leads")
		}
		switch message {
		case "missing":
			return nil, base.Errorf(base.CodeTopicNotFound, "serve", "no such topic")
		case "exists":
			return nil, base.Errorf(base.CodeTopicExists, "serve", "there is one")
		case "applied":
			return nil, base.Errorf(base.CodeNoLeader, "serve", "made, but not open").WithOutcome(base.Applied)
		}
		m.c.done = append(m.c.done, message)
		return fmt.Appendf(nil, "%s by %s", message, m.id), nil
	}
	return q
}

// Call is the network.
func (m *member) Call(ctx context.Context, node base.NodeID, kind peer.Kind, msg []byte) ([]byte, error) {
	c := m.c
	c.mu.Lock()
	silent, lost, late := c.silent[node], c.lost[node], c.late[node]
	c.mu.Unlock()
	to := c.nodes[node]
	switch {
	case to == nil || lost:
		return nil, base.Errorf(base.CodeUnreachable, "call", "node %s is gone", node)
	case silent:
		<-ctx.Done()
		return nil, base.Wrap(base.CodeCanceled, "call", ctx.Err()).WithOutcome(base.Unknown)
	}
	require.Equal(c.t, KindForward, kind)
	e, req, err := to.r.open(slices.Clone(msg))
	if err != nil {
		return nil, err
	}
	b, err := to.r.serve(context.Background(), e, req)
	if late {
		return nil, base.Errorf(base.CodeUnreachable, "call", "the connection broke").WithOutcome(base.Unknown)
	}
	return b, err
}

func (m *member) Liveness() map[base.NodeID]peer.State {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	states := make(map[base.NodeID]peer.State)
	for n := range m.c.nodes {
		states[n] = peer.State{Status: peer.Reachable}
		if m.c.lost[n] {
			states[n] = peer.State{Status: peer.Unreachable}
		}
	}
	return states
}

// ask puts a request to a node, with ten seconds.
func (c *cluster) ask(n base.NodeID, kind wire.Kind, message string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := c.nodes[n].r.Do(ctx, c.nodes[n].request(kind, message))
	return string(b), err
}

func (c *cluster) mustAsk(n base.NodeID, kind wire.Kind, message string) string {
	c.t.Helper()
	answer, err := c.ask(n, kind, message)
	require.NoError(c.t, err)
	return answer
}

// virtual runs a test in a bubble of virtual time.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
