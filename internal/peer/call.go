package peer

import (
	"context"
	"errors"

	"github.com/eastguard/eastguard/internal/base"
)

// Call sends a message to a node and waits for the answer. A node that is not kept is dialled for it. Errors are
// *base.Error: the peer's own, or CodeUnreachable (at once when the node is known to be), CodeBusy, CodeTimeout or
// CodeCanceled.
func (h *Host) Call(ctx context.Context, node base.NodeID, kind Kind, msg []byte) ([]byte, error) {
	return h.CallGroup(ctx, node, kind, 0, msg)
}

// CallGroup is Call for one of many groups.
func (h *Host) CallGroup(ctx context.Context, node base.NodeID, kind Kind, group uint32, msg []byte) ([]byte, error) {
	ca := &call{kind: kind, node: node}
	if err := h.check(ca, msg); err != nil {
		return nil, err
	}
	c, err := h.connected(ctx, ca)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, ca, group, msg)
}

// ask sends a request and waits for the answer.
func (c *conn) ask(ctx context.Context, ca *call, group uint32, msg []byte) ([]byte, error) {
	type answer struct {
		body []byte
		err  error
	}
	answers := make(chan answer, 1)
	ca.done = func(body []byte, err error) { answers <- answer{body, err} }
	if err := c.start(ca, group, msg); err != nil {
		return nil, err
	}
	select {
	case a := <-answers:
		return a.body, a.err
	case <-ctx.Done():
		c.cancel(ca, context.Cause(ctx))
		a := <-answers // of cancel, or one that was quicker
		return a.body, a.err
	}
}

// Go is CallGroup without waiting, neither for a connection nor for the answer: done is called exactly once, on the
// connection's reader goroutine or in cancel, and must not block. An error from Go itself means that nothing was
// sent and done will not be called. cancel gives the call up, as CodeCanceled.
func (h *Host) Go(node base.NodeID, kind Kind, group uint32, msg []byte, done func([]byte, error)) (cancel func(), err error) {
	ca := &call{kind: kind, node: node, done: done}
	c, err := h.startNow(ca, group, msg)
	if err != nil {
		return nil, err
	}
	return func() { c.cancel(ca, context.Canceled) }, nil
}

// Send sends a message that has no answer, if there is a connection; it does not wait. Without an error the message
// may still be lost with the connection.
func (h *Host) Send(node base.NodeID, kind Kind, msg []byte) error {
	_, err := h.startNow(&call{kind: kind, node: node}, 0, msg)
	return err
}

func (h *Host) startNow(ca *call, group uint32, msg []byte) (*conn, error) {
	if err := h.check(ca, msg); err != nil {
		return nil, err
	}
	c, _, err := h.lookUp(ca)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, base.Errorf(base.CodeUnreachable, ca.op(), "it is being connected")
	}
	return c, c.start(ca, group, msg)
}

func (h *Host) check(ca *call, msg []byte) error {
	switch {
	case ca.node == h.o.Node:
		return base.Errorf(base.CodeInvalidArgument, ca.op(), "that is this node itself")
	case ca.kind.class() == link:
		return base.Errorf(base.CodeInvalidArgument, ca.op(), "the class belongs to the connection")
	case len(msg) > MaxBody:
		return base.Errorf(base.CodeInvalidArgument, ca.op(), "a message of %d bytes does not fit into a frame", len(msg))
	}
	return nil
}

// connected is the connection for a call; it waits for an attempt that is under way.
func (h *Host) connected(ctx context.Context, ca *call) (*conn, error) {
	for {
		c, attempt, err := h.lookUp(ca)
		if err != nil || c != nil {
			return c, err
		}
		select {
		case <-attempt.done:
			if attempt.err != nil {
				return nil, notConnected(ca, attempt.err)
			}
		case <-ctx.Done():
			err := context.Cause(ctx)
			return nil, base.Wrap(contextCode(err), ca.op(), err)
		}
	}
}

// lookUp returns the connection, or the attempt to wait for, or why there is neither. It asks for an attempt unless
// the last one has just failed.
func (h *Host) lookUp(ca *call) (*conn, *attempt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, shuttingDown(ca.op())
	}
	p, err := h.peerLocked(ca.node)
	if err != nil {
		return nil, nil, base.Wrap(base.CodeBusy, ca.op(), err)
	}
	l := p.lanes[ca.kind.lane()]
	switch {
	case l.conn != nil && p.state.Status == Unreachable:
		return nil, nil, base.Errorf(base.CodeUnreachable, ca.op(), "it has been silent since %s", h.at(l.conn.heard.Load()).Format("15:04:05.000"))
	case l.conn != nil:
		return l.conn, nil, nil
	case l.pausing:
		return nil, nil, notConnected(ca, l.failed)
	}
	return nil, h.demandLocked(l), nil
}

func notConnected(ca *call, cause error) error {
	e := base.Wrap(base.CodeUnreachable, ca.op(), cause)
	e.Code = base.CodeUnreachable // whatever kept the two apart, to the caller the node cannot be reached
	return e.WithOutcome(base.NotApplied)
}

func (c *conn) cancel(ca *call, cause error) {
	if c.forget(ca.id) == nil {
		return
	}
	ca.done(nil, base.Wrap(contextCode(cause), ca.op(), cause).WithOutcome(base.Unknown))
}

func contextCode(err error) base.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return base.CodeTimeout
	}
	return base.CodeCanceled
}
