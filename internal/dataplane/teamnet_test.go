package dataplane

import (
	"bytes"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
)

// teamNet are the data lanes between the members of a team, in memory: a message that was queued arrives after the
// latency, in order, unless the connection ends before.
type teamNet struct {
	latency time.Duration
	queue   int // bytes on their way by one connection in one direction, at most

	mu       sync.Mutex
	members  map[base.NodeID]*teamEnd
	lines    map[[2]base.NodeID]*line // by direction
	sessions uint64
	tasks    sync.WaitGroup
}

// teamEnd is a process on the net.
type teamEnd struct {
	boot  uint64
	plane *Plane
}

// line is one direction of a connection.
type line struct {
	session uint64
	silent  bool // what is sent vanishes, and nobody is told
	queue   []letter
	bytes   int
	wake    chan struct{}
	gone    chan struct{}
}

type letter struct {
	kind peer.Kind
	body []byte
	due  time.Time
}

func newTeamNet() *teamNet {
	return &teamNet{queue: 64 << 20, members: make(map[base.NodeID]*teamEnd), lines: make(map[[2]base.NodeID]*line)}
}

// links are the net as one process has it.
type teamLinks struct {
	net  *teamNet
	node base.NodeID
}

func (n *teamNet) links(m *member, _ uint64) Links { return teamLinks{n, m.node} }

func (l teamLinks) DataLink(node base.NodeID) peer.Link {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	return l.net.linkLocked(l.node, node)
}

func (n *teamNet) linkLocked(from, to base.NodeID) peer.Link {
	link := peer.Link{Node: to}
	end := n.members[to]
	if end != nil {
		link.Boot = end.boot
	}
	if c := n.lines[[2]base.NodeID{from, to}]; c != nil {
		link.Up, link.Session, link.Heard = true, c.session, time.Now()
		return link
	}
	link.Refused = end == nil || end.plane == nil
	return link
}

func (l teamLinks) SendParts(node base.NodeID, kind peer.Kind, _ bool, parts ...[]byte) error {
	n := l.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.lines[[2]base.NodeID{l.node, node}]
	if c == nil {
		return base.Errorf(base.CodeUnreachable, "send", "no connection")
	}
	body := bytes.Join(parts, nil)
	if c.bytes > 0 && c.bytes+len(body) > n.queue {
		return base.Errorf(base.CodeBusy, "send", "full")
	}
	if c.silent {
		return nil
	}
	c.bytes += len(body)
	c.queue = append(c.queue, letter{kind, body, time.Now().Add(n.latency)})
	mark(c.wake)
	return nil
}

// pause waits as long as the connection is there, and reports whether it still is. It makes no timer that is due already:
// with Go 1.26 the race detector may crash over one of those in virtual time.
func (c *line) pause(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-c.gone:
			return false
		default:
			return true
		}
	}
	select {
	case <-c.gone:
		return false
	case <-time.After(d):
		return true
	}
}

// deliver is the goroutine of one direction of a connection.
func (n *teamNet) deliver(from, to base.NodeID, c *line) {
	for {
		n.mu.Lock()
		letters := c.queue
		c.queue = nil
		n.mu.Unlock()
		for _, m := range letters {
			if !c.pause(time.Until(m.due)) {
				return
			}
			n.mu.Lock()
			c.bytes -= len(m.body)
			sender, plane := n.members[from].boot, n.members[to].plane
			n.mu.Unlock()
			if plane == nil {
				return
			}
			plane.receive(m.kind, m.body, arrival{from: replica.Source{Node: from, Boot: sender}, session: c.session})
		}
		select {
		case <-c.wake:
		case <-c.gone:
			return
		}
	}
}

// join brings a process to the net and connects it with all others.
func (n *teamNet) join(node base.NodeID, boot uint64, p *Plane) {
	n.mu.Lock()
	n.members[node] = &teamEnd{boot, p}
	var others []base.NodeID
	for other, end := range n.members {
		if other != node && end.plane != nil {
			others = append(others, other)
		}
	}
	n.mu.Unlock()
	for _, other := range others {
		n.heal(node, other)
	}
}

// leave ends a process: its connections end, and its port refuses.
func (n *teamNet) leave(node base.NodeID) {
	n.mu.Lock()
	n.members[node].plane = nil
	var others []base.NodeID
	for other := range n.members {
		others = append(others, other)
	}
	n.mu.Unlock()
	for _, other := range others {
		n.cut(node, other)
	}
}

// cut ends the connection between two nodes; both are told.
func (n *teamNet) cut(a, b base.NodeID) {
	n.mu.Lock()
	for _, way := range [][2]base.NodeID{{a, b}, {b, a}} {
		if c := n.lines[way]; c != nil {
			close(c.gone)
			delete(n.lines, way)
		}
	}
	n.mu.Unlock()
	n.tell(a, b)
}

// heal connects two nodes by a new session.
func (n *teamNet) heal(a, b base.NodeID) {
	n.mu.Lock()
	n.sessions++
	for _, way := range [][2]base.NodeID{{a, b}, {b, a}} {
		if n.lines[way] != nil {
			continue
		}
		c := &line{session: n.sessions, wake: make(chan struct{}, 1), gone: make(chan struct{})}
		n.lines[way] = c
		n.tasks.Go(func() { n.deliver(way[0], way[1], c) })
	}
	n.mu.Unlock()
	n.tell(a, b)
}

// silence loses what goes from one node to another, without telling anybody.
func (n *teamNet) silence(from, to base.NodeID, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.lines[[2]base.NodeID{from, to}]; c != nil {
		c.silent = silent
	}
}

// tell says to both how their connection is.
func (n *teamNet) tell(a, b base.NodeID) {
	for _, way := range [][2]base.NodeID{{a, b}, {b, a}} {
		n.mu.Lock()
		plane, link := n.members[way[0]].plane, n.linkLocked(way[0], way[1])
		n.mu.Unlock()
		if plane != nil {
			plane.OnLink(link)
		}
	}
}

// close ends all connections.
func (n *teamNet) close() {
	n.mu.Lock()
	for way, c := range n.lines {
		close(c.gone)
		delete(n.lines, way)
	}
	n.mu.Unlock()
	n.tasks.Wait()
}
