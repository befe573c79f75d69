package sdk

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// bounds is what is known of one range when its reader begins.
type bounds = wire.OffsetAnswer

// listOffsets finds one position in each of some ranges, and hands out each as soon as it is known. A range that is no
// more is left out.
//
// Where ranges begin is in the route, and asks nobody: it is known while their leaders are away. Else each leader is asked
// once for all of its ranges; what that leaves open, because a range is sealed or has moved, is asked for range by range.
func (c *Client) listOffsets(ctx context.Context, r *route, ranges []base.RangeID, spec startSpec, each func(base.RangeID, bounds)) error {
	if spec.query() == wire.OffsetEarliest {
		for _, id := range ranges {
			if rr := r.byRange[id]; rr != nil {
				each(id, rangeBounds(rr))
			}
		}
		return nil
	}
	found := c.listFromLeaders(ctx, r, ranges, spec, each)
	for _, id := range ranges {
		if found[id] {
			continue
		}
		answer, err := c.offsetOf(ctx, r, spec.queryOf(r, id))
		switch {
		case err == nil:
			each(id, answer)
		case base.CodeOf(err) != base.CodeRangeNotFound:
			return err
		}
	}
	return nil
}

// listFromLeaders hands out what the leaders answer at once, and returns which ranges those are.
func (c *Client) listFromLeaders(ctx context.Context, r *route, ranges []base.RangeID, spec startSpec, each func(base.RangeID, bounds)) map[base.RangeID]bool {
	queries := make(map[*broker][]wire.OffsetQuery)
	for _, id := range ranges {
		if b := c.leaderOf(r, id); b != nil && !b.resting() {
			queries[b] = append(queries[b], spec.queryOf(r, id))
		}
	}
	found := make(map[base.RangeID]bool, len(ranges))
	for b, qs := range queries {
		var resp wire.ListOffsetsResponse
		if c.callOnce(ctx, b, wire.KindListOffsets, wire.Encode(wire.ListOffsetsRequest{Queries: qs}), &resp) != nil {
			continue
		}
		for _, a := range resp.Offsets {
			if a.Error == nil {
				found[a.Ref.Range] = true
				each(a.Ref.Range, a)
			}
		}
	}
	return found
}

// offsetOf asks for one range, going on until somebody knows.
func (c *Client) offsetOf(ctx context.Context, r *route, q wire.OffsetQuery) (bounds, error) {
	var resp wire.ListOffsetsResponse
	err := c.askLast(ctx, r, q.Ref, wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{q}}, &resp, func() error {
		if len(resp.Offsets) != 1 {
			return base.Errorf(base.CodeInternal, "list offsets", "%d answers to one query", len(resp.Offsets))
		}
		if e := resp.Offsets[0].Error; e != nil {
			return e.Err()
		}
		return nil
	})
	if err != nil {
		return bounds{}, err
	}
	return resp.Offsets[0], nil
}

// whatIsLeft asks for the bounds of a range in which offset has been trimmed away, as the metadata says: the answer of a
// fetch there. A replica that has not trimmed yet lags. Only the range's leader can tell its end, which is asked for where
// it is needed.
func (c *Client) whatIsLeft(ctx context.Context, r *route, ref base.RangeRef, offset int64, reset ResetPolicy) (wire.FetchRangeResult, error) {
	at := wire.OffsetEarliest
	if reset == ResetLatest {
		at = wire.OffsetLatest
	}
	a, err := c.offsetOf(ctx, r, wire.OffsetQuery{Ref: ref, At: at})
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
