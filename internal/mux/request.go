package mux

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Peer is what is known of a connection's other end.
type Peer struct {
	ID     uint64 // of the connection, unique in the process
	Remote string // address
	Hello  wire.HelloRequest
}

// Request is one request as its server sees it. Message and Payload belong to the handler from the call on. One of
// Reply and Fail must be called exactly once, from any goroutine, at any time: until then the request holds its
// place in the connection's window. Neither blocks.
type Request struct {
	Kind    wire.Kind
	Flags   wire.Flags
	Message []byte
	Payload []byte
	Peer    *Peer
	Arrived time.Time // when its header had been read

	conn     *serverConn
	id       uint64
	size     int64 // of message and payload, as the window counts it
	held     int64 // of them, as the server's memory counts it
	answer   int64 // bytes of the answer's frame, once there is one
	answered atomic.Bool
}

// Decode reads the message into m, as wire.Decode does.
func (r *Request) Decode(m any) error { return wire.Decode(r.Message, m) }

// Reply answers with a message and payload parts, which are released when the kernel has them or never will.
func (r *Request) Reply(msg []byte, parts ...vfs.Part) {
	payload := 0
	for _, p := range parts {
		payload += p.Len()
	}
	if len(msg) > wire.MaxMessage || payload > wire.MaxPayload {
		releaseAll(parts)
		r.Fail(base.Errorf(base.CodeInternal, r.Kind.String(), "an answer of %d and %d bytes does not fit into a frame", len(msg), payload).WithOutcome(base.Unknown))
		return
	}
	r.send(wire.FlagResponse, msg, payload, parts)
}

// Fail answers with an error; see wire.ErrorFrom for what becomes of one that is no *base.Error.
func (r *Request) Fail(err error) {
	m := wire.ErrorFrom(err)
	if m.Node == "" {
		m.Node = r.conn.node
	}
	r.send(wire.FlagResponse|wire.FlagError, wire.Encode(m), 0, nil)
}

func (r *Request) send(flags wire.Flags, msg []byte, payload int, parts []vfs.Part) {
	if !r.answered.CompareAndSwap(false, true) {
		releaseAll(parts)
		r.conn.srv.log.Error("request answered twice", "kind", r.Kind, "remote", r.Peer.Remote)
		return
	}
	head := wire.FrameHeader{
		Version: r.conn.version, Flags: flags, Kind: r.Kind,
		MessageLen: uint32(len(msg)), PayloadLen: uint32(payload), RequestID: r.id,
	}
	it := item{head: head, msg: msg, parts: parts, ticket: r}
	r.answer = it.size()
	r.conn.window.resize(r.size, r.answer)
	r.conn.srv.held.Add(-r.held)
	if r.conn.out.push(it, false) != nil { // the connection is gone
		it.settle(false)
	}
}

// take implements ticket.
func (r *Request) take() bool { return true }

// settle implements ticket: the request has left the connection.
func (r *Request) settle(sent bool) {
	if sent {
		r.conn.srv.bytesOut.Add(r.answer)
	}
	r.conn.window.release(r.answer)
	r.conn.srv.leave()
}

// hold counts n more bytes of memory for the request, unless the server has too little.
func (r *Request) hold(n int) bool {
	ok := r.conn.srv.hold(int64(n))
	if ok {
		r.held += int64(n)
	}
	return ok
}

// drop ends a request that never reached the handler.
func (r *Request) drop() {
	r.conn.srv.held.Add(-r.held)
	r.conn.window.release(r.size)
	r.conn.srv.leave()
}

// recovered turns a handler's panic into the failure of its request.
func (r *Request) recovered(p any, stack []byte) {
	r.conn.srv.log.Error("handler panicked", "kind", r.Kind, "remote", r.Peer.Remote, "panic", fmt.Sprint(p), "stack", string(stack))
	if r.answered.Load() {
		return
	}
	r.Fail(base.Errorf(base.CodeInternal, r.Kind.String(), "the broker's handler panicked: %v", p).WithOutcome(base.Unknown))
}

func releaseAll(parts []vfs.Part) {
	for _, p := range parts {
		p.Release()
	}
}
