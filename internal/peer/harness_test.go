package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	kindEcho  = Control + 1
	kindBlock = Control + 2 // answers when the test lets it
	kindNote  = Control + 3 // sent without wanting an answer
	kindGroup = Raft + 1    // queued by group
	kindChunk = Snapshot + 1
)

var testCluster = base.UUID{1}

// node is one broker of a test cluster.
type node struct {
	*Host
	t       testing.TB
	network *Network
	demux   *Demux
	blocked chan *Request
	notes   chan string

	mu    sync.Mutex
	twins []Twin
}

// world is the cluster a test runs.
type world struct {
	t       testing.TB
	network *Network
	boots   map[base.NodeID]uint64
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &world{t: t, network: NewNetwork(), boots: make(map[base.NodeID]uint64)})
	})
}

func address(n base.NodeID) string { return string(n) + ":2922" }

// start starts a node; with change its options can be other than usual.
func (w *world) start(name base.NodeID, change ...func(*Options)) *node {
	w.boots[name]++
	l, err := w.network.Listen(address(name))
	require.NoError(w.t, err)
	n := launch(w.t, l, Options{
		Node: name, Boot: w.boots[name], Cluster: testCluster,
		Instance: base.UUID{byte(w.boots[name]), byte(len(name)), name[len(name)-1]},
		Dial:     w.network.Dialer(string(name)),
		Resolve:  func(n base.NodeID) (string, bool) { return address(n), n != "nowhere" },
	}, change...)
	n.network = w.network
	return n
}

func launch(t testing.TB, l net.Listener, o Options, change ...func(*Options)) *node {
	n := &node{t: t, demux: NewDemux(l, nil), blocked: make(chan *Request, 100), notes: make(chan string, 100)}
	o.Listen = n.demux.Listener
	o.OnTwin = func(tw Twin) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.twins = append(n.twins, tw)
	}
	for _, f := range change {
		f(&o)
	}
	n.Host = New(o)
	n.Register(kindEcho, func(_ context.Context, r *Request) { r.Reply(r.Body) })
	n.Register(kindChunk, func(_ context.Context, r *Request) { r.Reply(r.Body) })
	n.Register(kindBlock, func(_ context.Context, r *Request) { n.blocked <- r })
	n.Register(kindNote, func(_ context.Context, r *Request) {
		n.notes <- fmt.Sprintf("%s %d %s", r.From.Node, r.Group, r.Body)
		r.Reply(nil)
	})
	n.Start()
	n.demux.Start()
	t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	require.NoError(n.t, n.Close())
	_ = n.demux.Close() // again, at the end of the test
}

// kill ends the node as a kill -9 would, then cleans up.
func (n *node) kill() {
	n.network.Kill(string(n.o.Node))
	n.stop()
}

// mesh starts nodes n1 to nN that keep each other, and lets them connect.
func (w *world) mesh(size int, change ...func(*Options)) []*node {
	var names []base.NodeID
	for i := range size {
		names = append(names, base.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	nodes := make([]*node, size)
	for i, name := range names {
		nodes[i] = w.start(name, change...)
	}
	for _, n := range nodes {
		require.NoError(w.t, n.Keep(names))
	}
	w.settle(nodes...)
	return nodes
}

// settle waits until the nodes reach each other, a minute at most.
func (w *world) settle(nodes ...*node) {
	w.t.Helper()
	for range 6000 {
		if connected(nodes) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("the nodes did not connect")
}

func connected(nodes []*node) bool {
	for _, a := range nodes {
		live := a.Liveness()
		for _, b := range nodes {
			if a != b && (live[b.o.Node].Status != Reachable || live[b.o.Node].Instance != b.o.Instance) {
				return false
			}
		}
	}
	return true
}

func (n *node) status(of base.NodeID) Status { return n.Liveness()[of].Status }

// waitStatus waits until a node has a status, and returns how long it took.
func (n *node) waitStatus(of base.NodeID, want Status) time.Duration {
	n.t.Helper()
	began := time.Now()
	for n.status(of) != want {
		if time.Since(began) > time.Minute {
			n.t.Fatalf("%s is not %s in the eyes of %s", of, want, n.o.Node)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

func within1s(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (n *node) seenTwins() []Twin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.twins
}

// seeds is how many runs a random test makes: more when there is time.
func seeds(usual int) int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return 10 * usual
	}
	return usual
}
