package sdk

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// brokers knows the addresses of the cluster: the seeds to begin with, then what routes and handshakes state.
type brokers struct {
	c *Client

	mu struct {
		sync.Mutex
		byAddr  map[string]*broker
		nodes   map[base.NodeID]string // advertised addresses
		racks   map[base.NodeID]string
		cluster base.ClusterID // zero until the first handshake
		closed  bool
	}
}

// maxIdleBrokers bounds the addresses kept without a connection: nodes that moved or left.
const maxIdleBrokers = 256

// maxKnownNodes bounds the nodes whose addresses are kept, whatever a broker lists. Those that were told first are: a
// cluster has far fewer, and what comes after so many must not take their place.
const maxKnownNodes = 4096

func newBrokers(c *Client) *brokers {
	bs := &brokers{c: c}
	bs.mu.byAddr = make(map[string]*broker)
	bs.mu.nodes = make(map[base.NodeID]string)
	bs.mu.racks = make(map[base.NodeID]string)
	return bs
}

// at is the broker of an address.
func (bs *brokers) at(addr string) *broker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.atLocked(addr)
}

func (bs *brokers) atLocked(addr string) *broker {
	b := bs.mu.byAddr[addr]
	if b == nil {
		bs.pruneLocked()
		b = &broker{c: bs.c, addr: addr}
		b.mu.closed = bs.mu.closed
		bs.mu.byAddr[addr] = b
	}
	return b
}

// pruneLocked forgets brokers without a connection once there are many. Whoever holds one goes on using it.
func (bs *brokers) pruneLocked() {
	if len(bs.mu.byAddr) < maxIdleBrokers {
		return
	}
	for addr, b := range bs.mu.byAddr {
		if b.live() == nil {
			delete(bs.mu.byAddr, addr)
		}
	}
}

// learn remembers where nodes are reached.
func (bs *brokers) learn(nodes []wire.NodeAddress) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for _, n := range nodes {
		if max(len(bs.mu.nodes), len(bs.mu.racks)) >= maxKnownNodes && bs.mu.nodes[n.ID] == "" {
			continue
		}
		if n.Address != "" {
			bs.mu.nodes[n.ID] = n.Address
		}
		if n.Rack != "" {
			bs.mu.racks[n.ID] = n.Rack
		}
	}
}

// met takes over what a handshake says. The first one fixes the cluster: an address that is later given to a
// broker of another cluster is refused by that broker.
func (bs *brokers) met(hello wire.HelloResponse, dialled string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.mu.cluster.IsZero() {
		bs.mu.cluster = hello.Cluster
	}
	if _, known := bs.mu.nodes[hello.Node]; !known && hello.Node != "" {
		// The address that worked beats one that is only advertised, until a route says otherwise.
		bs.mu.nodes[hello.Node] = dialled
	}
}

func (bs *brokers) cluster() base.ClusterID {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.mu.cluster
}

// address is where a node is reached; empty when nobody said yet.
func (bs *brokers) address(n base.NodeID) string {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.mu.nodes[n]
}

// whereabouts is where a node is reached, and its rack; empty when nobody said yet.
func (bs *brokers) whereabouts(n base.NodeID) (addr, rack string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.mu.nodes[n], bs.mu.racks[n]
}

// named says in an error of a connection which node was not reached. Who has spoken with the cluster gave the right
// seeds, and has to look after that node.
func (bs *brokers) named(addr string, err error) error {
	var e *base.Error
	node := bs.nodeAt(addr)
	if node == "" || !errors.As(err, &e) || e.Code != base.CodeUnreachable {
		return err
	}
	inner := e
	for errors.As(inner.Err, &inner) { // whatever the steps on the way were called
	}
	w := *inner
	w.Op = e.Op
	w.Msg = "node " + string(node) + " does not answer: " + (&base.Error{Code: inner.Code, Msg: inner.Msg}).Error()
	return w.WithHint(hintNodeAway)
}

// hintNodeAway is for whom a node of the cluster does not answer.
const hintNodeAway = "see which nodes live: eg-cli node list; what only this one has waits until it is back"

// nodeAt is the node that is reached at an address; empty when nobody said whose it is.
func (bs *brokers) nodeAt(addr string) base.NodeID {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for node, at := range bs.mu.nodes {
		if at == addr {
			return node
		}
	}
	return ""
}

// follow is the broker that an error names as the one to ask; nil when it names none, or one whose address nobody said.
func (bs *brokers) follow(r base.Redirect) *broker {
	if r.Address == "" {
		r.Address = bs.address(r.Node)
	} else if r.Node != "" {
		bs.learn([]wire.NodeAddress{{ID: r.Node, Address: r.Address}})
	}
	if r.Address == "" {
		return nil
	}
	return bs.at(r.Address)
}

// candidates lists whom to ask when any broker will do: those connected, then the others known, then the seeds,
// each in random order so that clients spread, and at last those that could not be reached just now.
func (bs *brokers) candidates() []*broker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var connected, known, seeds, resting []*broker
	seen := make(map[string]bool)
	add := func(addr string, cold *[]*broker) {
		if seen[addr] {
			return
		}
		seen[addr] = true
		switch b := bs.atLocked(addr); {
		case b.doubted():
			resting = append(resting, b)
		case b.live() != nil:
			connected = append(connected, b)
		case b.resting():
			resting = append(resting, b)
		default:
			*cold = append(*cold, b)
		}
	}
	for _, addr := range bs.mu.nodes {
		add(addr, &known)
	}
	for _, addr := range bs.c.cfg.seeds {
		add(addr, &seeds)
	}
	lists := [][]*broker{connected, known, seeds, resting}
	for _, list := range lists {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return slices.Concat(lists...)
}

func (bs *brokers) close() {
	bs.mu.Lock()
	bs.mu.closed = true
	all := make([]*broker, 0, len(bs.mu.byAddr))
	for _, b := range bs.mu.byAddr {
		all = append(all, b)
	}
	bs.mu.Unlock()
	for _, b := range all {
		b.close()
	}
}
