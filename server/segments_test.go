package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

func states(d wire.SegmentDetail) (list []string) {
	for _, r := range d.Replicas {
		list = append(list, r.State)
	}
	return list
}

// append produces values to a topic of one range, wherever its leader is by now.
func (c *trio) append(name string, ref base.RangeRef, values ...string) {
	c.t.Helper()
	for _, v := range values {
		soon(c.t, "the record is taken", func() bool {
			leader, _ := c.roles(name)
			_, err := leader.produce(ref, makeBatch(c.t, -1, -1, v))
			if err != nil {
				require.True(c.t, base.CodeOf(err).Info().Retryable, err)
			}
			return err == nil
		})
	}
}

// What an operator sees of segments and can do with them, by any node.
func TestSegments(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, _, _ := c.topic("orders", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	for range 9 {
		c.append("orders", ref, strings.Repeat("x", 300_000))
	}
	n1, n2 := c.nodes["n1"], c.nodes["n2"]
	n1.create("clicks", base.TopicConfig{ReplicationFactor: 1})

	var list []wire.SegmentRow
	t.Run("list", func(t *testing.T) {
		all := must[wire.ListSegmentsResponse](n1, wire.KindListSegments, wire.ListSegmentsRequest{})
		require.Empty(t, all.Missing)
		require.False(t, all.More)
		list = must[wire.ListSegmentsResponse](n2, wire.KindListSegments, wire.ListSegmentsRequest{Topic: "orders"}).Segments
		require.Len(t, all.Segments, len(list)+1)
		require.Greater(t, len(list), 2)
		next := int64(0)
		for _, row := range list {
			require.Equal(t, "orders", row.Topic)
			require.Equal(t, 3, row.ReplicationFactor)
			require.Equal(t, next, row.Segment.Base)
			require.Equal(t, 3, row.Copies, "%+v", row.Segment)
			next = row.Segment.End
		}
		require.EqualValues(t, 9, next)
		pageBySegment(t, n1, all.Segments)
		for state, want := range map[string]int{"active": 2, "sealed": len(list) - 1, "under-replicated": 0} {
			got := must[wire.ListSegmentsResponse](n1, wire.KindListSegments, wire.ListSegmentsRequest{State: state})
			require.Len(t, got.Segments, want, state)
		}
		rejected(n1, base.CodeInvalidArgument, wire.KindListSegments, wire.ListSegmentsRequest{State: "tired"})
		rejected(n1, base.CodeInvalidArgument, wire.KindListSegments, wire.ListSegmentsRequest{Range: 1})
		rejected(n1, base.CodeTopicNotFound, wire.KindListSegments, wire.ListSegmentsRequest{Topic: "nobody's"})
		rejected(n1, base.CodeRangeNotFound, wire.KindListSegments, wire.ListSegmentsRequest{Topic: "orders", Range: 7})
	})
	first, last := list[0].Segment, list[len(list)-1].Segment
	t.Run("describe", func(t *testing.T) {
		d := must[wire.DescribeSegmentResponse](n1, wire.KindDescribeSegment, wire.DescribeSegmentRequest{Segment: first.ID})
		require.Equal(t, list[1].Segment.ID, d.Next)
		require.Len(t, d.Copies, 3)
		require.Len(t, d.Nodes, 3)
		for _, cp := range d.Copies {
			require.Equal(t, wire.ReplicaInSync, cp.Replica.State)
			require.Equal(t, first.End, cp.Replica.DurableEnd)
			require.Equal(t, first.End, cp.Commit)
			require.NotZero(t, cp.CRC)
			require.Equal(t, d.Copies[0].CRC, cp.CRC, "every copy is the same to the byte")
			require.Equal(t, d.Copies[0].Bytes, cp.Bytes)
			require.Empty(t, cp.Role)
			require.True(t, cp.Fenced)
		}
		d = must[wire.DescribeSegmentResponse](n2, wire.KindDescribeSegment, wire.DescribeSegmentRequest{Segment: last.ID})
		require.Equal(t, "leader", d.Copies[0].Role)
		require.Equal(t, []string{wire.ReplicaLeader, wire.ReplicaInSync, wire.ReplicaInSync}, states(d.Row.Segment))
		require.Zero(t, d.Copies[0].CRC)
		require.False(t, d.Copies[0].Fenced)
		rejected(n1, base.CodeSegmentNotFound, wire.KindDescribeSegment, wire.DescribeSegmentRequest{})
		rejected(n1, base.CodeSegmentNotFound, wire.KindDescribeSegment, wire.DescribeSegmentRequest{Segment: 4001})
	})
	t.Run("seal", func(t *testing.T) { c.sealByHand("orders", ref, last) })
	t.Run("health", func(t *testing.T) {
		h := must[wire.ClusterHealthResponse](n1, wire.KindClusterHealth, wire.ClusterHealthRequest{})
		for _, check := range h.Checks {
			require.Equal(t, wire.HealthPass, check.Result, "%s %s: %s", check.ID, check.Name, check.Detail)
		}
		s := must[wire.ClusterStatusResponse](n1, wire.KindClusterStatus, wire.ClusterStatusRequest{})
		require.Zero(t, s.UnderReplicated)
	})
	t.Run("a node goes and comes back", func(t *testing.T) { c.restartOne("orders", first.ID) })
}

// pageBySegment lists everything a row at a time.
func pageBySegment(t *testing.T, n *node, want []wire.SegmentRow) {
	var got []base.SegmentID
	for after := base.SegmentID(0); ; {
		page := must[wire.ListSegmentsResponse](n, wire.KindListSegments, wire.ListSegmentsRequest{After: after, Limit: 1})
		for _, row := range page.Segments {
			got = append(got, row.Segment.ID)
		}
		if !page.More {
			break
		}
		require.Len(t, page.Segments, 1)
		after = page.Segments[0].Segment.ID
	}
	for i, row := range want {
		require.Equal(t, row.Segment.ID, got[i])
	}
	require.Len(t, got, len(want))
}

func (c *trio) sealByHand(name string, ref base.RangeRef, seg wire.SegmentDetail) {
	n := c.nodes["n3"]
	plan := must[wire.SealSegmentResponse](n, wire.KindSealSegment, wire.SealSegmentRequest{Segment: seg.ID, DryRun: true})
	require.Equal(c.t, seg.End, plan.Boundary)
	require.True(c.t, plan.DryRun)
	req := wire.SealSegmentRequest{RequestID: requestID(), Segment: seg.ID, Reason: "before the upgrade"}
	sealed := must[wire.SealSegmentResponse](n, wire.KindSealSegment, req)
	require.Equal(c.t, name, sealed.Topic)
	require.Equal(c.t, seg.ID, sealed.Old)
	require.Equal(c.t, seg.End, sealed.Boundary)
	require.Equal(c.t, base.CauseOperator, sealed.Cause)
	require.NotZero(c.t, sealed.New)
	require.NotEmpty(c.t, sealed.Replicas)
	again := must[wire.SealSegmentResponse](c.nodes["n1"], wire.KindSealSegment, req)
	require.Equal(c.t, sealed, again, "a second try is told what the first one did")
	c.append(name, ref, "behind it")

	older := must[wire.ListSegmentsResponse](n, wire.KindListSegments, wire.ListSegmentsRequest{Topic: name}).Segments[0].Segment.ID
	e := rejected(n, base.CodePreconditionFailed, wire.KindSealSegment, wire.SealSegmentRequest{RequestID: requestID(), Segment: older})
	require.Contains(c.t, e.HintText(), sealed.New.String())
	rejected(n, base.CodeInvalidArgument, wire.KindForceSealSegment, wire.ForceSealSegmentRequest{RequestID: requestID(), Segment: sealed.New})
	rejected(n, base.CodeSegmentNotFound, wire.KindSealSegment, wire.SealSegmentRequest{RequestID: requestID(), Segment: 4001})
	soon(c.t, "the journal of the shard's leader tells why", func() bool {
		for _, n := range c.nodes {
			for _, ev := range n.events(200) {
				if ev.Type == "SEGMENT_SEALED" && strings.Contains(ev.Detail, `reason="before the upgrade"`) {
					require.Contains(c.t, ev.Detail, "replicas=")
					return true
				}
			}
		}
		return false
	})
}

// restartOne stops a node and starts it again: meanwhile its copies are missing, and afterwards what it holds of sealed
// segments counts again at once.
func (c *trio) restartOne(name string, sealed base.SegmentID) {
	t := c.t
	leader, followers := c.roles(name)
	gone := followers[0].id.Node
	i := int(gone[1] - '1')
	// The shards may have to find other leaders first, and on a busy machine that takes its time.
	later := func(what string, ok func() bool) {
		t.Helper()
		require.Eventually(t, ok, patience, 50*time.Millisecond, what)
	}
	copies := func() (int, []string) {
		d, _, err := call[wire.DescribeSegmentResponse](leader, wire.KindDescribeSegment, wire.DescribeSegmentRequest{Segment: sealed})
		if err != nil {
			return -1, nil
		}
		return d.Row.Segment.Copies, states(d.Row.Segment)
	}
	c.cables[gone].pull()
	later("its copy does not answer", func() bool {
		n, says := copies()
		return n == 2 && slices.Contains(says, wire.ReplicaNoAnswer)
	})
	later("it counts as dead", func() bool {
		list, _, err := call[wire.ListSegmentsResponse](leader, wire.KindListSegments, wire.ListSegmentsRequest{Topic: name, State: "under-replicated"})
		return err == nil && len(list.Segments) > 0
	})
	h := must[wire.ClusterHealthResponse](leader, wire.KindClusterHealth, wire.ClusterHealthRequest{})
	for _, check := range h.Checks {
		if check.ID == "EG140" {
			require.NotEqual(t, wire.HealthPass, check.Result)
			require.Contains(t, check.Detail, name+"/r1 s")
		}
	}
	c.all[i].stop()
	c.cables[gone].putBack()
	c.all[i].start()
	later("its sealed copies count again", func() bool { n, _ := copies(); return n == 3 })
}

// A segment whose only holder is lost ends where an operator says that it may, and whoever had read beyond is told.
func TestForcedSeal(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref := c.nodes["n1"].create("orders", base.TopicConfig{ReplicationFactor: 1})
	route := func(n *node) *wire.SegmentRoute {
		return must[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Name: "orders"}).Topic.Ranges[0].Active
	}
	seg := route(c.nodes["n1"])
	gone := seg.Replicas[0]
	c.nodes[gone].mustProduce(ref, numbered(5)...)
	stays := c.nodes["n1"]
	if gone == "n1" {
		stays = c.nodes["n2"]
	}
	c.cables[gone].pull()
	c.all[gone[1]-'1'].stop()

	soon(t, "nobody knows how it ends", func() bool {
		h := must[wire.ClusterHealthResponse](stays, wire.KindClusterHealth, wire.ClusterHealthRequest{})
		for _, check := range h.Checks {
			if check.ID == "EG141" && check.Result == wire.HealthFail {
				require.Contains(t, check.Detail, "orders/r1 "+seg.ID.String())
				return len(h.Checks) > 0
			}
		}
		return false
	})
	d := must[wire.DescribeTopicResponse](stays, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "orders"}).Topic
	require.NotEmpty(t, d.Ranges[0].Segments[0].Waits)

	force := wire.ForceSealSegmentRequest{RequestID: requestID(), Segment: seg.ID, Reason: "n3's disk is gone", DryRun: true}
	plan := must[wire.SealSegmentResponse](stays, wire.KindForceSealSegment, force)
	require.True(t, plan.Lossy)
	require.Equal(t, []base.NodeID{gone}, plan.Silent)
	require.Empty(t, plan.Known)
	require.Zero(t, plan.Boundary)
	require.Equal(t, seg.ID, route(stays).ID, "it was only looked at")

	force.DryRun = false
	e := rejected(stays, base.CodeInvalidArgument, wire.KindForceSealSegment, force)
	require.Contains(t, e.HintText(), "--accept-data-loss")
	force.AcceptDataLoss = true
	sealed := must[wire.SealSegmentResponse](stays, wire.KindForceSealSegment, force)
	require.Zero(t, sealed.Boundary)
	require.True(t, sealed.Lossy)
	require.NotContains(t, sealed.Replicas, gone)

	next := c.nodes[sealed.Replicas[0]]
	soon(t, "the range goes on", func() bool {
		_, err := next.produce(ref, makeBatch(t, -1, -1, "the first of another story"))
		return err == nil
	})
	var f fetched
	soon(t, "who had read beyond is told", func() bool {
		f = next.fetch(ref, 5, 100*time.Millisecond)
		return f.Code == base.CodeTruncated
	})
	require.Zero(t, f.End)
	f = next.fetch(ref, 0, 0, func(r *wire.FetchRequest) { r.Ranges[0].SeenCommit = 5 })
	require.Equal(t, []string{"the first of another story"}, f.values, "below the cut the log is what it is now")
	d = must[wire.DescribeTopicResponse](stays, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "orders"}).Topic
	require.Equal(t, 1, d.Losses)
	require.Equal(t, "n3's disk is gone", d.Lost[0].Forced.Reason)
	require.Equal(t, []base.NodeID{gone}, d.Lost[0].Forced.Silent)
}
