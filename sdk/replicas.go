package sdk

import (
	"context"
	"errors"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// maxDecodedBytes bounds what one batch may decompress to: the largest record a broker can be told to take, with
// room for its batch.
const maxDecodedBytes = 80 << 20

// bounds is what ListOffsets tells of one range.
type bounds = wire.OffsetAnswer

// holder finds a broker that holds the segment with one offset of a range: the leader of the active segment to
// begin with, which knows most, then whoever the coordinator names. After a refusal ask again with its error.
func (c *Client) holder(ctx context.Context, r *route, ref base.RangeRef, offset int64, cause error) (*broker, error) {
	if cause == nil {
		if b := c.leaderOf(r, ref.Range); b != nil {
			return b, nil
		}
	}
	if to := redirect(cause); to.Address != "" {
		return c.brokers.at(to.Address), nil
	}
	var resp wire.LocateResponse
	if err := c.ask(ctx, wire.KindLocate, wire.LocateRequest{Ref: ref, Offset: offset, Name: r.Name}, &resp); err != nil {
		return nil, err
	}
	for _, n := range resp.Segment.Replicas {
		if addr := c.brokers.address(n); addr != "" {
			return c.brokers.at(addr), nil
		}
	}
	return nil, base.Errorf(base.CodeNoLeader, "find replica", "no replica of range %s of topic %s can be reached", ref.Range, r.Name)
}

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

// askRange sends a request to a broker that holds the segment with one offset of a range, going on until one
// answers or ctx ends.
func (c *Client) askRange(ctx context.Context, r *route, ref base.RangeRef, offset int64, kind wire.Kind, req, resp any) error {
	msg := wire.Encode(req)
	var cause error
	for failures := 0; ; failures++ {
		if !pause(ctx, requestBackoff.wait(failures)) {
			if cause != nil {
				return about(kindName(kind), cause)
			}
			return contextError(ctx, kindName(kind), base.NotApplied)
		}
		b, err := c.holder(ctx, r, ref, offset, cause)
		if err == nil {
			err = c.callOnce(ctx, b, kind, msg, resp)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			cause = err
		}
		if remedyFor(err) == giveUp {
			return about(kindName(kind), err)
		}
	}
}

// callOnce asks one broker once, for something that changes nothing.
func (c *Client) callOnce(ctx context.Context, b *broker, kind wire.Kind, msg []byte, resp any) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	answer, err := conn.Call(ctx, kind, msg, nil)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			b.suspect(conn)
		}
		return about(kindName(kind), err).WithOutcome(base.NotApplied)
	}
	return wire.Decode(answer.Message, resp)
}

// listOffsets asks for one position in each of some ranges. A range that is no more is left out.
//
// Each leader is asked once for all of its ranges; what that leaves open, because a range is sealed or has moved, is
// asked for range by range.
func (c *Client) listOffsets(ctx context.Context, r *route, ranges []base.RangeID, spec startSpec) (map[base.RangeID]bounds, error) {
	found := make(map[base.RangeID]bounds, len(ranges))
	queries := make(map[*broker][]wire.OffsetQuery)
	for _, id := range ranges {
		if b := c.leaderOf(r, id); b != nil {
			queries[b] = append(queries[b], spec.queryOf(r, id))
		}
	}
	for b, qs := range queries {
		c.listFrom(ctx, b, qs, found)
	}
	for _, id := range ranges {
		if _, ok := found[id]; ok {
			continue
		}
		answer, err := c.offsetOf(ctx, r, spec.queryOf(r, id))
		switch {
		case err == nil:
			found[id] = answer
		case base.CodeOf(err) != base.CodeRangeNotFound:
			return nil, err
		}
	}
	return found, nil
}

// listFrom adds what one broker answers at once.
func (c *Client) listFrom(ctx context.Context, b *broker, queries []wire.OffsetQuery, found map[base.RangeID]bounds) {
	var resp wire.ListOffsetsResponse
	if err := c.callOnce(ctx, b, wire.KindListOffsets, wire.Encode(wire.ListOffsetsRequest{Queries: queries}), &resp); err != nil {
		return
	}
	for _, a := range resp.Offsets {
		if a.Error == nil {
			found[a.Ref.Range] = a
		}
	}
}

// offsetOf asks for one range, going on until somebody knows.
func (c *Client) offsetOf(ctx context.Context, r *route, q wire.OffsetQuery) (bounds, error) {
	var cause error
	for failures := 0; ; failures++ {
		if !pause(ctx, requestBackoff.wait(failures)) {
			if err := c.leaderAway(r, q.Ref.Range); err != nil {
				return bounds{}, err
			}
			if cause != nil { // it says more than that time has passed
				return bounds{}, about("list offsets", cause)
			}
			return bounds{}, contextError(ctx, "list offsets", base.NotApplied)
		}
		var resp wire.ListOffsetsResponse
		err := c.askRange(ctx, r, q.Ref, lastOffset(r, q.Ref.Range), wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{q}}, &resp)
		if err != nil {
			if away := c.leaderAway(r, q.Ref.Range); away != nil && ctx.Err() != nil {
				err = away
			}
			return bounds{}, err
		}
		if len(resp.Offsets) != 1 {
			return bounds{}, base.Errorf(base.CodeInternal, "list offsets", "%d answers to one query", len(resp.Offsets))
		}
		a := resp.Offsets[0]
		if a.Error == nil {
			return a, nil
		}
		cause = a.Error.Err()
		if remedyFor(cause) == giveUp {
			return bounds{}, about("list offsets", cause)
		}
	}
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

// whatIsLeft asks for the bounds of a range in which offset has been trimmed away, as the metadata says: the answer of a
// fetch there. A replica that has not trimmed yet lags.
func (c *Client) whatIsLeft(ctx context.Context, r *route, ref base.RangeRef, offset int64) (wire.FetchRangeResult, error) {
	a, err := c.offsetOf(ctx, r, wire.OffsetQuery{Ref: ref, At: wire.OffsetEarliest})
	switch {
	case err != nil:
		return wire.FetchRangeResult{}, err
	case a.Earliest <= offset:
		return wire.FetchRangeResult{}, base.Errorf(base.CodeBehind, "find replica", "range %s is being trimmed beyond %d", ref.Range, offset)
	}
	return wire.FetchRangeResult{Code: base.CodeOffsetOutOfRange, Earliest: a.Earliest, Commit: a.Commit}, nil
}

// queryOf asks for the position in one range.
func (s *startSpec) queryOf(r *route, id base.RangeID) wire.OffsetQuery {
	return wire.OffsetQuery{Ref: base.RangeRef{Topic: r.ID, Range: id}, At: s.query(), TimeMs: s.timeMs}
}

// query is the kind of position a Start asks for.
func (s *startSpec) query() wire.OffsetSpec {
	switch s.kind {
	case startLatest:
		return wire.OffsetLatest
	case startTime:
		return wire.OffsetAtTime
	case startEarliest, startPositions:
	}
	return wire.OffsetEarliest
}

// rangesOf lists the ranges of a route, sealed ones included.
func rangesOf(r *route) []base.RangeID {
	ids := make([]base.RangeID, 0, len(r.Ranges))
	for i := range r.Ranges {
		ids = append(ids, r.Ranges[i].ID)
	}
	return ids
}
