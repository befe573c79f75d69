package mux

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// Conn is one client connection. All methods are safe for concurrent use.
type Conn struct {
	addr  string
	hello wire.HelloResponse
	log   *slog.Logger
	max   int
	nc    net.Conn
	in    frameReader // the reader goroutine's
	out   *outbox
	tasks sync.WaitGroup
	done  chan struct{}
	heard atomic.Int64 // when the last frame came, in Unix nanoseconds

	mu     sync.Mutex
	calls  map[uint64]*call
	lastID uint64
	err    error // why the connection failed; no call is taken after
}

func newConn(nc net.Conn, in frameReader, addr string, hello wire.HelloResponse, o ClientOptions) *Conn {
	c := &Conn{
		addr: addr, hello: hello, log: o.Logger, max: o.MaxInFlight, nc: nc, in: in,
		done: make(chan struct{}), calls: make(map[uint64]*call), lastID: helloID,
	}
	c.heard.Store(time.Now().UnixNano())
	c.out = newOutbox(nc, o.WriteTimeout, o.WriteQueueBytes, func(err error) { c.fail(err) })
	c.tasks.Go(o.Guard.Func(c.out.run))
	c.tasks.Go(o.Guard.Func(c.read))
	return c
}

// Hello is what the server said of itself.
func (c *Conn) Hello() wire.HelloResponse { return c.hello }

// Addr is the address that was dialled.
func (c *Conn) Addr() string { return c.addr }

// Heard is when the other end last said anything: an answer, or the handshake.
func (c *Conn) Heard() time.Time { return time.Unix(0, c.heard.Load()) }

// InFlight is the number of requests without an answer.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// Go sends a request and calls done exactly once, with the answer or with a *base.Error. done runs on the
// connection's reader goroutine, or in cancel; it must neither block nor call Close. msg and payload must not
// change before the broker has answered, and never after a cancel or a failure of the connection, for they may still
// be on their way out. An error from Go itself means that nothing was sent and done will not be called.
//
// cancel gives up waiting: unless done was called already it is called with CodeCanceled, and an answer that comes
// later is dropped. The outcome is NotApplied if the request had not left yet, else Unknown.
func (c *Conn) Go(kind wire.Kind, msg []byte, payload [][]byte, done func(Response, error)) (cancel func(), err error) {
	return c.GoFlags(kind, 0, msg, payload, done)
}

// GoFlags is Go with flags on the frame, FlagForward for one.
func (c *Conn) GoFlags(kind wire.Kind, flags wire.Flags, msg []byte, payload [][]byte, done func(Response, error)) (cancel func(), err error) {
	ca, err := c.start(kind, flags, msg, payload, done)
	if err != nil {
		return nil, err
	}
	return func() { c.cancel(ca, context.Canceled) }, nil
}

// Call is Go, waiting. When ctx ends first the error is CodeTimeout or CodeCanceled.
func (c *Conn) Call(ctx context.Context, kind wire.Kind, msg []byte, payload [][]byte) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, base.Wrap(contextCode(err), kind.String(), err)
	}
	type answer struct {
		r   Response
		err error
	}
	answers := make(chan answer, 1)
	ca, err := c.start(kind, 0, msg, payload, func(r Response, err error) { answers <- answer{r, err} })
	if err != nil {
		return Response{}, err
	}
	select {
	case a := <-answers:
		return a.r, a.err
	case <-ctx.Done():
		c.cancel(ca, ctx.Err())
		a := <-answers // of cancel, or one that was quicker
		return a.r, a.err
	}
}

func (c *Conn) start(kind wire.Kind, flags wire.Flags, msg []byte, payload [][]byte, done func(Response, error)) (*call, error) {
	size := 0
	for _, b := range payload {
		size += len(b)
	}
	if len(msg) > wire.MaxMessage || size > wire.MaxPayload {
		return nil, base.Errorf(base.CodeInvalidArgument, kind.String(), "a message of %d and a payload of %d bytes do not fit into a frame", len(msg), size)
	}
	ca := &call{kind: kind, done: done}
	quiet, err := c.note(ca)
	if err != nil {
		return nil, err
	}
	head := wire.FrameHeader{
		Version: c.hello.ProtocolVersion, Kind: kind, Flags: flags,
		MessageLen: uint32(len(msg)), PayloadLen: uint32(size), RequestID: ca.id,
	}
	err = c.out.push(item{head: head, msg: msg, bufs: payload, ticket: ca}, quiet)
	switch {
	case err == nil:
		return ca, nil
	case c.forget(ca.id) == nil:
		return ca, nil // the connection failed meanwhile, and done was or will be told
	case errors.Is(err, errOutboxFull):
		return nil, base.Wrap(base.CodeBusy, kind.String(), err)
	}
	return nil, base.Wrap(base.CodeUnreachable, kind.String(), err)
}

// quietCalls is how many calls may be in flight on a connection that counts as quiet. There a request is written by
// its caller at once; above, the writer goroutine gathers what comes meanwhile, at a quarter of the cost a request.
const quietCalls = 4

// note gives a call its id and waits for its answer. It reports whether the connection is quiet.
func (c *Conn) note(ca *call) (quiet bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		e := base.Wrap(base.CodeUnreachable, ca.kind.String(), c.err)
		e.Outcome = base.NotApplied
		return false, e
	case len(c.calls) >= c.max:
		return false, base.Errorf(base.CodeBusy, ca.kind.String(), "%d requests of this connection wait for answers", len(c.calls))
	}
	// 2^64 ids at a million a second last for half a million years: they do not wrap in a connection's life.
	c.lastID++
	ca.id = c.lastID
	c.calls[ca.id] = ca
	return len(c.calls) <= quietCalls, nil
}

// forget takes a call out; nil means that somebody else has, and will or did call its done.
func (c *Conn) forget(id uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	ca := c.calls[id]
	delete(c.calls, id)
	return ca
}

func (c *Conn) cancel(ca *call, cause error) {
	if c.forget(ca.id) == nil {
		return
	}
	ca.fail(contextCode(cause), cause)
}

func contextCode(err error) base.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return base.CodeTimeout
	}
	return base.CodeCanceled
}

// read is the reader goroutine: it hands answers to their calls until the connection fails, then fails the rest.
func (c *Conn) read() {
	for {
		if err := c.readOne(); err != nil {
			c.fail(err)
			break
		}
	}
	c.mu.Lock()
	calls, err := c.calls, c.err
	c.calls = nil
	c.mu.Unlock()
	for _, ca := range calls {
		ca.fail(base.CodeUnreachable, err)
	}
}

func (c *Conn) readOne() error {
	h, err := c.in.header()
	if err != nil {
		return err
	}
	if h.Flags&wire.FlagResponse == 0 || h.Flags&wire.FlagMore != 0 {
		return base.Errorf(base.CodeCorruptFrame, "read answer", "a frame with flags %#02x is no single answer", uint8(h.Flags))
	}
	c.heard.Store(time.Now().UnixNano())
	ca := c.forget(h.RequestID)
	if ca == nil && h.RequestID != 0 {
		return c.in.skip(h) // cancelled meanwhile
	}
	msg, payload, err := c.in.body(h, nil)
	switch {
	case err != nil:
		c.fail(err)
		if ca != nil {
			ca.fail(base.CodeUnreachable, c.Err())
		}
		return err
	case ca == nil: // id 0 names no request: this is about the connection
		return connectionError(h, msg)
	case h.Flags&wire.FlagError != 0:
		ca.done(Response{}, wire.DecodeError(msg))
	case h.Kind != ca.kind:
		err := base.Errorf(base.CodeCorruptFrame, "read answer", "the answer to %s is of kind %s", ca.kind, h.Kind)
		ca.fail(base.CodeCorruptFrame, err)
		return err
	default:
		ca.done(Response{Message: msg, Payload: payload}, nil)
	}
	return nil
}

// connectionError is the broker's reason to close the connection.
func connectionError(h wire.FrameHeader, msg []byte) error {
	if h.Flags&wire.FlagError != 0 {
		return wire.DecodeError(msg)
	}
	return base.Errorf(base.CodeCorruptFrame, "read answer", "an answer to no request")
}

// fail ends the connection; the first error is the one that is kept. The reader goroutine does the rest.
func (c *Conn) fail(err error) {
	var e *base.Error
	switch {
	case errors.Is(err, errCut): // the network's doing, whatever the peer
		err = base.Errorf(base.CodeUnreachable, "connection to "+c.addr, "it broke off within an answer")
	case errors.As(err, &e):
		err = base.Wrap(e.Code, "connection to "+c.addr, err)
	case errors.Is(err, io.EOF):
		err = base.Errorf(base.CodeUnreachable, "connection to "+c.addr, "the broker closed it")
	default:
		err = base.Wrap(base.CodeUnreachable, "connection to "+c.addr, err)
	}
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		close(c.done)
		c.out.shut(err)
	}
}

// Close fails every outstanding request and waits until the connection's goroutines have ended. It must not be
// called from a done callback. Every call but the first only waits.
func (c *Conn) Close() error {
	c.fail(base.Errorf(base.CodeUnreachable, "", "closed by this client"))
	c.tasks.Wait()
	return nil
}

// Done is closed when the connection has failed or was closed. It takes no more requests then; those outstanding are
// told right after.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended, nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
