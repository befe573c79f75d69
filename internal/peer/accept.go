package peer

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxGreeting is how many connections of one lane may be within their handshake; of more, those that are silent are
// closed.
const maxGreeting = 64

// accept is the goroutine of one lane's listener.
func (h *Host) accept(ctx context.Context, l net.Listener, tag Tag) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	room := h.rooms[tag]
	for {
		nc, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			h.o.Logger.Warn("accept failed", "tag", tag.String(), "error", err)
			rest(ctx)
			continue
		}
		guest := room.Enter(nc)
		started := h.tasks.Go("greet", func(ctx context.Context) error {
			h.receive(ctx, nc, tag, guest)
			return nil
		})
		if !started {
			_ = nc.Close()
			return nil
		}
	}
}

// restFor is the moment that passes after a listener's error: it may be out of file descriptors.
const restFor = 50 * time.Millisecond

func rest(ctx context.Context) {
	select {
	case <-time.After(restFor):
	case <-ctx.Done():
	}
}

// receive is the acceptor's side of the handshake.
func (h *Host) receive(ctx context.Context, nc net.Conn, tag Tag, guest *lobby.Guest) {
	ctx, cancel := context.WithTimeout(ctx, h.o.DialTimeout)
	defer cancel()
	life := &lifeReader{nc: nc, host: h}
	in := newFrameReader(life)
	var theirs Hello
	err := within(ctx, nc, func() error {
		f, err := in.next(maxHello)
		if err == nil {
			theirs, err = decodeHello(f)
		}
		return err
	})
	if here := guest.Leave(); !here { // its connection has been closed
		return
	}
	if err == nil {
		if tag != TagAsk { // who only asks has just started, and is the one to end; it is told
			h.met(theirs)
		}
		err = h.welcome(theirs, tag, nc, life, in)
	}
	if err != nil {
		h.turnAway(nc, err)
		h.o.Logger.Debug("peer turned away", "node", theirs.Node, "tag", tag.String(), "remote", nc.RemoteAddr().String(), "error", err)
	}
}

// turnAway answers a hello with the reason for refusing it.
func (h *Host) turnAway(nc net.Conn, reason error) {
	m := wire.ErrorFrom(reason)
	m.Node = h.o.Node
	f := frame{kind: kindHello, flags: flagResponse | flagError, id: 1, body: wire.Encode(m)}
	_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = nc.Write(append(f.appendHeader(nil), f.body...)) // it is closed in any case
	_ = nc.Close()
}

// welcome takes a connection that a peer has dialled, or says why not.
func (h *Host) welcome(theirs Hello, tag Tag, nc net.Conn, life *lifeReader, in *frameReader) error {
	e := h.suits(theirs)
	switch {
	case tag == TagAsk && theirs.Instance == h.o.Instance:
		return h.answerLoose(theirs, nc, life, in) // who asks itself finds out by the answer
	case e != nil:
		return e
	case tag == TagAsk:
		return h.answerLoose(theirs, nc, life, in)
	}
	return h.admit(theirs, tag, nc, life, in)
}

// admit installs a connection in its lane. The answer to the hello is the first frame in its outbox.
func (h *Host) admit(theirs Hello, tag Tag, nc net.Conn, life *lifeReader, in *frameReader) error {
	if theirs.To != "" && theirs.To != h.o.Node {
		return base.Errorf(base.CodeNodeNotFound, "meet peer", "node %s answers where %s was expected", h.o.Node, theirs.To)
	}
	mine := h.hello(theirs.Node)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return shuttingDown("meet peer")
	}
	p, err := h.peerLocked(theirs.Node)
	if err != nil {
		return err
	}
	l := p.lanes[laneOf(tag)]
	if err := h.judgeLocked(l, theirs); err != nil {
		h.dropIfIdleLocked(p)
		return err
	}
	c := newConn(h, l, theirs, mine.Cluster, nc, life, in)
	_ = c.out.push(frame{kind: kindHello, flags: flagResponse, id: 1, body: wire.Encode(mine)}, true) // it is new and open
	h.installLocked(l, c)
	return nil
}

// judgeLocked decides whether a peer's connection may take its lane.
func (h *Host) judgeLocked(l *lane, theirs Hello) error {
	const op = "meet peer"
	if known := l.peer.processLocked(h.o.LostAfter); known != nil && known.Instance != theirs.Instance {
		if !theirs.Outranks(*known) {
			return base.Errorf(base.CodeFenced, op, "another process of node %s, start %d, is connected", theirs.Node, known.Boot).
				WithHint("each node needs a data directory, or at least a node_id, of its own")
		}
		// A later start of the same node: what is there belongs to a process that is gone without a farewell, or is the
		// one of two doubles that has to end.
		for _, other := range l.peer.lanes {
			if other.conn != nil && other != l {
				other.conn.fail(base.Errorf(base.CodeUnreachable, "", "the node has started anew"))
			}
		}
		return nil
	}
	if theirs.Node < h.o.Node {
		return nil // the lower id decides, and does not dial while it has a connection
	}
	switch {
	case l.conn != nil && l.conn.silence() <= 2*h.o.PingAfter:
		l.conn.ping() // should it be dead after all, the next attempt will find it silent
		return base.Errorf(base.CodePreconditionFailed, op, "nodes %s and %s are connected already", theirs.Node, h.o.Node)
	case l.conn == nil && l.dialing:
		return base.Errorf(base.CodePreconditionFailed, op, "node %s is dialling %s at this moment", h.o.Node, theirs.Node)
	}
	return nil
}

// processLocked is the process of the peer that a live connection leads to, nil without one.
func (p *peer) processLocked(lost time.Duration) *Hello {
	for _, l := range p.lanes {
		if l.conn != nil && l.conn.silence() < lost {
			return &l.conn.theirs
		}
	}
	return nil
}
