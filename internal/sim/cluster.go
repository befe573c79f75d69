package sim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/sdk"
)

// Options say what a run is like.
type Options struct {
	Seed   uint64
	Shards int // 4
	Expect int // bootstrap_expect of the first so many nodes; 0: the first node founds the cluster alone
	Config func(node int, cfg *config.Config)
	Disk   func(node int, disk vfs.FS) vfs.FS // what a node's process has of its disk; nil: the disk
}

// Cluster is everything of one run. Its methods are for the goroutine of the test.
type Cluster struct {
	T     *testing.T
	Net   *Network
	Trace *Trace
	Rand  *rand.Rand
	Asked *history.Recorder
	Book  *ledger.Book // what became of records

	options Options
	began   time.Time
	nodes   []*Node
	clients []*sdk.Client
	loads   []*Load
	ended   sync.WaitGroup // processes that are being closed, loads that come to their end
	facts   facts
}

// How long a message and a sync take on average: long enough that a fault at a random moment finds some under way.
const (
	latency = 300 * time.Microsecond
	syncing = 500 * time.Microsecond
)

// usualDisk is how every disk is while nothing is wrong with it.
var usualDisk = vfs.Rule{Ops: vfs.OpSyncs, Delay: syncing}

// judgeWithin bounds the judgement of one topic's history, in real time. It is met when a history has too many
// operations at once to be judged at all.
const judgeWithin = 20 * time.Second

// Run runs a test in virtual time, with a cluster that has no nodes yet, and judges what clients were told. The t that
// the test gets is that of the bubble.
func Run(t *testing.T, o Options, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	if o.Shards == 0 {
		o.Shards = 4
	}
	if text := os.Getenv("EASTGUARD_SIM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("EASTGUARD_SIM_SEED: %v", err)
		}
		o.Seed = seed
	}
	var c *Cluster
	over := false // it did not panic: a goroutine that stays behind in the bubble is a panic
	defer func() {
		if c != nil && (!over || t.Failed() || os.Getenv("EASTGUARD_SIM_TRACES") != "") {
			c.Trace.keep(t, o.Seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		c = newCluster(t, o)
		defer c.end()
		test(t, c)
	})
	over = true
	if err := history.Check(c.Asked.Ops(), judgeWithin); err != nil {
		t.Error(err)
	}
}

func newCluster(t *testing.T, o Options) *Cluster {
	c := &Cluster{T: t, Net: NewNetwork(latency), Trace: newTrace(), Rand: rand.New(rand.NewPCG(o.Seed, 1)), options: o}
	c.Asked = history.NewRecorder(func(op history.Op) { c.Trace.Logf("client", "%s", op) })
	c.facts, c.Book, c.began = newFacts(), new(ledger.Book), time.Now()
	return c
}

// now is the time of what is written down in the book.
func (c *Cluster) now() int64 { return int64(time.Since(c.began)) }

// end stops whatever still runs, and gives libraries time to end what they do not let anybody wait for.
func (c *Cluster) end() {
	for _, l := range c.loads {
		l.Stop()
	}
	for _, cl := range c.clients {
		_ = cl.Close()
	}
	c.Net.Heal()
	for _, n := range c.nodes {
		if n.proc != nil {
			n.end(n.detach())
		}
	}
	c.ended.Wait()
	time.Sleep(time.Minute)
}

// Add makes the next node, with an empty disk; it does not start it.
func (c *Cluster) Add() *Node {
	i := len(c.nodes) + 1
	n := &Node{c: c, index: i, Name: fmt.Sprintf("n%d", i), IP: fmt.Sprintf("10.0.0.%d", i), disk: vfs.NewMem()}
	n.Config = config.Default()
	n.Config.Host, n.Config.AdvertiseHost, n.Config.AdminPort = n.IP, n.IP, 0
	n.Config.NodeID, n.Config.Shards, n.Config.ReserveBytes, n.Config.CacheBudgetBytes = n.Name, c.options.Shards, 0, 8<<20
	n.Config.DataDir, n.Config.MetaDir = "/data", "/meta"
	for seed := 1; seed <= max(3, c.options.Expect); seed++ {
		n.Config.JoinSeedNodes = append(n.Config.JoinSeedNodes, fmt.Sprintf("10.0.0.%d:%d", seed, n.Config.ClusterPort))
	}
	if i <= c.options.Expect {
		n.Config.BootstrapExpect = c.options.Expect
	}
	n.founder = c.options.Expect == 0 && i == 1
	if c.options.Config != nil {
		c.options.Config(i, &n.Config)
	}
	c.nodes = append(c.nodes, n)
	return n
}

// Start adds n nodes, starts them and waits until they serve.
func (c *Cluster) Start(n int) {
	c.T.Helper()
	for range n {
		c.Add().Start()
	}
	c.Await(time.Minute, "all nodes serve", c.allServe)
}

func (c *Cluster) allServe() bool {
	for _, n := range c.nodes {
		if n.proc != nil && !n.Serving() {
			return false
		}
	}
	return true
}

// Node is the node of a number, counted from 1.
func (c *Cluster) Node(i int) *Node { return c.nodes[i-1] }

// Nodes are all nodes, whether they run or not.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Running are the nodes that have a process.
func (c *Cluster) Running() []*Node {
	var list []*Node
	for _, n := range c.nodes {
		if n.proc != nil {
			list = append(list, n)
		}
	}
	return list
}

// Partition cuts groups of nodes off from each other; nodes of no group, like clients, reach all.
func (c *Cluster) Partition(groups ...[]*Node) {
	var ips [][]string
	for _, g := range groups {
		var side []string
		for _, n := range g {
			side = append(side, n.IP)
		}
		ips = append(ips, side)
	}
	c.Trace.Logf("script", "partition %v", ips)
	c.Net.Split(ips...)
}

// Heal ends every partition.
func (c *Cluster) Heal() {
	c.Trace.Logf("script", "heal")
	c.Net.Heal()
}

// Client makes a client on a machine of its own, which knows all nodes that there are. It is closed at the end.
func (c *Cluster) Client(opts ...sdk.ClientOption) *sdk.Client {
	c.T.Helper()
	var seeds []string
	for _, n := range c.nodes {
		seeds = append(seeds, n.clientAddress())
	}
	m := c.Net.Machine(fmt.Sprintf("10.1.0.%d", len(c.clients)+1))
	cl, err := sdk.NewClient(append([]sdk.ClientOption{sdk.WithSeeds(seeds...), sdk.WithDialer(m.Dial)}, opts...)...)
	if err != nil {
		c.T.Fatal(err)
	}
	c.clients = append(c.clients, cl)
	return cl
}

// ClientOf makes a client that knows one node alone.
func (c *Cluster) ClientOf(n *Node) *sdk.Client {
	return c.Client(sdk.WithSeeds(n.clientAddress()))
}

func (n *Node) clientAddress() string {
	return net.JoinHostPort(n.IP, strconv.Itoa(n.Config.ClientPort))
}

// pollEvery is how often Await looks.
const pollEvery = 10 * time.Millisecond

// Await waits until a condition holds, and returns how long that took. The test fails when it takes longer than d.
func (c *Cluster) Await(d time.Duration, what string, cond func() bool) time.Duration {
	c.T.Helper()
	began := time.Now()
	for !cond() {
		if time.Since(began) > d {
			c.Fatalf("after %v it is still not so that %s", d, what)
		}
		time.Sleep(pollEvery)
	}
	took := time.Since(began)
	c.Trace.Logf("script", "after %v %s", took, what)
	return took
}

// Fatalf ends the test with what was seen last.
func (c *Cluster) Fatalf(format string, args ...any) {
	c.T.Helper()
	c.Trace.Logf("script", "FAILED: "+format, args...)
	synctest.Wait()
	for _, n := range c.nodes {
		c.Trace.Logf("script", "%s", n.describe())
	}
	c.T.Fatalf(format+"\nthe end of the trace:\n%s", append(args, c.Trace.tail(40))...)
}
