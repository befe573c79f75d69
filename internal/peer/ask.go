package peer

import (
	"context"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// A connection with TagAsk is for one question to whoever listens at an address, before it is known who that is. It
// belongs to no lane: it is no sign of life, and it takes nobody's place.

const (
	maxAsked  = 128              // such connections that this node answers at once; more are turned away
	askedLife = 10 * time.Second // of one of them on the answering side
)

// CallAddr sends a message to whoever listens at an address, host:port, and returns who it is beside the answer. It is
// for seeds, whose node ids nobody has told yet; Call is for nodes. When the address is this node's own there is an
// error and the Hello is this process's.
func (h *Host) CallAddr(ctx context.Context, addr string, kind Kind, msg []byte) (Hello, []byte, error) {
	op := kind.String() + " to " + addr
	nc, err := DialTag(ctx, h.o.Dial, addr, TagAsk)
	if err != nil {
		return Hello{}, nil, base.Wrap(base.CodeUnreachable, op, err).WithOutcome(base.NotApplied)
	}
	life := &lifeReader{nc: nc, host: h}
	in := newFrameReader(life)
	mine := h.hello("")
	var theirs Hello
	err = within(ctx, nc, func() (err error) {
		theirs, err = h.greet(nc, in, mine)
		return err
	})
	if err != nil {
		_ = nc.Close()
		return theirs, nil, base.Wrap(base.CodeUnreachable, op, err).WithOutcome(base.NotApplied)
	}
	c := h.looseConn(theirs, mine.Cluster, nc, life, in)
	if c == nil {
		_ = nc.Close()
		return theirs, nil, shuttingDown(op)
	}
	defer c.fail(base.Errorf(base.CodeUnreachable, "", "the question has been answered"))
	ca := &call{kind: kind, node: theirs.Node}
	body, err := c.ask(ctx, ca, 0, msg)
	return theirs, body, err
}

// answerLoose takes a connection with TagAsk: the hello has been read.
func (h *Host) answerLoose(theirs Hello, nc net.Conn, life *lifeReader, in *frameReader) error {
	mine := h.hello(theirs.Node)
	h.mu.Lock()
	full := len(h.loose) >= maxAsked
	h.mu.Unlock()
	if full {
		return base.Errorf(base.CodeBusy, "meet peer", "%d questions are being answered", maxAsked)
	}
	c := h.looseConn(theirs, mine.Cluster, nc, life, in)
	if c == nil {
		return shuttingDown("meet peer")
	}
	_ = c.out.push(frame{kind: kindHello, flags: flagResponse, id: 1, body: wire.Encode(mine)}, true) // it is new and open
	time.AfterFunc(askedLife, func() { c.fail(base.Errorf(base.CodeTimeout, "", "a question takes too long")) })
	return nil
}

// looseConn runs a connection that is in no lane; nil when the host is closed.
func (h *Host) looseConn(theirs Hello, cluster base.ClusterID, nc net.Conn, life *lifeReader, in *frameReader) *conn {
	stray := &lane{peer: &peer{node: theirs.Node}} // of nobody: no table leads to it
	c := newConn(h, stray, theirs, cluster, nc, life, in)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	read := h.tasks.Go("read "+string(theirs.Node)+"/ask", func(context.Context) error { c.read(); return nil })
	write := h.tasks.Go("write "+string(theirs.Node)+"/ask", func(context.Context) error { c.write(); return nil })
	h.loose[c] = true
	if !read || !write {
		c.fail(shuttingDown("connect"))
	}
	return c
}
