package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/wire"
)

// What coordinators and data planes say to each other between nodes. Nothing in it needs a proof of leadership: orders
// are what was committed, with a version that guards against older ones; a fence makes at worst a healthy leader ask
// for a successor; and what a roll or a recovery commits names the segment and epoch it is about.
const (
	kindTell       = peer.Control + 2
	kindFence      = peer.Control + 3
	kindRoll       = peer.Control + 4
	kindInventory  = peer.Control + 5
	kindRangeState = peer.Control + 24
	kindExtents    = peer.Control + 25
	kindTopicCopy  = peer.Control + 26
	kindOffsets    = peer.Control + 27
	kindTail       = peer.Control + 29
	kindHears      = peer.Control + 28
)

// maxOrderCalls is how many messages of one of these kinds a node works on at once; more are answered busy, and come
// again. Each may wait for the disk.
const maxOrderCalls = 512

// tellMessage is one coordinator's orders to one disk.
type tellMessage struct {
	Disk   base.DiskID `cbor:"1,keyasint"`
	Orders meta.Orders `cbor:"2,keyasint"`
}

type tellAnswer struct {
	Confirmed []meta.Confirmation `cbor:"1,keyasint"`
}

type fenceMessage struct {
	Disk     base.DiskID         `cbor:"1,keyasint"`
	Requests []meta.FenceRequest `cbor:"2,keyasint"`
	WaitMs   uint32              `cbor:"3,keyasint"` // how long the asker waits for those that take long
}

type fenceAnswer struct {
	Answers []meta.FenceAnswer `cbor:"1,keyasint"`
}

type inventoryMessage struct {
	From  base.RangeRef `cbor:"1,keyasint"`
	Limit int           `cbor:"2,keyasint"`
}

// orderDesk is this node's end of those messages.
type orderDesk struct {
	plane atomic.Pointer[dataplane.Plane] // once it is ready to be told; messages may come before
	calls sync.WaitGroup                  // being served

	extents extentCache // what others said
}

// peerCaller is what is needed of the connections to other nodes: *peer.Host.
type peerCaller interface {
	Call(ctx context.Context, node base.NodeID, kind peer.Kind, msg []byte) ([]byte, error)
}

// nodes carries the coordinators' orders: to the plane of this node directly, to others over their connections.
type nodes struct{ s *Server }

var _ coord.Nodes = nodes{}

func (n nodes) here(to base.Replica) bool { return to.Node == n.s.id.Node }

// Tell is coord.Nodes.
func (n nodes) Tell(ctx context.Context, to base.Replica, orders meta.Orders) ([]meta.Confirmation, error) {
	if n.here(to) {
		return n.s.takeOrders(ctx, to.Disk, orders)
	}
	answer, err := callPeer[tellAnswer](ctx, n.s.peerCalls(), to.Node, kindTell, tellMessage{Disk: to.Disk, Orders: orders})
	return answer.Confirmed, err
}

// Fence is coord.Nodes.
func (n nodes) Fence(ctx context.Context, to base.Replica, requests []meta.FenceRequest) ([]meta.FenceAnswer, error) {
	if n.here(to) {
		return n.s.takeFences(ctx, to.Disk, requests)
	}
	m := fenceMessage{Disk: to.Disk, Requests: requests}
	if deadline, ok := ctx.Deadline(); ok { // what it has by then is better than nothing by our own deadline
		m.WaitMs = uint32(max(0, time.Until(deadline)*9/10) / time.Millisecond)
	}
	answer, err := callPeer[fenceAnswer](ctx, n.s.peerCalls(), to.Node, kindFence, m)
	return answer.Answers, err
}

// Inventory is coord.Nodes.
func (n nodes) Inventory(ctx context.Context, node base.NodeID, from base.RangeRef, limit int) (meta.Inventory, error) {
	if node == n.s.id.Node {
		return n.s.inventory(from, limit), nil
	}
	return callPeer[meta.Inventory](ctx, n.s.peerCalls(), node, kindInventory, inventoryMessage{From: from, Limit: limit})
}

// Silence is coord.Nodes.
func (n nodes) Silence(ctx context.Context, witness, of base.NodeID) (time.Duration, error) {
	if witness == n.s.id.Node {
		return n.s.contact(of).Silent, nil
	}
	answer, err := callPeer[hearsAnswer](ctx, n.s.peerCalls(), witness, kindHears, hearsMessage{Node: of})
	return time.Duration(answer.SilentMs) * time.Millisecond, err
}

// callPeer asks another node. The answer is decoded within limits.
func callPeer[A any](ctx context.Context, calls peerCaller, node base.NodeID, kind peer.Kind, msg any) (answer A, err error) {
	if calls == nil {
		return answer, base.Errorf(base.CodeUnreachable, kind.String(), "node %s is not known here", node)
	}
	b, err := calls.Call(ctx, node, kind, wire.Encode(msg))
	if err != nil {
		return answer, err
	}
	err = wire.Decode(b, &answer)
	return answer, err
}

// peerCalls are the connections to other nodes; nil where there are none.
func (s *Server) peerCalls() peerCaller {
	if s.peers == nil {
		return nil
	}
	return s.peers
}

// registerOrders says who takes the coordinators' and the data planes' messages. It comes before p.Start, and before
// p's end is pushed to what Close undoes: whoever is being served is waited for after the connections have ended.
func (s *Server) registerOrders(p *peer.Host) {
	s.undo.Push("orders of other nodes", func() error { s.orders.calls.Wait(); return nil })
	p.Register(kindTell, served(s, func(ctx context.Context, _ *peer.Request, m tellMessage) (tellAnswer, error) {
		confirmed, err := s.takeOrders(ctx, m.Disk, m.Orders)
		if len(confirmed) > 0 {
			err = nil // those are a good answer, and what is missing is told again
		}
		return tellAnswer{Confirmed: confirmed}, err
	}))
	p.Register(kindFence, served(s, func(ctx context.Context, _ *peer.Request, m fenceMessage) (fenceAnswer, error) {
		if m.WaitMs > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(m.WaitMs)*time.Millisecond)
			defer cancel()
		}
		answers, err := s.takeFences(ctx, m.Disk, m.Requests)
		if len(answers) > 0 {
			err = nil
		}
		return fenceAnswer{Answers: answers}, err
	}))
	p.Register(kindRoll, served(s, s.takeRoll))
	p.Register(kindInventory, served(s, func(_ context.Context, _ *peer.Request, m inventoryMessage) (meta.Inventory, error) {
		return s.inventory(m.From, m.Limit), nil
	}))
	p.Register(kindRangeState, served(s, s.takeRangeState))
	p.Register(kindTail, served(s, s.takeTail))
	p.Register(kindExtents, served(s, s.takeExtents))
	p.Register(kindTopicCopy, served(s, s.takeTopicCopy))
	p.Register(kindOffsets, served(s, s.takeOffsets))
	p.Register(kindHears, s.takeHears)
}

// orderTimeout bounds the work on one message: whoever sent it has given up by then.
const orderTimeout = 15 * time.Second

// served makes a handler of a function that may block: each message on a goroutine of its own, a bounded number of
// them at once. Two messages of one sender may overtake each other, which orders bear: they carry versions.
func served[Q, A any](s *Server, serve func(context.Context, *peer.Request, Q) (A, error)) peer.Handler {
	var running atomic.Int64
	return func(ctx context.Context, r *peer.Request) {
		if running.Add(1) > maxOrderCalls {
			running.Add(-1)
			r.Fail(base.Errorf(base.CodeBusy, r.Kind.String(), "%d such messages are being served", maxOrderCalls).WithOutcome(base.NotApplied))
			return
		}
		s.orders.calls.Go(func() {
			defer running.Add(-1)
			ctx, cancel := context.WithTimeout(ctx, orderTimeout)
			defer cancel()
			var q Q
			if err := wire.Decode(r.Body, &q); err != nil {
				r.Fail(err)
				return
			}
			answer, err := serve(ctx, r, q)
			if err != nil {
				r.Fail(err)
				return
			}
			r.Reply(wire.Encode(answer))
		})
	}
}

// notReady is the answer while this node still starts.
func notReady(op string) *base.Error {
	return base.Errorf(base.CodeUnreachable, op, "the node is starting").WithOutcome(base.NotApplied)
}

// takeOrders gives a coordinator's orders to the data plane, if they are for the disk that is here.
func (s *Server) takeOrders(ctx context.Context, disk base.DiskID, orders meta.Orders) ([]meta.Confirmation, error) {
	const op = "take orders"
	p := s.orders.plane.Load()
	switch {
	case p == nil:
		return nil, notReady(op)
	case disk != s.id.Disk:
		return nil, base.Errorf(base.CodeNotReplica, op, "the orders are for disk %s, node %s has disk %s", disk, s.id.Node, s.id.Disk).
			WithOutcome(base.NotApplied)
	}
	return p.Tell(ctx, orders)
}

// takeFences fences. Another disk than the one meant proves nothing, and says so.
func (s *Server) takeFences(ctx context.Context, disk base.DiskID, requests []meta.FenceRequest) ([]meta.FenceAnswer, error) {
	p := s.orders.plane.Load()
	if p == nil {
		return nil, notReady("fence")
	}
	if disk == s.id.Disk {
		return p.Fence(ctx, requests)
	}
	answers := make([]meta.FenceAnswer, 0, len(requests))
	for _, r := range requests {
		answers = append(answers, meta.FenceAnswer{
			Segment: r.Segment, Replica: base.Replica{Node: s.id.Node, Disk: disk}, Kind: meta.NotMine, End: r.Base,
		})
	}
	return answers, nil
}

// maxInventory is how many ranges a page has at most.
const maxInventory = 1 << 14

// inventory is a page of what this disk holds, from a range on.
func (s *Server) inventory(from base.RangeRef, limit int) meta.Inventory {
	limit = min(max(limit, 1), maxInventory)
	page := meta.Inventory{Disk: s.id.Disk, Lossy: s.store.Lossy()}
	refs := s.store.Ranges(from, limit+1)
	if len(refs) > limit {
		page.Next, page.More = refs[limit], true
		refs = refs[:limit]
	}
	for _, ref := range refs {
		held := meta.Held{Ref: ref}
		for _, info := range s.store.Segments(ref) {
			held.Segments = append(held.Segments, heldSegment(info))
		}
		if len(held.Segments) > 0 {
			page.Ranges = append(page.Ranges, held)
		}
	}
	return page
}

func heldSegment(info store.SegmentInfo) meta.HeldSegment {
	h := meta.HeldSegment{Segment: info.Segment, Base: info.Base, End: info.DurableEnd}
	if info.Damaged {
		h.Damaged, h.Intact = true, info.DamagedAbove
	}
	return h
}
