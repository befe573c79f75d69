package cli

import (
	"context"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// fakeSegments are two segments of topic t: s5 is active and has lost a copy, s4 is sealed.
type fakeSegments struct {
	listed []sdk.ListSegments
	sealed []sdk.SealSegment
	forced []sdk.ForceSealSegment
	looked int
	mended int // looks until s5 has its copies
}

func (f *fakeSegments) segment(id sdk.SegmentID) (sdk.SegmentRow, error) {
	row := sdk.SegmentRow{Topic: "t", Range: 1, ReplicationFactor: 3, Copies: 3, Segment: sdk.SegmentDetail{
		ID: id, Epoch: 2, State: base.StateSealed, Cause: base.CauseReplicaFailure, Base: 100, End: 200, Records: 100, Bytes: 2048,
		CreatedMs: testNow.UnixMilli() - 3_600_000, SealedMs: testNow.UnixMilli() - 60_000, GapMs: 96, Copies: 3,
		Replicas: []sdk.ReplicaDetail{{Node: "n1", State: "in_sync", DurableEnd: 200}, {Node: "n2", State: "in_sync", DurableEnd: 200}, {Node: "n3", State: "in_sync", DurableEnd: 200}},
	}}
	switch id {
	case 4:
	case 5:
		row.Segment.State, row.Segment.Cause, row.Segment.Base, row.Segment.End, row.Segment.SealedMs = base.StateActive, 0, 200, 250, 0
		if f.mended == 0 || f.looked < f.mended {
			row.Copies, row.Segment.Copies = 2, 2
			row.Segment.Replicas[2].State = "no_answer"
		}
	default:
		return row, errorf(sdk.CodeSegmentNotFound, "segment %s not found", id)
	}
	return row, nil
}

func (f *fakeAdmin) ListSegments(_ context.Context, r sdk.ListSegments) (sdk.SegmentList, error) {
	f.listed = append(f.listed, r)
	if r.Topic != "" && r.Topic != "t" {
		return sdk.SegmentList{}, errorf(sdk.CodeTopicNotFound, "topic %q not found", r.Topic)
	}
	four, _ := f.segment(4)
	five, _ := f.segment(5)
	list := sdk.SegmentList{Segments: []sdk.SegmentRow{four, five}}
	list.Segments = slices.DeleteFunc(list.Segments, func(s sdk.SegmentRow) bool { return r.State == "active" && s.Segment.ID == 4 })
	return list, nil
}

func (f *fakeAdmin) DescribeSegment(_ context.Context, id sdk.SegmentID) (sdk.DescribedSegment, error) {
	f.looked++
	row, err := f.segment(id)
	if err != nil {
		return sdk.DescribedSegment{}, err
	}
	d := sdk.DescribedSegment{Row: row, Shard: sdk.ShardID{Root: 3}, Prev: id - 1}
	for i, r := range row.Segment.Replicas {
		c := sdk.SegmentCopy{Replica: r, Role: "follower", Commit: row.Segment.End, Bytes: 2048, CRC: 0xabc, LastFsyncUs: 1900, IndexEntries: 1}
		if i == 0 {
			c.Role = "leader"
		}
		if r.State == "no_answer" {
			c = sdk.SegmentCopy{Replica: r, Error: "node n3 does not answer"}
		}
		d.Copies = append(d.Copies, c)
	}
	return d, nil
}

func (f *fakeAdmin) SealSegment(_ context.Context, r sdk.SealSegment) (sdk.SealedSegment, error) {
	if r.Segment == 4 {
		return sdk.SealedSegment{}, errorf(sdk.CodePreconditionFailed, "segment s4 is sealed")
	}
	if _, err := f.segment(r.Segment); err != nil {
		return sdk.SealedSegment{}, err
	}
	s := sdk.SealedSegment{Topic: "t", Range: 1, Old: r.Segment, Boundary: 245, Cause: base.CauseOperator, DryRun: r.DryRun}
	if !r.DryRun {
		f.sealed = append(f.sealed, r)
		s.New, s.Boundary, s.Replicas, s.GapMs = 5, 250, []sdk.NodeID{"n2", "n1", "n4"}, 12
	}
	return s, nil
}

func (f *fakeAdmin) ForceSealSegment(_ context.Context, r sdk.ForceSealSegment) (sdk.SealedSegment, error) {
	if !r.DryRun {
		f.forced = append(f.forced, r)
	}
	return sdk.SealedSegment{
		Topic: "t", Range: 1, Old: r.Segment, Boundary: 240, Lossy: true, DryRun: r.DryRun, Silent: []sdk.NodeID{"n1", "n2"},
		Known: []sdk.SegmentCopy{
			{Replica: sdk.ReplicaDetail{Node: "n2", State: "damaged", DurableEnd: 10}},
			{Replica: sdk.ReplicaDetail{Node: "n3", State: "restarted", DurableEnd: 240}},
		},
	}, nil
}
