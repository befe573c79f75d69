package mux

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	lingerTime  = time.Second // for a peer to read why it is being closed
	lingerBytes = 256 << 10
	helloLimit  = 64 << 10 // what is read from a peer that has not introduced itself
)

// errShownOut ends a connection that was closed before its hello was read, because others waited.
var errShownOut = errors.New("closed for another one, for it said nothing")

// serverConn is one connection, seen from its server.
type serverConn struct {
	srv    *Server
	nc     net.Conn
	guest  *lobby.Guest // until the handshake
	in     frameReader
	reads  *deadlineReader
	out    *outbox
	window *window
	gone   chan struct{}   // closed when the connection is: nothing can be answered any more
	ctx    context.Context // ends with gone, or when the peer has closed its sending half
	cancel context.CancelFunc

	// Set by the handshake, before the first request.
	peer    Peer
	version uint8
	node    base.NodeID
}

func newServerConn(s *Server, nc net.Conn, guest *lobby.Guest, id uint64) *serverConn {
	c := &serverConn{srv: s, nc: nc, guest: guest, version: wire.Version, gone: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.reads = &deadlineReader{conn: nc}
	c.in = newFrameReader(c.reads)
	c.out = newOutbox(nc, s.opts.WriteTimeout, 0, func(error) {
		close(c.gone)
		c.cancel()
	})
	c.window = newWindow(s.opts.MaxInFlightRequests, s.opts.MaxInFlightBytes, c.gone)
	c.peer = Peer{ID: id, Remote: remoteAddr(nc)}
	return c
}

func remoteAddr(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "unknown"
}

// abort ends the connection at once.
func (c *serverConn) abort() { c.out.shut(errOutboxClosed) }

// serve is the reader goroutine; it starts the writer and waits for it.
func (c *serverConn) serve() {
	var writer sync.WaitGroup
	writer.Go(c.out.run)
	err := c.handshake()
	c.guest.Leave() // when it has come to nothing
	for err == nil {
		err = c.serveOne()
	}
	c.finish(err)
	c.abort()
	writer.Wait()
}

// finish says good-bye in the way that the end of the reading asks for.
func (c *serverConn) finish(err error) {
	c.out.flush()
	var e *base.Error
	switch {
	case errors.Is(err, io.EOF):
		// The peer has nothing more to ask, but may still listen: acks under way still reach it. What only waits for
		// something to happen, such as a fetch, is told to hurry by its context; mostly the peer is gone.
		c.cancel()
		c.window.empty(c.srv.opts.WriteTimeout)
	case errors.Is(err, errCut):
		c.srv.log.Debug("connection cut", "remote", c.peer.Remote, "error", err)
		c.tell(base.Wrap(base.CodeCorruptFrame, "read request", err))
	case errors.As(err, &e):
		c.srv.log.Warn("connection refused", "remote", c.peer.Remote, "client", c.peer.Hello.ClientName, "code", e.Code.String(), "error", err)
		c.tell(e)
	default:
		c.srv.log.Debug("connection failed", "remote", c.peer.Remote, "error", err)
	}
}

// tell sends an error that is about the connection, and waits until the peer has had a chance to read it: to close
// with unread bytes would reset the connection and destroy the message on its way.
func (c *serverConn) tell(e *base.Error) {
	m := wire.ErrorFrom(e)
	m.Node = c.node
	msg := wire.Encode(m)
	head := wire.FrameHeader{Version: c.version, Flags: wire.FlagResponse | wire.FlagError, MessageLen: uint32(len(msg))}
	written := make(written)
	if c.out.push(item{head: head, msg: msg, ticket: written}, false) != nil {
		return
	}
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-written:
		linger(c.nc)
	case <-timer.C:
	}
}

// written is a ticket that closes when its item is settled.
type written chan struct{}

func (w written) take() bool  { return true }
func (w written) settle(bool) { close(w) }

// linger tells the peer that no more comes, and reads what it still sends, within limits.
func linger(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, nc, lingerBytes) // how it ends does not matter
}

// handshake reads the first frame, which must be a hello, and answers it.
func (c *serverConn) handshake() error {
	c.reads.total(c.srv.opts.HandshakeTimeout)
	h, err := c.in.header()
	if err != nil {
		return err
	}
	if h.Kind != wire.KindHello || h.Flags&wire.FlagResponse != 0 || h.PayloadLen != 0 || h.MessageLen > helloLimit {
		return base.Errorf(base.CodeCorruptFrame, "shake hands", "the first frame must be a hello, this is %s with %d bytes", h.Kind, h.BodyLen())
	}
	msg, _, err := c.in.body(h, nil)
	if err != nil {
		return err
	}
	answer, err := c.welcome(msg)
	if err != nil {
		return base.Wrap(base.CodeInternal, "shake hands", err)
	}
	if here := c.guest.Leave(); !here {
		return errShownOut
	}
	r := c.newRequest(h, 0)
	r.Reply(wire.Encode(answer))
	return nil
}

// welcome decides on a hello.
func (c *serverConn) welcome(msg []byte) (wire.HelloResponse, error) {
	var answer wire.HelloResponse
	if err := wire.Decode(msg, &c.peer.Hello); err != nil {
		return answer, err
	}
	hello := c.peer.Hello
	if hello.MinVersion > wire.Version || hello.MaxVersion < wire.MinVersion {
		return answer, base.Errorf(base.CodeUnsupportedVersion, "", "the client speaks protocol versions %d to %d, this broker %d to %d",
			hello.MinVersion, hello.MaxVersion, wire.MinVersion, wire.Version)
	}
	answer, err := c.srv.opts.Hello(hello)
	if err != nil {
		return answer, err
	}
	c.version = min(wire.Version, hello.MaxVersion)
	c.node = answer.Node
	answer.ProtocolVersion = c.version
	answer.MaxInFlight = c.srv.opts.MaxInFlightRequests
	answer.MaxInFlightBytes = c.srv.opts.MaxInFlightBytes
	return answer, nil
}

// serveOne reads one request and hands it over.
func (c *serverConn) serveOne() error {
	h, err := c.nextHeader()
	if err != nil {
		return err
	}
	if h.Flags&wire.FlagResponse != 0 {
		return base.Errorf(base.CodeCorruptFrame, "read request", "an answer came, where requests are expected")
	}
	if refusal := c.srv.refusal(h); refusal != nil {
		return c.refuse(h, refusal)
	}
	size := int64(h.BodyLen())
	r := c.newRequest(h, size)
	if r == nil {
		return errOutboxClosed
	}
	c.reads.each(c.srv.opts.StallTimeout)
	r.Message, r.Payload, err = c.in.body(h, r.hold)
	if err != nil && !errors.Is(err, errNoRoom) {
		r.drop()
		return err
	}
	c.srv.bytesIn.Add(wire.FrameSize + size)
	c.out.hold()
	if err != nil {
		r.Fail(base.Errorf(base.CodeBusy, h.Kind.String(), "the broker's requests hold %d bytes of memory, at most %d may", c.srv.held.Load(), c.srv.opts.MaxBytes))
		return nil
	}
	c.handle(r)
	return nil
}

// nextHeader waits for a request. Before it does, what was answered so far is sent.
func (c *serverConn) nextHeader() (wire.FrameHeader, error) {
	if !c.in.ready() {
		c.out.flush()
	}
	c.reads.each(c.srv.opts.IdleTimeout)
	for {
		h, err := c.in.header()
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.in.partial() && c.window.busy() {
			continue // not idle: it waits for answers
		}
		return h, err
	}
}

// newRequest takes a request of size bytes into the window, waiting for room; nil means the connection is closed.
func (c *serverConn) newRequest(h wire.FrameHeader, size int64) *Request {
	if !c.window.tryAdmit(size) {
		c.out.flush() // what is held back may be what makes room
		if !c.window.admit(size) {
			return nil
		}
	}
	c.srv.enter()
	return &Request{Kind: h.Kind, Flags: h.Flags, Peer: &c.peer, Arrived: time.Now(), conn: c, id: h.RequestID, size: size}
}

// refusal is why a request is refused on the strength of its header; nil if it is not.
func (s *Server) refusal(h wire.FrameHeader) *base.Error {
	switch op := h.Kind.String(); {
	case !h.Kind.Known():
		return base.Errorf(base.CodeUnknownKind, op, "requests of kind %d are not known to this broker", uint16(h.Kind))
	case int64(h.PayloadLen) > int64(s.opts.PayloadLimit):
		return base.Errorf(base.CodeBatchTooLarge, op, "the payload has %d bytes, at most %d are accepted", h.PayloadLen, s.opts.PayloadLimit)
	case s.draining.Load():
		return base.Errorf(base.CodeShuttingDown, op, "the broker is stopping")
	case int64(h.MessageLen) > int64(s.opts.MessageLimit):
		return base.Errorf(base.CodeInvalidArgument, op, "the message has %d bytes, at most %d are accepted", h.MessageLen, s.opts.MessageLimit)
	case h.Kind == wire.KindHello:
		return base.Errorf(base.CodeInvalidArgument, op, "hands were shaken already")
	}
	return nil
}

// refuse reads a request's body without keeping it, and answers with the reason.
func (c *serverConn) refuse(h wire.FrameHeader, reason *base.Error) error {
	r := c.newRequest(h, 0)
	if r == nil {
		return errOutboxClosed
	}
	c.reads.each(c.srv.opts.StallTimeout)
	if err := c.in.skip(h); err != nil {
		r.drop()
		return err
	}
	c.srv.bytesIn.Add(wire.FrameSize + int64(h.BodyLen()))
	c.out.hold()
	r.Fail(reason)
	return nil
}

// handle calls the handler. A panic fails its request and nothing else.
func (c *serverConn) handle(r *Request) {
	defer func() {
		if p := recover(); p != nil {
			r.recovered(p, debug.Stack())
		}
	}()
	c.srv.opts.Handler.Handle(c.ctx, r)
}
