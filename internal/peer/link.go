package peer

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// The data lane carries replication: one connection a pair of nodes, on the data port, both ways, pipelined, without
// answers to single messages. What a connection's end has lost is for the two sides to find out, from offsets; so they
// are told of each connection.

// Link is the state of the data lane to one node.
type Link struct {
	Node    base.NodeID
	Boot    uint64    // of the process that is, or was last, connected
	Session uint64    // numbers the connections of this process, rising; messages say by which they came
	Up      bool      // there is a connection
	Refused bool      // there is none, and its port is closed: the process is gone
	Heard   time.Time // when a byte arrived last; zero: never
}

// links queues what OnLink is to be told.
type links struct {
	wake chan struct{} // capacity one

	mu    sync.Mutex
	queue []Link
}

// linkLocked files a change, to be told in order. What is told is bounded by the pace of redials.
func (h *Host) linkLocked(l Link) {
	if p := h.peers[l.Node]; p != nil {
		p.data = l
	}
	h.links.mu.Lock()
	h.links.queue = append(h.links.queue, l)
	h.links.mu.Unlock()
	mark(h.links.wake)
}

// refusedLocked notes that a node's port is closed. It is said once, until there is a connection again.
func (h *Host) refusedLocked(l *lane) {
	switch l.id {
	case mainLane:
		h.setStatusLocked(l.peer, Refused)
	case dataLane:
		if last := l.peer.data; !last.Refused {
			last.Node, last.Up, last.Refused = l.peer.node, false, true
			h.linkLocked(last)
		}
	case bulkLane:
	}
}

// tellLinks is the goroutine that calls OnLink, which may call the host.
func (h *Host) tellLinks(ctx context.Context) error {
	for {
		select {
		case <-h.links.wake:
		case <-ctx.Done():
			return nil
		}
		h.links.mu.Lock()
		news := h.links.queue
		h.links.queue = nil
		h.links.mu.Unlock()
		for _, l := range news {
			h.o.OnLink(l)
		}
	}
}

// DataLink is the state of the data lane to a node; the zero Link, but for Node, of one that was never connected.
func (h *Host) DataLink(node base.NodeID) Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.peers[node]
	if p == nil {
		return Link{Node: node}
	}
	l := p.data
	l.Node = node
	if c := p.lanes[dataLane].conn; c != nil {
		l.Heard = h.at(c.heard.Load())
	}
	return l
}

// SendParts sends a message of class Replica, whose body is the parts back to back, by the data lane. It does not wait
// and does not copy: the parts must not change any more. What is urgent, as a small answer is, overtakes what waits to
// be written. The frame's sum covers the first part only; the others must have sums of their own.
//
// CodeUnreachable means that there is no connection, CodeBusy that its queue is full; then nothing was queued. Without
// an error the message may still be lost with the connection.
func (h *Host) SendParts(node base.NodeID, kind Kind, urgent bool, parts ...[]byte) error {
	ca := &call{kind: kind, node: node}
	f := frame{kind: kind, urgent: urgent}
	if len(parts) > 0 {
		f.body, f.tail, f.group = parts[0], parts[1:], uint32(len(parts[0]))
	}
	switch {
	case kind.class() != Replica:
		return base.Errorf(base.CodeInvalidArgument, ca.op(), "the class does not go by the data lane")
	case f.size() > headerSize+MaxDataBody:
		return base.Errorf(base.CodeInvalidArgument, ca.op(), "a message of %d bytes does not fit into a frame", f.size())
	}
	h.mu.Lock()
	var c *conn
	if p := h.peers[node]; p != nil {
		c = p.lanes[dataLane].conn
	}
	h.mu.Unlock()
	if c == nil {
		return base.Errorf(base.CodeUnreachable, ca.op(), "there is no connection").WithOutcome(base.NotApplied)
	}
	return c.post(ca, f)
}
