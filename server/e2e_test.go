package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestCreateProduceFetch(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("orders", base.TopicConfig{})
	require.EqualValues(t, 0, n.mustProduce(ref, "a", "b"))
	require.EqualValues(t, 2, n.mustProduce(ref, "c"))
	f := n.fetch(ref, 0, 0)
	require.Equal(t, []string{"a", "b", "c"}, f.values)
	require.Equal(t, wire.FetchActive, f.State)
	require.EqualValues(t, 3, f.Commit)
	require.EqualValues(t, 3, f.Next)
	require.Equal(t, []string{"b", "c"}, n.fetch(ref, 1, 0).values, "from the middle of a batch")

	route := must[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Name: "orders"}).Topic
	require.Equal(t, ref.Topic, route.ID)
	require.Equal(t, []wire.NodeAddress{{ID: "n1", Address: n.Addr()}}, route.Nodes)
	require.Equal(t, []base.NodeID{"n1"}, route.Ranges[0].Active.Replicas)
	byID := must[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Topic: ref.Topic}).Topic
	require.Equal(t, route, byID)
}

func TestRollsThroughSmallSegments(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	body := strings.Repeat("x", 10_000)
	const batches = 60
	for i := range batches {
		require.EqualValues(t, i, n.mustProduce(ref, fmt.Sprintf("%d %s", i, body)))
	}
	values := n.readAll(ref, 0, batches)
	for i, v := range values {
		require.True(t, strings.HasPrefix(v, fmt.Sprintf("%d ", i)))
	}
	d := must[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "t"}).Topic
	require.Greater(t, len(d.Ranges[0].Segments), 8)
	require.Equal(t, base.CauseDataPressure, d.Ranges[0].Segments[0].Cause)
	require.EqualValues(t, batches, d.Summary.Records)
	loc := must[wire.LocateResponse](n, wire.KindLocate, wire.LocateRequest{Ref: ref, Offset: 3})
	require.Equal(t, base.StateSealed, loc.Segment.State)
	st := must[wire.ClusterStatusResponse](n, wire.KindClusterStatus, wire.ClusterStatusRequest{})
	require.Equal(t, 1, st.Topics)
	require.EqualValues(t, batches, st.Records)
	require.NotEmpty(t, st.Events)
}

func TestRestartKeepsEverything(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	first := makeBatch(t, 42, 0, "a", "b")
	_, err := n.produce(ref, first)
	require.NoError(t, err)
	cluster := n.id.Cluster
	n.restart()
	require.Equal(t, cluster, n.id.Cluster)
	require.EqualValues(t, 2, n.id.Boot)

	again, err := n.produce(ref, first)
	require.NoError(t, err)
	require.True(t, again.Duplicate, "dedupe survives a restart")
	require.EqualValues(t, 0, again.Base)
	next, err := n.produce(ref, makeBatch(t, 42, 2, "c"))
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Base)
	require.Equal(t, []string{"a", "b", "c"}, n.readAll(ref, 0, 3))
	d := must[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "t"}).Topic
	require.Equal(t, base.CauseRecovery, d.Ranges[0].Segments[0].Cause, "a leader leads for one process start")
	require.EqualValues(t, 2, d.Ranges[0].Segments[0].End)
}

func TestPowerLossKeepsWhatWasAcked(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem)
	ref := n.create("t", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	values := numbered(300)
	for i, v := range values {
		require.EqualValues(t, i, n.mustProduce(ref, v, strings.Repeat("y", 900))/2)
	}
	n.crash(mem)
	got := n.readAll(ref, 0, 600)
	for i, v := range values {
		require.Equal(t, v, got[2*i])
	}
	require.EqualValues(t, 600, n.mustProduce(ref, "after"))
}

func TestDeleteTopic(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a")
	del := wire.DeleteTopicRequest{RequestID: requestID(), Name: "t"}
	dry := del
	dry.DryRun = true
	plan := must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, dry)
	require.Equal(t, 1, plan.Segments)
	require.Positive(t, plan.Bytes)

	parked := make(chan fetched, 1)
	go func() { parked <- n.fetch(ref, 1, 15*time.Second) }()
	eventually(t, func() bool { return n.parked.len() == 1 })
	must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, del)
	require.Equal(t, base.CodeTopicNotFound, (<-parked).Code, "a waiting fetch hears of it")
	_, err := n.produce(ref, makeBatch(t, -1, -1, "b"))
	require.ErrorIs(t, err, base.CodeTopicNotFound)
	_, _, err = call[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Name: "t"})
	require.ErrorIs(t, err, base.CodeTopicNotFound)
	eventually(t, func() bool { return n.store.Stats().Segments == 0 })

	retry := must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, del)
	require.Equal(t, ref.Topic, retry.Topic, "whoever lost the first answer gets it again, not that there is no such topic")
	require.Equal(t, plan.Version, retry.Version)
	_, _, err = call[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: "t"})
	require.ErrorIs(t, err, base.CodeTopicNotFound)

	again := n.create("t", base.TopicConfig{})
	require.NotEqual(t, ref.Topic, again.Topic)
	require.EqualValues(t, 0, n.mustProduce(again, "new"))
	retry = must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, del)
	require.Equal(t, ref.Topic, retry.Topic, "a late retry does not take the new topic away")
	require.EqualValues(t, 1, n.mustProduce(again, "still there"))
}

func TestRetentionByBytes(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{SegmentBytes: base.MinSegmentBytes, RetentionBytes: 3 * base.MinSegmentBytes})
	for range 60 {
		n.mustProduce(ref, strings.Repeat("x", 10_000))
	}
	eventually(t, func() bool { return n.fetch(ref, 0, 0).Code == base.CodeOffsetOutOfRange })
	f := n.fetch(ref, 0, 0)
	require.Positive(t, f.Earliest, "the refusal names the earliest offset")
	a := must[wire.ListOffsetsResponse](n, wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{{Ref: ref, At: wire.OffsetEarliest}}})
	require.Equal(t, f.Earliest, a.Offsets[0].Offset)
	n.readAll(ref, f.Earliest, int(60-f.Earliest))
}

func TestListOffsets(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a", "b", "c")
	other := base.RangeRef{Topic: base.TopicID{9}, Range: 1}
	a := must[wire.ListOffsetsResponse](n, wire.KindListOffsets, wire.ListOffsetsRequest{Queries: []wire.OffsetQuery{
		{Ref: ref, At: wire.OffsetEarliest},
		{Ref: ref, At: wire.OffsetLatest},
		{Ref: ref, At: wire.OffsetAtTime, TimeMs: time.Now().Add(-time.Hour).UnixMilli()},
		{Ref: ref, At: wire.OffsetAtTime, TimeMs: time.Now().Add(time.Hour).UnixMilli()},
		{Ref: other, At: wire.OffsetLatest},
	}}).Offsets
	require.EqualValues(t, []int64{0, 3, 0, 3}, []int64{a[0].Offset, a[1].Offset, a[2].Offset, a[3].Offset})
	require.Positive(t, a[2].TimeMs)
	require.Zero(t, a[3].TimeMs, "nothing newer: the end")
	require.Equal(t, base.CodeNotReplica, a[4].Error.Code)
}

func TestLongPoll(t *testing.T) {
	t.Parallel()
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	poll := func(edit ...func(*wire.FetchRequest)) chan fetched {
		out := make(chan fetched, 1)
		go func() { out <- n.fetch(ref, 0, 15*time.Second, edit...) }()
		eventually(t, func() bool { return n.parked.len() == 1 })
		return out
	}
	out := poll()
	n.mustProduce(ref, "a")
	require.Equal(t, []string{"a"}, (<-out).values, "woken by produce")

	enough := poll(func(r *wire.FetchRequest) { r.MinBytes = 1000 })
	n.mustProduce(ref, strings.Repeat("b", 500))
	eventually(t, func() bool { return n.parked.len() == 1 })
	n.mustProduce(ref, strings.Repeat("c", 500))
	require.Len(t, (<-enough).values, 3, "min bytes are waited for")

	began := time.Now()
	f := n.fetch(ref, 3, 300*time.Millisecond)
	require.Empty(t, f.values)
	require.Equal(t, base.CodeOK, f.Code)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)

	// A connection that goes takes its waits along.
	gone := n.dial()
	_, err := gone.Go(wire.KindFetch, wire.Encode(wire.FetchRequest{MaxWaitMs: 15_000, MinBytes: 1, MaxBytes: 1, Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, Offset: 3, MaxBytes: 1}}}), nil, ignoreAnswer)
	require.NoError(t, err)
	eventually(t, func() bool { return n.parked.len() == 1 })
	require.NoError(t, gone.Close())
	eventually(t, func() bool { return n.parked.len() == 0 })

	last := poll(func(r *wire.FetchRequest) { r.Ranges[0].Offset = 3 })
	require.NoError(t, n.Server.Close())
	require.Equal(t, base.CodeOK, (<-last).Code, "woken by shutdown, with what there is")
	n.boot()
}

func TestFetchStopsAtItsBytesAndSpansSegments(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	for i := range 30 {
		n.mustProduce(ref, fmt.Sprintf("%d %s", i, strings.Repeat("x", 9_000)))
	}
	f := n.fetch(ref, 0, 0, func(r *wire.FetchRequest) { r.MaxBytes = 200_000 })
	require.Greater(t, len(f.values), 15, "one answer goes on into the next segment")
	require.LessOrEqual(t, f.PayloadLen, uint32(200_000))
	f = n.fetch(ref, 0, 0, func(r *wire.FetchRequest) { r.MaxBytes = 1 })
	require.Len(t, f.values, 1, "a batch larger than the limit comes all the same")
}

func TestSeenCommitIsMonotonic(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a")
	f := n.fetch(ref, 1, 0, func(r *wire.FetchRequest) { r.Ranges[0].SeenCommit = 5 })
	require.Equal(t, base.CodeBehind, f.Code)
	f = n.fetch(ref, 0, 0, func(r *wire.FetchRequest) { r.Ranges[0].SeenCommit = 5 })
	require.Equal(t, []string{"a"}, f.values, "what is proven is served")
}

func TestOffsetsOutOfRange(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a")
	require.Equal(t, base.CodeOffsetOutOfRange, n.fetch(ref, -1, 0).Code)
	require.NotEqual(t, base.CodeOK, n.fetch(ref, 7, 0).Code)
	require.Equal(t, base.CodeNotReplica, n.fetch(base.RangeRef{Topic: base.TopicID{9}, Range: 1}, 0, 0).Code)
}

func TestBadBatches(t *testing.T) {
	n := start(t, vfs.NewMem(), func(c *config.Config) { c.MaxRecordBytes = 10_000; c.BatchMaxBytes = 64 << 10 })
	ref := n.create("t", base.TopicConfig{})
	flipped := makeBatch(t, -1, -1, "a")
	flipped[len(flipped)-1] ^= 1
	_, err := n.produce(ref, flipped)
	require.ErrorIs(t, err, base.CodeCorruptBatch)
	_, err = n.produce(ref, makeBatch(t, -1, -1, strings.Repeat("x", 10_001+recordOverhead)))
	require.ErrorIs(t, err, base.CodeRecordTooLarge)
	_, err = n.produce(ref, makeBatch(t, -1, -1, strings.Repeat("x", 10_000)))
	require.NoError(t, err)
	many := make([]string, 20)
	for i := range many {
		many[i] = strings.Repeat("x", 9_000)
	}
	_, err = n.produce(ref, makeBatch(t, -1, -1, many...))
	require.Error(t, err)
	_, err = n.produce(ref, nil)
	require.ErrorIs(t, err, base.CodeCorruptBatch)
	_, _, err = call[wire.ProduceResponse](n, wire.KindProduce, wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, Codec: uint8(header.LZ4)}, makeBatch(t, -1, -1, "a"))
	require.ErrorIs(t, err, base.CodeCorruptBatch)
	require.EqualValues(t, 1, n.mustProduce(ref, "the connection stays"))
}

func TestCreateTopicRefusals(t *testing.T) {
	n := start(t, vfs.NewMem())
	for _, tc := range []struct {
		name string
		req  wire.CreateTopicRequest
		code base.Code
	}{
		{"empty name", wire.CreateTopicRequest{}, base.CodeInvalidTopicName},
		{"internal", wire.CreateTopicRequest{Name: "__offsets"}, base.CodeInvalidTopicName},
		{"slash", wire.CreateTopicRequest{Name: "a/b"}, base.CodeInvalidTopicName},
		{"factor", wire.CreateTopicRequest{Name: "t", Config: base.TopicConfig{ReplicationFactor: 3}}, base.CodeNotEnoughNodes},
		{"three ranges", wire.CreateTopicRequest{Name: "t", Ranges: 3}, base.CodeInvalidArgument},
		{"less than no ranges", wire.CreateTopicRequest{Name: "t", Ranges: -4}, base.CodeInvalidArgument},
		{"keyed", wire.CreateTopicRequest{Name: "t", Config: base.TopicConfig{Keyed: true}}, base.CodeInvalidArgument},
		{"split twice", wire.CreateTopicRequest{Name: "t", SplitAt: []keyspace.Hash{5, 5}}, base.CodeInvalidArgument},
	} {
		tc.req.RequestID = requestID()
		_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, tc.req)
		require.ErrorIs(t, err, tc.code, tc.name)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.HintText())
	}
	_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: "t", Config: base.TopicConfig{ReplicationFactor: 3}})
	require.Regexp(t, `3.*1`, err.Error(), "both numbers")

	under := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{
		RequestID: requestID(), Name: "under", Config: base.TopicConfig{ReplicationFactor: 3, MinReplicas: 1}, AllowUnderReplicated: true,
	})
	require.Equal(t, 3, under.Topic.Summary.ReplicationFactor)

	req := wire.CreateTopicRequest{RequestID: requestID(), Name: "twice", Ranges: 4}
	one := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	two := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.Equal(t, one.Topic.Summary.ID, two.Topic.Summary.ID, "a retry is the same topic")
	require.Len(t, two.Topic.Ranges, 4)
	req.RequestID = requestID()
	_, _, err = call[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.ErrorIs(t, err, base.CodeTopicExists)

	dry := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: "dry", DryRun: true})
	require.True(t, dry.DryRun)
	_, _, err = call[wire.RouteResponse](n, wire.KindRoute, wire.RouteRequest{Name: "dry"})
	require.ErrorIs(t, err, base.CodeTopicNotFound)
}

func TestAlterTopic(t *testing.T) {
	n := start(t, vfs.NewMem())
	n.create("t", base.TopicConfig{})
	a := must[wire.AlterTopicResponse](n, wire.KindAlterTopic, wire.AlterTopicRequest{RequestID: requestID(), Name: "t", Set: map[string]string{"retention": "1h"}})
	require.Equal(t, "1h", a.After["retention"])
	_, _, err := call[wire.AlterTopicResponse](n, wire.KindAlterTopic, wire.AlterTopicRequest{RequestID: requestID(), Name: "t", ExpectVersion: 1, Set: map[string]string{"retention": "2h"}})
	require.ErrorIs(t, err, base.CodePreconditionFailed)
	_, _, err = call[wire.AlterTopicResponse](n, wire.KindAlterTopic, wire.AlterTopicRequest{RequestID: requestID(), Name: "t", Set: map[string]string{"no_such": "2h"}})
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	d := must[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "t"}).Topic
	require.Equal(t, time.Hour, d.Config.Retention)
}

func TestListTopicsInPages(t *testing.T) {
	n := start(t, vfs.NewMem())
	for i := range 25 {
		n.create(fmt.Sprintf("topic-%02d", i), base.TopicConfig{})
	}
	var names []string
	req := wire.ListTopicsRequest{Limit: 10}
	for pages := 1; ; pages++ {
		page := must[wire.ListTopicsResponse](n, wire.KindListTopics, req)
		for _, s := range page.Topics {
			names = append(names, s.Name)
		}
		if page.Next == "" {
			require.Equal(t, 3, pages)
			break
		}
		req.After = page.Next
	}
	require.Len(t, names, 25)
	require.IsIncreasing(t, names)
	glob := must[wire.ListTopicsResponse](n, wire.KindListTopics, wire.ListTopicsRequest{Glob: "topic-1*"})
	require.Len(t, glob.Topics, 10)
}

func TestOpenProducerAndItsState(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	one := must[wire.OpenProducerResponse](n, wire.KindOpenProducer, wire.OpenProducerRequest{RequestID: requestID(), Topic: ref.Topic, Name: "p"})
	two := must[wire.OpenProducerResponse](n, wire.KindOpenProducer, wire.OpenProducerRequest{RequestID: requestID(), Topic: ref.Topic, Name: "p"})
	require.Equal(t, one.ProducerID, two.ProducerID)
	require.Equal(t, one.Epoch+1, two.Epoch)
	_, err := n.produce(ref, makeBatch(t, 7, 0, "a", "b"))
	require.NoError(t, err)
	st := must[wire.ProducerStateResponse](n, wire.KindProducerState, wire.ProducerStateRequest{Ref: ref, ProducerID: 7})
	require.True(t, st.Known)
	require.Equal(t, []wire.ProducerBatch{{BaseSequence: 0, LastSequence: 1, Base: 0}}, st.Batches)
}

func TestClusterOnOnePage(t *testing.T) {
	n := start(t, vfs.NewMem())
	n.create("t", base.TopicConfig{})
	h := must[wire.ClusterHealthResponse](n, wire.KindClusterHealth, wire.ClusterHealthRequest{})
	require.Equal(t, wire.HealthPass, h.Worst(), "%+v", h.Checks)
	require.Equal(t, 1, h.Nodes)
	d := must[wire.DescribeNodeResponse](n, wire.KindDescribeNode, wire.DescribeNodeRequest{})
	require.Equal(t, base.NodeID("n1"), d.Status.ID)
	require.Equal(t, n.Addr(), d.Status.Address)
	require.Equal(t, 1, d.Status.Leaders)
	require.Positive(t, d.Counters[`eastguard_requests_total{kind="create_topic"}`])
	_, _, err := call[wire.DescribeNodeResponse](n, wire.KindDescribeNode, wire.DescribeNodeRequest{Node: "n9"})
	require.ErrorIs(t, err, base.CodeNodeNotFound)
	_, _, err = call[wire.PingResponse](n, wire.KindLatestByKey, wire.PingRequest{})
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	require.EqualValues(t, 1, must[wire.PingResponse](n, wire.KindPing, wire.PingRequest{}).Boot)
}

// Whatever comes in on the port: that connection ends or that request fails, and nothing else notices.
func TestGarbageOnThePort(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	huge := wire.FrameHeader{Version: 1, Kind: wire.KindProduce, MessageLen: math.MaxUint32, PayloadLen: math.MaxUint32}.Append(nil)
	half := wire.FrameHeader{Version: 1, Kind: wire.KindHello, MessageLen: 100}.Append(nil)
	for _, junk := range [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n"), make([]byte, 1000), huge, half, {0x45}, nil} {
		c, err := net.Dial("tcp", n.Addr())
		require.NoError(t, err)
		_, err = c.Write(junk)
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.Copy(io.Discard, c)
		require.False(t, errors.Is(err, context.DeadlineExceeded), "the broker must end it")
		require.NoError(t, c.Close())
	}
	_, _, err := call[wire.PingResponse](n, wire.Kind(999), wire.PingRequest{})
	require.ErrorIs(t, err, base.CodeUnknownKind)
	_, _, err = call[wire.RouteResponse](n, wire.KindRoute, wire.PingResponse{Node: "x", TimeMs: 3})
	require.Error(t, err)
	require.EqualValues(t, 0, n.mustProduce(ref, "the first connection stays"))
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 2*time.Millisecond)
}

// A deleted topic is there to be asked about by its id until its files have gone, whatever its name means by then.
func TestADeletedTopicIsKnownUntilItsFilesAreGone(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, fault)
	ref := n.create("t", base.TopicConfig{})
	n.mustProduce(ref, "a")
	release := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn)
	fault.Add(vfs.Rule{Ops: vfs.OpStat | vfs.OpRemove, Path: "/data/topics/*", Before: func(vfs.Call) { <-release }})
	state := func() (base.State, error) {
		req := wire.DescribeTopicRequest{Name: "t", Topic: ref.Topic}
		d, _, err := call[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, req)
		return d.Topic.Summary.State, err
	}
	must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: "t"})
	s, err := state()
	require.NoError(t, err)
	require.Equal(t, base.StateDeleting, s)
	n.create("t", base.TopicConfig{})
	s, err = state()
	require.NoError(t, err)
	require.Equal(t, base.StateDeleting, s)
	_, _, err = call[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, wire.DescribeTopicRequest{Topic: ref.Topic})
	require.ErrorIs(t, err, base.CodeTopicNotFound)
	goOn()
	eventually(t, func() bool {
		_, err := state()
		return base.CodeOf(err) == base.CodePreconditionFailed
	})
}
