package sdk

import (
	"context"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// ListSegments lists segments by id, following the pages to the end or to the limit.
//
// Errors: CodeTopicNotFound, CodeRangeNotFound and CodeNodeNotFound for what the request names.
func (a *Admin) ListSegments(ctx context.Context, r ListSegments) (SegmentList, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var list SegmentList
	missing := make(map[ShardID]bool)
	req := wire.ListSegmentsRequest{Topic: r.Topic, Range: r.Range, Node: r.Node, State: r.State, Limit: r.Limit}
	for {
		var page wire.ListSegmentsResponse
		if err := a.c.ask(ctx, wire.KindListSegments, req, &page); err != nil {
			return list, err
		}
		list.Segments = append(list.Segments, page.Segments...)
		for _, s := range page.Missing {
			if !missing[s] {
				missing[s] = true
				list.Missing = append(list.Missing, s)
			}
		}
		if r.Limit > 0 && len(list.Segments) >= r.Limit {
			list.Segments = list.Segments[:r.Limit]
			return list, nil
		}
		if !page.More || len(page.Segments) == 0 {
			return list, nil
		}
		req.After = page.Segments[len(page.Segments)-1].Segment.ID
		if r.Limit > 0 {
			req.Limit = r.Limit - len(list.Segments)
		}
	}
}

// DescribeSegment tells everything about one segment, with what each replica says of its own copy.
//
// Errors: CodeSegmentNotFound.
func (a *Admin) DescribeSegment(ctx context.Context, id SegmentID) (DescribedSegment, error) {
	var resp DescribedSegment
	err := a.do(ctx, wire.KindDescribeSegment, wire.DescribeSegmentRequest{Segment: id}, &resp)
	return resp, err
}

// SealSegment ends an active segment and opens its successor. Nothing is lost, and producers see only latency.
//
// Errors: CodeSegmentNotFound; CodePreconditionFailed for a segment that is sealed.
func (a *Admin) SealSegment(ctx context.Context, r SealSegment) (SealedSegment, error) {
	var resp SealedSegment
	err := a.do(ctx, wire.KindSealSegment, wire.SealSegmentRequest{
		RequestID: newRequestID(), Segment: r.Segment, Reason: r.Reason, DryRun: r.DryRun,
	}, &resp)
	return resp, err
}

// ForceSealSegment ends an active segment of which no intact replica can be reached, at the end of the longest copy
// that answers. What was acknowledged above it is lost, which is recorded for ever: the call is refused without
// AcceptDataLoss, unless it is a dry run.
//
// Errors: CodeSegmentNotFound; CodePreconditionFailed for a segment that is sealed, or that an intact replica can end
// without a loss.
func (a *Admin) ForceSealSegment(ctx context.Context, r ForceSealSegment) (SealedSegment, error) {
	var resp SealedSegment
	if !r.AcceptDataLoss && !r.DryRun {
		return resp, base.Errorf(base.CodeInvalidArgument, "force-seal segment", "that records may be lost has to be accepted")
	}
	err := a.do(ctx, wire.KindForceSealSegment, wire.ForceSealSegmentRequest{
		RequestID: newRequestID(), Segment: r.Segment, Reason: r.Reason, AcceptDataLoss: r.AcceptDataLoss, DryRun: r.DryRun,
	}, &resp)
	return resp, err
}
