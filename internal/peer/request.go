package peer

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// Handler takes the requests of one kind. It runs on a connection's reader goroutine and must not block: it answers,
// or passes the request on to be answered later from any goroutine. ctx ends with the Host, not with the connection.
type Handler func(ctx context.Context, r *Request)

// Request is one message from a peer. It wants one Reply or Fail, further ones are ignored; for a message that was
// sent without wanting an answer they do nothing but give its bytes free.
type Request struct {
	From    Hello
	Kind    Kind
	Group   uint32
	Session uint64 // of the connection it came by
	Body    []byte // the handler's own

	conn     *conn
	id       uint64
	held     int64
	answered atomic.Bool
}

// Reply answers. body must not change any more.
func (r *Request) Reply(body []byte) {
	if len(body) > MaxBody {
		r.Fail(base.Errorf(base.CodeInternal, r.Kind.String(), "an answer of %d bytes does not fit into a frame", len(body)).WithOutcome(base.Unknown))
		return
	}
	if r.finish() {
		r.send(frame{flags: flagResponse, body: body}, false)
	}
}

// Fail answers with an error, which keeps its code, hint and outcome on the way.
func (r *Request) Fail(err error) {
	if r.finish() {
		r.send(r.failure(err), true)
	}
}

// finish gives free what the request holds, once.
func (r *Request) finish() (first bool) {
	if !r.answered.CompareAndSwap(false, true) {
		return false
	}
	r.conn.requests.Add(-1)
	r.conn.held.Add(-r.held)
	mark(r.conn.room)
	return true
}

func (r *Request) failure(err error) frame {
	m := wire.ErrorFrom(err)
	if m.Node == "" {
		m.Node = r.conn.host.o.Node
	}
	return frame{flags: flagResponse | flagError, body: wire.Encode(m)}
}

// send queues the answer. One that finds the queue full becomes an error, which is small: errors are as many as
// there are requests at most.
func (r *Request) send(f frame, mustGo bool) {
	if r.id == 0 {
		return
	}
	f.kind, f.group, f.id = r.Kind, r.Group, r.id
	if r.conn.out.push(f, mustGo) == errQueueFull {
		f = r.failure(base.Wrap(base.CodeBusy, r.Kind.String(), errQueueFull).WithOutcome(base.Unknown))
		f.kind, f.group, f.id = r.Kind, r.Group, r.id
		_ = r.conn.out.push(f, true) // fails only on a failed connection
	}
}

// serve hands a request to its handler, or answers it busy.
func (c *conn) serve(f frame) {
	r := &Request{From: c.theirs, Kind: f.kind, Group: f.group, Session: c.session, Body: f.body, conn: c, id: f.id, held: int64(len(f.body))}
	n, held := c.requests.Add(1), c.held.Add(r.held)
	o := &c.host.o
	if c.lane != nil && c.lane.id == dataLane {
		c.awaitRoom(r.held)
	} else if n > int64(o.MaxInFlight) || n > 1 && held > o.InFlightBytes {
		c.host.stats.busy.Add(1)
		r.Fail(base.Errorf(base.CodeBusy, f.kind.String(), "%d requests with %d bytes of this connection are under way", n-1, held-r.held))
		return
	}
	handler := c.host.handler(f.kind)
	if handler == nil {
		r.Fail(base.Errorf(base.CodeUnknownKind, f.kind.String(), "this node does not take such messages").WithHint("compare the versions of the nodes"))
		return
	}
	handler(c.host.tasks.Context(), r)
}

// awaitRoom does not read on from a data lane while what came by it is more than this node has memory for: the sender
// finds its queue full, and waits as it does for a slow disk. A request that is alone is always taken.
func (c *conn) awaitRoom(own int64) {
	for c.held.Load()-own > c.host.o.InFlightBytes {
		select {
		case <-c.room:
		case <-c.done:
			return
		}
	}
}

// Queued makes a Handler of a function that may block. The requests of one group are served one after the other, in
// the order they came, groups side by side; at most limit requests of a group wait, more are answered busy. The
// goroutine of a group lives only while it has requests.
func (h *Host) Queued(limit int, serve func(ctx context.Context, r *Request) ([]byte, error)) Handler {
	q := &queues{host: h, limit: limit, serve: serve, groups: make(map[uint32][]*Request)}
	return q.take
}

type queues struct {
	host  *Host
	limit int
	serve func(ctx context.Context, r *Request) ([]byte, error)

	mu     sync.Mutex
	groups map[uint32][]*Request // a group with a key has a goroutine; the list is what waits for it
}

func (q *queues) take(_ context.Context, r *Request) {
	q.mu.Lock()
	waiting, running := q.groups[r.Group]
	full := len(waiting) >= q.limit
	switch {
	case full:
	case running:
		q.groups[r.Group] = append(waiting, r)
	default:
		q.groups[r.Group] = nil
	}
	q.mu.Unlock()
	switch {
	case full:
		q.host.stats.busy.Add(1)
		r.Fail(base.Errorf(base.CodeBusy, r.Kind.String(), "%d requests of group %d wait", q.limit, r.Group))
	case running:
	case !q.host.tasks.Go("requests", func(ctx context.Context) error { q.run(ctx, r); return nil }):
		r.Fail(shuttingDown(r.Kind.String()))
	}
}

// run serves a group until nothing waits.
func (q *queues) run(ctx context.Context, r *Request) {
	for r != nil {
		if ctx.Err() != nil {
			r.Fail(shuttingDown(r.Kind.String()))
		} else if body, err := q.serve(ctx, r); err != nil {
			r.Fail(err)
		} else {
			r.Reply(body)
		}
		r = q.after(r.Group)
	}
}

func (q *queues) after(group uint32) *Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.groups[group]
	if len(waiting) == 0 {
		delete(q.groups, group)
		return nil
	}
	next := waiting[0]
	waiting[0] = nil
	q.groups[group] = waiting[1:]
	return next
}

func shuttingDown(op string) error {
	return base.Errorf(base.CodeShuttingDown, op, "the node is stopping")
}
