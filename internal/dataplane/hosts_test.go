package dataplane

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// hostNet connects a team by real hosts over a network in memory.
type hostNet struct {
	t       testing.TB
	network *peer.Network
	nodes   []base.NodeID

	mu    sync.Mutex
	hosts map[base.NodeID]*teamHost
}

// teamHost is one process's side of its connections. The plane comes after it, as in a broker.
type teamHost struct {
	*peer.Host
	main, data *peer.Demux
}

func newHostNet(t testing.TB, nodes int) *hostNet {
	n := &hostNet{t: t, network: peer.NewNetwork(), hosts: make(map[base.NodeID]*teamHost)}
	for i := range nodes {
		n.nodes = append(n.nodes, base.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	return n
}

func (n *hostNet) links(m *member, boot uint64) Links {
	listen := func(port string) *peer.Demux {
		l, err := n.network.Listen(string(m.node) + port)
		require.NoError(n.t, err)
		return peer.NewDemux(l, nil)
	}
	h := &teamHost{main: listen(":2922"), data: listen(":2923")}
	h.Host = peer.New(peer.Options{
		Node: m.node, Boot: boot, Cluster: base.ClusterID{1}, Instance: base.UUID{byte(boot), m.node[1]},
		Listen: func(tag peer.Tag) net.Listener {
			if tag == peer.TagData {
				return h.data.Listener(tag)
			}
			return h.main.Listener(tag)
		},
		Resolve:     func(node base.NodeID) (string, bool) { return string(node) + ":2922", true },
		ResolveData: func(node base.NodeID) (string, bool) { return string(node) + ":2923", true },
		Dial:        n.network.Dialer(string(m.node)),
		OnLink: func(l peer.Link) {
			if p := m.plane.Load(); p != nil {
				p.OnLink(l)
			}
		},
	})
	Register(h.Host, m.plane.Load)
	n.mu.Lock()
	n.hosts[m.node] = h
	n.mu.Unlock()
	return h.Host
}

func (n *hostNet) join(node base.NodeID, _ uint64, _ *Plane) {
	n.mu.Lock()
	h := n.hosts[node]
	n.mu.Unlock()
	require.NoError(n.t, h.Keep(n.nodes))
	h.Start()
	h.main.Start()
	h.data.Start()
}

func (n *hostNet) leave(node base.NodeID) {
	n.network.Kill(string(node))
	n.stop(node)
}

func (n *hostNet) stop(node base.NodeID) {
	n.mu.Lock()
	h := n.hosts[node]
	delete(n.hosts, node)
	n.mu.Unlock()
	if h != nil {
		_, _ = h.main.Close(), h.data.Close() // their listeners may be gone already
		require.NoError(n.t, h.Close())
	}
}

func (n *hostNet) close() {
	for _, node := range n.nodes {
		n.stop(node)
	}
}

// What the scripted links do, real connections do: one that is reset is resumed, a process that is gone is lost at once,
// and one that starts anew takes part again in the next segment.
func TestPlanesOverRealConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := newHostNet(t, 4)
		m := newTeam(t, teamOptions{nodes: 4, fsync: time.Millisecond, lanes: hosts})
		defer m.close()
		w := m.writer(testRef, 1000, 1000, 10)
		w.write(0, 100)
		require.Empty(t, m.coord.requests())

		for i := range 4 {
			ended := make(chan struct{})
			go func() { w.write(100*(i+1), 100); close(ended) }()
			time.Sleep(3 * time.Millisecond)
			hosts.network.Reset("n1", "n2")
			<-ended
			time.Sleep(5 * time.Second)
		}
		require.Empty(t, m.coord.requests(), "redialled within 50 ms")
		require.NotZero(t, m.members["n1"].plane.Load().metrics.resumes.Value())

		ended := make(chan struct{})
		go func() { w.write(1000, 500); close(ended) }()
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		m.members["n3"].kill()
		w.write(2000, 10)
		require.Less(t, time.Since(began), 300*time.Millisecond)
		require.Equal(t, []base.NodeID{"n3"}, m.coord.requests()[0].Lost)
		<-ended
		m.members["n3"].start(time.Millisecond)
		time.Sleep(5 * time.Second)
		m.coord.recover(testRef) // as if the leader were gone; n3 is the spare now
		w.write(3000, 100)
		time.Sleep(5 * time.Second)
		w.check()
	})
}
