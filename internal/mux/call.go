package mux

import (
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// Response is the answer to a request. Both slices belong to whoever gets it.
type Response struct {
	Message []byte
	Payload []byte
}

// call is one request as its client sees it: in Conn.calls until somebody takes it out, who then calls done.
type call struct {
	id    uint64
	kind  wire.Kind
	state atomic.Uint32
	done  func(Response, error)
}

// The states of a call on its way out.
const (
	callQueued  = iota // not a byte of it has left
	callTaken          // may have reached the broker
	callDropped        // given up while queued; will not be sent
)

// take implements ticket.
func (c *call) take() bool { return c.state.CompareAndSwap(callQueued, callTaken) }

// settle implements ticket. A call that was never sent fails with its connection.
func (c *call) settle(bool) {}

// outcome is what can be said of a call that will get no answer. It drops the call if it is still queued, so that
// the answer stays true.
func (c *call) outcome() base.Outcome {
	if c.state.CompareAndSwap(callQueued, callDropped) || c.state.Load() == callDropped {
		return base.NotApplied
	}
	return base.Unknown
}

// fail ends the call without an answer.
func (c *call) fail(code base.Code, cause error) {
	e := base.Wrap(code, c.kind.String(), cause)
	e.Outcome = c.outcome()
	c.done(Response{}, e)
}
