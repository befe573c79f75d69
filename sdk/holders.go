package sdk

import (
	"context"
	"errors"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// leaderOf is the broker that leads a range's active segment, as far as the route and the handshakes tell; nil when
// they do not.
func (c *Client) leaderOf(r *route, id base.RangeID) *broker {
	node, addr := r.leader(id)
	if addr == "" && node != "" {
		addr = c.brokers.address(node)
	}
	if addr == "" {
		return nil
	}
	return c.brokers.at(addr)
}

// segmentAt is the segment with one offset of a range: by the route if it is the active one there, else by the
// coordinator's word. fresh goes past the route, which has proved to be of no use.
func (c *Client) segmentAt(ctx context.Context, r *route, ref base.RangeRef, offset int64, fresh bool) (wire.SegmentRoute, error) {
	if rr := r.byRange[ref.Range]; !fresh && rr != nil && rr.Active != nil && offset >= rr.Active.Base {
		return *rr.Active, nil
	}
	var resp wire.LocateResponse
	err := c.ask(ctx, wire.KindLocate, wire.LocateRequest{Ref: ref, Offset: offset, Name: r.Name}, &resp)
	return resp.Segment, err
}

// lastHolders lists the nodes that hold the last segment of a range, its leader first.
func (c *Client) lastHolders(ctx context.Context, r *route, ref base.RangeRef) ([]base.NodeID, error) {
	rr := r.byRange[ref.Range]
	if rr == nil {
		return nil, base.Errorf(base.CodeRangeNotFound, "find replica", "topic %s has no range %s", r.Name, ref.Range)
	}
	if rr.Active != nil {
		return rr.Active.Replicas, nil
	}
	seg, err := c.segmentAt(ctx, r, ref, max(rr.End-1, 0), true)
	return seg.Replicas, err
}

// askLast sends a request to those who hold the last segment of a range, its leader first, and goes on until one answers
// or ctx ends: round after round, each with a newer route. use looks at what was decoded into resp; its error counts as
// the holder's.
func (c *Client) askLast(ctx context.Context, r *route, ref base.RangeRef, kind wire.Kind, req, resp any, use func() error) error {
	msg := wire.Encode(req)
	var cause error
	for failures := 0; ; failures++ {
		if failures > 0 {
			newer, err := c.topics.get(r.Name).renew(ctx, r)
			switch {
			case err == nil && newer.ID == r.ID:
				r = newer
			case base.CodeOf(err) == base.CodeTopicNotFound || err == nil:
				return base.Errorf(base.CodeTopicNotFound, kindName(kind), "topic %s not found", r.Name)
			}
		}
		holders, err := c.lastHolders(ctx, r, ref)
		if err == nil {
			err = c.askEach(ctx, r, holders, kind, msg, resp, use)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || cause == nil {
			cause = err
		}
		if code := base.CodeOf(err); remedyFor(err) == giveUp && code != base.CodeOffsetOutOfRange {
			return about(kindName(kind), err) // out of range is what the metadata says of a route that is old
		}
		if !task.Pause(ctx, requestBackoff.wait(failures+1)) {
			return c.outOfTime(ctx, r, ref, kind, cause)
		}
	}
}

// outOfTime is the error of a range nobody answered for: what was the matter says more than that time has passed.
func (c *Client) outOfTime(ctx context.Context, r *route, ref base.RangeRef, kind wire.Kind, cause error) error {
	if away := c.leaderAway(r, ref.Range); away != nil {
		return away
	}
	if cause != nil {
		return about(kindName(kind), cause)
	}
	return contextError(ctx, kindName(kind), base.NotApplied)
}

// askEach asks holders one after the other until one answers. Where one names another node, that one is asked next.
func (c *Client) askEach(ctx context.Context, r *route, holders []base.NodeID, kind wire.Kind, msg []byte, resp any, use func() error) error {
	last := error(base.Errorf(base.CodeNoLeader, "find replica", "no replica of the range can be reached"))
	queue := slices.Clone(holders)
	asked := make(map[*broker]bool)
	for len(queue) > 0 && ctx.Err() == nil {
		n := queue[0]
		queue = queue[1:]
		addr := r.address[n]
		if addr == "" {
			addr = c.brokers.address(n)
		}
		if addr == "" || asked[c.brokers.at(addr)] {
			continue
		}
		b := c.brokers.at(addr)
		asked[b] = true
		err := c.callOnce(ctx, b, kind, msg, resp)
		if err == nil {
			if err = use(); err == nil {
				return nil
			}
		}
		last = err
		if to := redirect(err); to.Node != "" {
			if to.Address != "" {
				c.brokers.learn([]wire.NodeAddress{{ID: to.Node, Address: to.Address}})
			}
			queue = append([]base.NodeID{to.Node}, queue...)
		}
		if remedyFor(err) == giveUp {
			return err
		}
	}
	return last
}

// callOnce asks one broker once, for something that changes nothing. One that says nothing at all is left.
func (c *Client) callOnce(ctx context.Context, b *broker, kind wire.Kind, msg []byte, resp any) error {
	conn, err := b.connectWithin(ctx, connectPatience)
	if err != nil {
		return err
	}
	probe := b.suspectSoon(conn)
	defer probe.Stop()
	answer, err := conn.Call(ctx, kind, msg, nil)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			b.suspect(conn)
		}
		return about(kindName(kind), err).WithOutcome(base.NotApplied)
	}
	return wire.Decode(answer.Message, resp)
}

// leaderAway is the error of a range whose leader there is no connection to: whoever else was asked could only say that it
// is not the leader.
func (c *Client) leaderAway(r *route, id base.RangeID) error {
	node, _ := r.leader(id)
	b := c.leaderOf(r, id)
	if node == "" || b == nil || b.live() != nil {
		return nil
	}
	return base.Errorf(base.CodeUnreachable, "list offsets", "node %s, which leads range %s of topic %s, does not answer", node, id, r.Name).
		WithHint(hintNodeAway)
}
