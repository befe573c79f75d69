package peer

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// conn is one established connection, of either direction.
type conn struct {
	host    *Host
	lane    *lane
	theirs  Hello
	cluster base.ClusterID // what this node said of itself
	nc      net.Conn
	life    *lifeReader
	in      *frameReader // the reader goroutine's
	out     *outbox
	born    time.Time
	session uint64        // numbers the connections of this process
	done    chan struct{} // closed when it has failed
	room    chan struct{} // capacity one: requests of the peer have been let go of

	heard atomic.Int64 // when a byte arrived last, in nanoseconds since the host's start
	used  atomic.Int64 // when a message went either way last, the same way
	rtt   atomic.Int64 // of the last ping

	requests atomic.Int64 // of the peer, without an answer
	held     atomic.Int64 // their bytes

	mu     sync.Mutex
	calls  map[uint64]*call
	lastID uint64
	err    error // why it failed; no call is taken after

	pinged int64 // the watch goroutine's: when, the same way
}

func newConn(h *Host, l *lane, theirs Hello, cluster base.ClusterID, nc net.Conn, life *lifeReader, in *frameReader) *conn {
	c := &conn{
		host: h, lane: l, theirs: theirs, cluster: cluster, nc: nc, life: life, in: in, session: h.sessions.Add(1),
		out: newOutbox(nc, h.o.QueueBytes, &h.stats.bytesOut), born: time.Now(), done: make(chan struct{}), room: make(chan struct{}, 1),
		calls: make(map[uint64]*call),
	}
	c.heard.Store(h.clock())
	c.used.Store(h.clock())
	return c
}

// lifeReader notes every arrival of bytes.
type lifeReader struct {
	nc   net.Conn
	host *Host
	conn atomic.Pointer[conn] // nil during the handshake
}

// Read implements io.Reader.
func (r *lifeReader) Read(b []byte) (int, error) {
	n, err := r.nc.Read(b)
	if c := r.conn.Load(); c != nil && n > 0 {
		c.heard.Store(r.host.clock())
	}
	return n, err
}

// silence is how long nothing has been heard.
func (c *conn) silence() time.Duration { return time.Duration(c.host.clock() - c.heard.Load()) }

// write is the writer goroutine.
func (c *conn) write() { c.fail(c.out.run()) }

// read is the reader goroutine. When the connection has failed it tells the host and every call.
func (c *conn) read() {
	limit := MaxBody
	if c.lane.id == dataLane {
		limit, c.in.atATime = MaxDataBody, dataAtATime
	}
	for {
		f, err := c.in.next(limit)
		if err == nil {
			err = c.take(f)
		}
		if err != nil {
			c.fail(err)
			break
		}
	}
	c.mu.Lock()
	calls, err := c.calls, c.err
	c.calls = nil
	c.mu.Unlock()
	c.host.ended(c)
	for _, ca := range calls {
		ca.done(nil, base.Wrap(base.CodeUnreachable, ca.op(), err).WithOutcome(base.Unknown))
	}
}

// take handles one frame.
func (c *conn) take(f frame) error {
	c.host.stats.framesIn.Add(1)
	c.host.stats.bytesIn.Add(int64(f.size()))
	switch {
	case f.kind == kindPing && f.flags&flagResponse == 0:
		_ = c.out.push(frame{kind: kindPing, flags: flagResponse, id: f.id}, true) // fails only on a failed connection
	case f.kind == kindPing:
		// The id is the time at which the ping left, of our own clock.
		if sent, now := int64(f.id), c.host.clock(); sent > 0 && sent <= now {
			c.rtt.Store(now - sent)
		}
	case f.kind.class() == link:
		return corrupt("an unexpected frame of kind %s", f.kind)
	case f.flags&flagResponse != 0:
		c.used.Store(c.host.clock())
		c.answer(f)
	default:
		c.used.Store(c.host.clock())
		c.serve(f)
	}
	return nil
}

// answer ends the call that the frame answers; nobody may be waiting any more.
func (c *conn) answer(f frame) {
	ca := c.forget(f.id)
	switch {
	case ca == nil:
	case f.flags&flagError != 0:
		e := wire.DecodeError(f.body)
		if e.Node == "" {
			e.Node = c.theirs.Node
		}
		ca.done(nil, e)
	default:
		ca.done(f.body, nil)
	}
}

// ping asks for a sign of life.
func (c *conn) ping() {
	_ = c.out.push(frame{kind: kindPing, id: uint64(c.host.clock())}, true)
}

// fail ends the connection; the first error is kept. The reader goroutine does the rest.
func (c *conn) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = c.explain(err)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	close(c.done)
	c.out.close()
	_ = c.nc.Close() // all is lost already
}

// reason is why it failed, nil while it has not.
func (c *conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// idle reports whether nothing is under way, in either direction.
func (c *conn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) == 0 && c.requests.Load() == 0
}

func (c *conn) explain(err error) error {
	op := "connection to node " + string(c.theirs.Node)
	var e *base.Error
	switch {
	case errors.As(err, &e):
		return base.Wrap(e.Code, op, err)
	case errors.Is(err, io.EOF):
		return base.Errorf(base.CodeUnreachable, op, "the peer closed it")
	}
	return base.Wrap(base.CodeUnreachable, op, err)
}

// call is one request that waits for its answer.
type call struct {
	id   uint64
	kind Kind
	node base.NodeID
	done func(body []byte, err error)
}

func (ca *call) op() string { return ca.kind.String() + " to node " + string(ca.node) }

// start queues a request, or a message that wants no answer if ca.done is nil. An error means that it was not
// queued and done will not be called.
func (c *conn) start(ca *call, group uint32, body []byte) error {
	f := frame{kind: ca.kind, group: group, body: body}
	if ca.done != nil {
		if err := c.note(ca); err != nil {
			return err
		}
		f.id = ca.id
	}
	return c.post(ca, f)
}

// post queues the frame of a call.
func (c *conn) post(ca *call, f frame) error {
	err := c.out.push(f, false)
	switch {
	case err == nil:
		c.used.Store(c.host.clock())
		c.host.stats.framesOut.Add(1)
		return nil
	case ca.done != nil && c.forget(ca.id) == nil:
		return nil // the connection failed meanwhile, and done was or will be told
	case errors.Is(err, errQueueFull):
		c.host.stats.busy.Add(1)
		return base.Wrap(base.CodeBusy, ca.op(), err)
	}
	return base.Wrap(base.CodeUnreachable, ca.op(), err)
}

func (c *conn) note(ca *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return base.Wrap(base.CodeUnreachable, ca.op(), c.err).WithOutcome(base.NotApplied)
	case len(c.calls) >= c.host.o.MaxInFlight:
		c.host.stats.busy.Add(1)
		return base.Errorf(base.CodeBusy, ca.op(), "%d calls wait for answers", len(c.calls))
	}
	c.lastID++
	ca.id = c.lastID
	c.calls[ca.id] = ca
	return nil
}

// forget takes a call out; nil means that somebody else has, and will or did call its done.
func (c *conn) forget(id uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	ca := c.calls[id]
	delete(c.calls, id)
	return ca
}
