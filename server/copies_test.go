package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// disk is the disk of node n of a test.
func disk(n byte) base.DiskID { return base.DiskID{n} }

func replicas(nodes ...byte) (list []base.Replica) {
	for _, n := range nodes {
		list = append(list, base.Replica{Node: base.NodeID([]byte{'n', '0' + n}), Disk: disk(n)})
	}
	return list
}

func TestReplicaStates(t *testing.T) {
	active := &meta.Segment{ID: 7, State: base.StateActive, Base: 100, End: meta.NoEnd, Replicas: replicas(1, 2, 3), Boots: []uint64{4, 4, 0}}
	sealed := &meta.Segment{ID: 5, State: base.StateSealed, Base: 0, End: 100, Replicas: replicas(1, 2, 3), Boots: []uint64{1, 1, 1}}
	empty := &meta.Segment{ID: 6, State: base.StateSealed, Base: 100, End: 100, Replicas: replicas(1, 2, 3)}
	whole := func(n byte, boot uint64, end int64) holding {
		return holding{disk: disk(n), boot: boot, held: true, commit: end, durable: end}
	}
	for name, c := range map[string]struct {
		seg   *meta.Segment
		i     int
		says  holding
		want  string
		holds int64
	}{
		"leader":                        {active, 0, whole(1, 4, 130), wire.ReplicaLeader, 130},
		"follower":                      {active, 1, whole(2, 4, 120), wire.ReplicaInSync, 120},
		"follower that has not opened":  {active, 1, holding{disk: disk(2), boot: 4}, wire.ReplicaInSync, 100},
		"follower of unknown start":     {active, 2, whole(3, 9, 120), wire.ReplicaInSync, 120},
		"follower that started anew":    {active, 1, whole(2, 5, 120), wire.ReplicaRestarted, 120},
		"leader that started anew":      {active, 0, whole(1, 5, 120), wire.ReplicaRestarted, 120},
		"another disk":                  {active, 1, whole(3, 4, 120), wire.ReplicaMissing, 0},
		"damaged":                       {active, 1, holding{disk: disk(2), boot: 4, held: true, damaged: true, durable: 110}, wire.ReplicaDamaged, 110},
		"sealed":                        {sealed, 0, whole(1, 9, 100), wire.ReplicaInSync, 100},
		"sealed, and more than its end": {sealed, 1, whole(2, 9, 104), wire.ReplicaInSync, 104},
		"short of the end":              {sealed, 1, whole(2, 1, 99), wire.ReplicaBehind, 99},
		"no copy of a sealed one":       {sealed, 2, holding{disk: disk(3), boot: 1}, wire.ReplicaMissing, 0},
		"nothing of an empty one":       {empty, 2, holding{disk: disk(3), boot: 1}, wire.ReplicaInSync, 100},
	} {
		d := replicaDetail(c.seg, c.i, c.says, true)
		require.Equal(t, c.want, d.State, name)
		require.Equal(t, c.holds, d.DurableEnd, name)
	}
	require.Equal(t, wire.ReplicaNoAnswer, replicaDetail(active, 1, holding{}, false).State)

	x := extents{{7, "n1"}: whole(1, 4, 130), {7, "n2"}: whole(2, 5, 120)}
	d := segmentDetail(active, x)
	require.Equal(t, []string{wire.ReplicaLeader, wire.ReplicaRestarted, wire.ReplicaNoAnswer}, []string{d.Replicas[0].State, d.Replicas[1].State, d.Replicas[2].State})
	require.Equal(t, 1, d.Copies)
	require.EqualValues(t, 130, d.End)
	require.EqualValues(t, 30, d.Records)
}

// Of an active segment the leader's word counts, else what the best of its followers can prove.
func TestExtentOfAnActiveSegment(t *testing.T) {
	seg := &meta.Segment{ID: 7, State: base.StateActive, Base: 100, End: meta.NoEnd, Replicas: replicas(1, 2, 3)}
	at := func(n byte, end int64) holding { return holding{disk: disk(n), held: true, commit: end} }
	for name, c := range map[string]struct {
		x     extents
		end   int64
		known bool
	}{
		"nobody":                {nil, 100, false},
		"the leader":            {extents{{7, "n1"}: at(1, 110), {7, "n2"}: at(2, 120)}, 110, true},
		"a leader that opens":   {extents{{7, "n1"}: {disk: disk(1)}}, 100, true},
		"followers":             {extents{{7, "n2"}: at(2, 108), {7, "n3"}: at(3, 109)}, 109, true},
		"followers with none":   {extents{{7, "n2"}: {disk: disk(2)}}, 100, false},
		"a leader's other disk": {extents{{7, "n1"}: at(9, 150), {7, "n3"}: at(3, 109)}, 109, true},
	} {
		e := c.x.of(seg)
		require.Equal(t, c.end, e.end, name)
		require.Equal(t, c.known, e.known, name)
	}
}

func TestLivingCopies(t *testing.T) {
	view := threeNodes()
	for i := range view.Nodes {
		view.Nodes[i].Disk, view.Nodes[i].Boot = disk(byte(i+1)), 4
	}
	view.Nodes[2].Liveness = topology.Dead
	alive := livingDisks(view)
	seg := &meta.Segment{State: base.StateActive, Replicas: replicas(1, 2, 3), Boots: []uint64{4, 3, 4}}
	require.Equal(t, 1, alive.copies(seg), "one is dead, one has started anew")
	seg.State = base.StateSealed
	require.Equal(t, 2, alive.copies(seg), "what a node has sealed it keeps over a start")
	seg.Replicas[0].Disk = disk(9)
	require.Equal(t, 1, alive.copies(seg))

	topic := &meta.Topic{Config: base.TopicConfig{ReplicationFactor: 3}}
	seg.End = 5
	require.Equal(t, 2, alive.lacks(topic, seg))
	seg.End = 0
	require.Zero(t, alive.lacks(topic, seg), "nothing was written to it")
}

func TestHealthOfCopies(t *testing.T) {
	seg := func(id int) placed {
		t := &meta.Topic{Name: "orders", Config: base.TopicConfig{ReplicationFactor: 3}}
		return placed{&meta.Segment{ID: base.SegmentID(id)}, t, &meta.Range{ID: 9}}
	}
	sums := []shardSum{{Segments: 5}, {Segments: 30}}
	for i := range 5 {
		sums[0].Short.add(seg(i), 0)
	}
	c := checkCopiesAlone(sums, nil)
	require.Equal(t, wire.HealthPass, c.Result)
	require.Equal(t, "0 of 35 segments are short of copies", c.Detail)
	c = checkCopies(sums, nil, reports(func(*wire.NodeStatus) {}, func(n *wire.NodeStatus) { n.Short = 2 }))
	require.Equal(t, wire.HealthWarn, c.Result)
	require.Equal(t, "0 of 35 segments are short of copies; 2 copies lack a part on n2", c.Detail)

	for i := range 20 {
		sums[1].Short.add(seg(100+i), 1)
	}
	require.Len(t, sums[1].Short.Named, mostShort)
	sums[0].Short.add(seg(4), 1)
	c = checkCopiesAlone(sums, nil)
	require.Equal(t, wire.HealthWarn, c.Result)
	require.Contains(t, c.Detail, "21 of 35 segments are short of copies: orders/r9 s4 (2 of 3), orders/r9 s100 (2 of 3), ")
	require.Contains(t, c.Detail, " …")
	require.NotEmpty(t, c.Next)

	sums[1].Short.add(seg(881), 3)
	c = checkCopiesAlone(sums, nil)
	require.Equal(t, wire.HealthFail, c.Result)
	require.Contains(t, c.Detail, "1 segment has no living copy; 22 of 35 segments are short of copies: orders/r9 s881 (0 of 3), orders/r9 s4 ")
}

func TestHealthOfGaps(t *testing.T) {
	sums := make([]shardSum, 2)
	sealed := func(sum *shardSum, n int, gapMs int64) {
		seg := &meta.Segment{ID: 881, State: base.StateSealed, GapMs: gapMs, Cause: base.CauseReplicaFailure}
		for range n {
			sum.Gaps.add(placed{seg, &meta.Topic{Name: "orders"}, &meta.Range{ID: 9}})
		}
	}
	require.Equal(t, wire.HealthPass, checkGaps(sums, nil).Result, "nothing was sealed")
	sealed(&sums[0], 150, 90)
	require.Equal(t, wire.HealthPass, checkGaps(sums, nil).Result)
	sealed(&sums[1], 49, 0)
	sealed(&sums[1], 1, 3400)
	c := checkGaps(sums, nil)
	require.Equal(t, wire.HealthPass, c.Result, "one of 200 is not the 99th percentile")
	require.Equal(t, "200 seals in the last 10 minutes, 1 of them with a longer gap; the longest: 3.4 s (orders/r9 s881, REPLICA_FAILURE)", c.Detail)
	sealed(&sums[1], 2, 1001)
	c = checkGaps(sums, nil)
	require.Equal(t, wire.HealthWarn, c.Result)
	require.NotEmpty(t, c.Next)
}
