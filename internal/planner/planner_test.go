package planner

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

func disk(n base.NodeID) base.DiskID { return base.DiskID{n[len(n)-1]} }

func replica(n base.NodeID) base.Replica { return base.Replica{Node: n, Disk: disk(n)} }

func node(id base.NodeID, rack string, leading int) topology.Node {
	return topology.Node{ID: id, Disk: disk(id), Rack: rack, Leading: leading, Liveness: topology.Alive, Admitted: true, Boot: 1}
}

func view(nodes ...topology.Node) topology.View { return topology.View{Version: 1, Nodes: nodes} }

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, n)) }

func TestPlacesSpreadLeaders(t *testing.T) {
	v := view(node("n1", "a", 0), node("n2", "b", 0), node("n3", "c", 0))
	leads := map[base.NodeID]int{}
	for seed := range uint64(60) {
		p, err := NewPlacer(v, 0, seeded(seed)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 3})
		require.NoError(t, err)
		require.Len(t, p.Replicas, 3)
		leads[p.Replicas[0].Node]++
	}
	require.Len(t, leads, 3)
	_, err := NewPlacer(v, 0, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 4}, Least: 4})
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
}

func TestPlaceSpreadsOverRacks(t *testing.T) {
	v := view(node("n1", "a", 0), node("n2", "a", 0), node("n3", "b", 0), node("n4", "c", 90))
	for seed := range uint64(50) {
		p, err := NewPlacer(v, 0, seeded(seed)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2})
		require.NoError(t, err)
		racks := map[string]bool{}
		for _, r := range p.Replicas {
			n, _ := v.Node(r.Node)
			racks[n.Rack] = true
			require.Equal(t, n.Disk, r.Disk)
		}
		require.Len(t, racks, 3, "seed %d: %v", seed, p.Explain())
	}
}

func TestPlaceFallsBackToAUsedRack(t *testing.T) {
	p, err := NewPlacer(view(node("n1", "a", 0), node("n2", "a", 0)), 0, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 2}, Least: 2})
	require.NoError(t, err)
	require.Len(t, p.Replicas, 2)
	require.Contains(t, strings.Join(p.Explain(), "; "), "although its rack or label is used already")
}

func TestPlaceMayBeSmallerThanTheFactorNeverThanTheLeast(t *testing.T) {
	down := node("n2", "", 0)
	down.Liveness = topology.Dead
	v := view(node("n1", "", 0), down)
	p, err := NewPlacer(v, 0, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 1})
	require.NoError(t, err)
	require.Equal(t, []base.Replica{replica("n1")}, p.Replicas)
	require.Contains(t, p.Explain(), "n2: not considered, it is dead")
	_, err = NewPlacer(v, 0, seeded(1)).Place(Want{Config: base.TopicConfig{ReplicationFactor: 3}, Least: 2})
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
}

func TestPlaceIsEvenWithinOnePlan(t *testing.T) {
	v := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0), node("n4", "", 0))
	placer := NewPlacer(v, 0, seeded(7))
	count := map[base.NodeID]int{}
	for range 400 {
		p, err := placer.Place(Want{Config: base.TopicConfig{ReplicationFactor: 1}, Least: 1})
		require.NoError(t, err)
		count[p.Replicas[0].Node]++
	}
	for n, c := range count {
		require.InDelta(t, 100, c, 15, n)
	}
}

func TestPlaceIsAFunctionOfItsSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v topology.View
		for _, id := range []base.NodeID{"n1", "n2", "n3", "n4", "n5"} {
			n := node(id, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "rack"), rapid.IntRange(0, 9).Draw(t, "leading"))
			n.Slow = rapid.Bool().Draw(t, "slow")
			v.Nodes = append(v.Nodes, n)
		}
		c := base.TopicConfig{ReplicationFactor: rapid.IntRange(1, 5).Draw(t, "factor")}
		seed := rapid.Uint64().Draw(t, "seed")
		a, errA := NewPlacer(v, 0, seeded(seed)).Place(Want{Config: c, Least: 1})
		b, errB := NewPlacer(v, 0, seeded(seed)).Place(Want{Config: c, Least: 1})
		require.Equal(t, a, b)
		require.Equal(t, errA == nil, errB == nil)
		taken := map[base.NodeID]bool{}
		for _, r := range a.Replicas {
			n, _ := v.Node(r.Node)
			require.Empty(t, n.Unfit())
			require.False(t, taken[r.Node])
			taken[r.Node] = true
		}
	})
}

func TestDecideEnd(t *testing.T) {
	extent := func(n base.NodeID, end int64, unbroken bool) meta.FenceAnswer {
		return meta.FenceAnswer{Segment: 5, Replica: replica(n), Kind: meta.Extent, End: end, Unbroken: unbroken}
	}
	with := func(a meta.FenceAnswer, f func(*meta.FenceAnswer)) meta.FenceAnswer { f(&a); return a }
	three := []base.Replica{replica("n1"), replica("n2"), replica("n3")}
	alive := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0))
	outN2N3 := view(node("n1", "", 0), node("n2", "", 0), node("n3", "", 0))
	outN2N3.Nodes[1].Standing, outN2N3.Nodes[2].Standing = topology.Out, topology.Out
	for name, c := range map[string]struct {
		set     []base.Replica
		answers []meta.FenceAnswer
		view    topology.View
		end     int64 // -1: not decided
	}{
		"unbroken: the minimum":                  {three, []meta.FenceAnswer{extent("n1", 120, true), extent("n2", 110, true), extent("n3", 115, true)}, alive, 110},
		"one unbroken is enough":                 {three, []meta.FenceAnswer{extent("n2", 110, true)}, alive, 110},
		"an unbroken one beats restarted ones":   {three, []meta.FenceAnswer{extent("n1", 104, false), extent("n2", 110, true), extent("n3", 130, false)}, alive, 110},
		"only restarted: the maximum":            {three, []meta.FenceAnswer{extent("n1", 104, false), extent("n3", 130, false)}, alive, 130},
		"a lone restarted one of three waits":    {three, []meta.FenceAnswer{extent("n1", 104, false)}, alive, -1},
		"unless the others are out":              {three, []meta.FenceAnswer{extent("n1", 104, false)}, outN2N3, 104},
		"factor 1: the restarted one alone":      {three[:1], []meta.FenceAnswer{extent("n1", 104, false)}, alive, 104},
		"factor 1, damaged: waits":               {three[:1], []meta.FenceAnswer{with(extent("n1", 104, false), func(a *meta.FenceAnswer) { a.Kind = meta.Damaged })}, alive, -1},
		"factor 1, no answer":                    {three[:1], nil, alive, -1},
		"a damaged copy does not lower the end":  {three, []meta.FenceAnswer{extent("n1", 120, true), with(extent("n2", 3, true), func(a *meta.FenceAnswer) { a.Kind = meta.Damaged })}, alive, 120},
		"a damaged one beside a restarted waits": {three, []meta.FenceAnswer{extent("n1", 120, false), with(extent("n2", 3, false), func(a *meta.FenceAnswer) { a.Kind = meta.Damaged })}, outN2N3, -1},
		"another disk proves nothing":            {three[:1], []meta.FenceAnswer{with(extent("n1", 104, true), func(a *meta.FenceAnswer) { a.Replica.Disk = base.DiskID{99} })}, alive, -1},
		"not mine proves nothing":                {three[:1], []meta.FenceAnswer{with(extent("n1", 104, true), func(a *meta.FenceAnswer) { a.Kind = meta.NotMine })}, alive, -1},
		"a fence that failed is no answer":       {three[:1], []meta.FenceAnswer{with(extent("n1", 104, true), func(a *meta.FenceAnswer) { a.Err = "disk" })}, alive, -1},
		"of another segment":                     {three[:1], []meta.FenceAnswer{with(extent("n1", 104, true), func(a *meta.FenceAnswer) { a.Segment = 4 })}, alive, -1},
		"below the base is impossible":           {three[:1], []meta.FenceAnswer{extent("n1", 99, false)}, alive, -1},
		"never listed: the base":                 {three[:1], []meta.FenceAnswer{extent("n1", 100, false)}, alive, 100},
		"a stranger's answer":                    {three[:1], []meta.FenceAnswer{extent("n2", 150, true)}, alive, -1},
		"a node nobody knows and a restarted":    {three[:2], []meta.FenceAnswer{extent("n1", 104, false)}, view(node("n1", "", 0)), -1},
	} {
		v := DecideEnd(&meta.Segment{ID: 5, Base: 100, End: meta.NoEnd, Replicas: c.set}, base.TopicConfig{}, c.answers, c.view)
		if c.end < 0 {
			require.False(t, v.Decided, "%s: %s", name, v.Why)
			require.NotEmpty(t, v.Why)
			continue
		}
		require.True(t, v.Decided, "%s: %s", name, v.Why)
		require.Equal(t, c.end, v.End, name)
	}
}

// TestDecideEndKeepsEveryAck draws what replicas hold: every ack was on all of them; restarts lose what was not
// synced, which was not acked; at most one disk loses acked records without noticing, and only over a restart.
func TestDecideEndKeepsEveryAck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		acked := rapid.Int64Range(100, 200).Draw(t, "acked")
		n := rapid.IntRange(2, 3).Draw(t, "replicas")
		rotten := rapid.IntRange(-1, n-1).Draw(t, "rotten")
		seg := &meta.Segment{ID: 5, Base: 100, End: meta.NoEnd}
		var v topology.View
		var answers []meta.FenceAnswer
		for i := range n {
			id := base.NodeID([]string{"n1", "n2", "n3"}[i])
			seg.Replicas = append(seg.Replicas, replica(id))
			v.Nodes = append(v.Nodes, node(id, "", 0))
			a := meta.FenceAnswer{Segment: 5, Replica: replica(id), Kind: meta.Extent, End: acked + rapid.Int64Range(0, 20).Draw(t, "tail"), Unbroken: i != rotten && rapid.Bool().Draw(t, "unbroken")}
			if i == rotten {
				a.End = max(100, acked-rapid.Int64Range(1, 50).Draw(t, "lost"))
			}
			if rapid.Bool().Draw(t, "answers") {
				answers = append(answers, a)
			}
		}
		if verdict := DecideEnd(seg, base.TopicConfig{}, answers, v); verdict.Decided {
			require.GreaterOrEqual(t, verdict.End, acked, verdict.Why)
		}
	})
}

// topicOf is a topic of one range with sealed segments of the given ages and sizes, and an active one.
func topicOf(config base.TopicConfig, sealed ...meta.Segment) *meta.Topic {
	r := &meta.Range{ID: 1, State: base.StateActive}
	next := int64(0)
	for i, s := range sealed {
		s.ID, s.Epoch, s.State, s.Base = base.SegmentID(i+1), base.Epoch(i+1), base.StateSealed, next
		if s.End == 0 {
			s.End = next + 10
		} else {
			s.End = next
		}
		next = s.End
		r.Segments = append(r.Segments, &s)
	}
	r.Segments = append(r.Segments, &meta.Segment{ID: 99, Epoch: 99, Base: next, End: meta.NoEnd, State: base.StateActive, Replicas: []base.Replica{replica("n1")}})
	return &meta.Topic{ID: base.TopicID{1}, Name: "t", Config: config, Ranges: []*meta.Range{r}}
}

func TestTrims(t *testing.T) {
	all := func(base.SegmentID) bool { return true }
	empty := meta.Segment{End: -1} // topicOf makes it empty
	for name, c := range map[string]struct {
		config  base.TopicConfig
		sealed  []meta.Segment
		now     int64
		opened  Opened
		through base.SegmentID
		cause   base.Cause
		due     int64
	}{
		"for ever":                            {base.TopicConfig{}, []meta.Segment{{LastAppendMs: 1}}, 1e12, all, 0, 0, Never},
		"not yet":                             {base.TopicConfig{Retention: time.Hour}, []meta.Segment{{LastAppendMs: 1000}}, 3_600_999, all, 0, 0, 3_601_000},
		"by age":                              {base.TopicConfig{Retention: time.Hour}, []meta.Segment{{LastAppendMs: 1000}}, 3_601_000, all, 1, base.CauseAge, 3_601_000},
		"a prefix by age":                     {base.TopicConfig{Retention: time.Second}, []meta.Segment{{LastAppendMs: 1000}, {LastAppendMs: 2000}, {LastAppendMs: 9000}}, 3000, all, 2, base.CauseAge, 2000},
		"by bytes, keeping what fits":         {base.TopicConfig{RetentionBytes: 100}, []meta.Segment{{Bytes: 60}, {Bytes: 60}, {Bytes: 60}}, 0, all, 1, base.CauseDataPressure, 0},
		"bytes that fit stay":                 {base.TopicConfig{RetentionBytes: 130}, []meta.Segment{{Bytes: 60}, {Bytes: 60}}, 0, all, 0, 0, Never},
		"never below the limit":               {base.TopicConfig{RetentionBytes: 70}, []meta.Segment{{Bytes: 60}, {Bytes: 60}}, 0, all, 0, 0, Never},
		"an old one goes, then a fat one":     {base.TopicConfig{Retention: time.Second, RetentionBytes: 50}, []meta.Segment{{LastAppendMs: 1, Bytes: 40}, {LastAppendMs: 9000, Bytes: 40}, {LastAppendMs: 9000, Bytes: 50}}, 5000, all, 2, base.CauseDataPressure, 0},
		"not before its successor opened":     {base.TopicConfig{Retention: time.Second}, []meta.Segment{{LastAppendMs: 1}}, 1e9, func(id base.SegmentID) bool { return id != 99 }, 0, 0, 1001},
		"an empty one has no age":             {base.TopicConfig{Retention: time.Second}, []meta.Segment{empty}, 1e9, all, 0, 0, Never},
		"nothing sealed":                      {base.TopicConfig{Retention: time.Second}, nil, 1e9, all, 0, 0, Never},
		"the empty one stays behind the aged": {base.TopicConfig{Retention: time.Second}, []meta.Segment{{LastAppendMs: 1}, empty}, 1e9, all, 1, base.CauseAge, 1001},
	} {
		topic := topicOf(c.config, c.sealed...)
		trims := Trims(topic, c.now, c.opened)
		require.Equal(t, c.due, TrimDue(topic), name)
		if c.through == 0 {
			require.Empty(t, trims, name)
			continue
		}
		require.Equal(t, []meta.TrimRange{{Topic: topic.ID, Range: 1, Through: c.through, Cause: c.cause}}, trims, name)
	}
}

func TestCreateTopicPlans(t *testing.T) {
	one := view(node("n1", "", 0))
	req := TopicRequest{ID: base.TopicID{1}, RequestID: base.RequestID{2}, Name: "orders"}

	cmd, explain, err := CreateTopic(req, one, seeded(1), 42)
	require.NoError(t, err)
	require.Equal(t, 1, cmd.CreateTopic.Config.ReplicationFactor, "the smaller of 3 and the nodes that count")
	require.Equal(t, req.RequestID, cmd.RequestID)
	require.EqualValues(t, 42, cmd.TimeMs)
	require.Equal(t, []string{"r1 n1: chosen, the only candidate"}, explain)

	three := req
	three.Config.ReplicationFactor = 3
	_, _, err = CreateTopic(three, one, seeded(1), 42)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
	require.ErrorContains(t, err, "replication factor 3 needs 3 nodes, 1 of 1 can take a segment")

	three.AllowUnderReplicated = true
	_, _, err = CreateTopic(three, one, seeded(1), 42)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes, "never below min_replicas")
	cmd, _, err = CreateTopic(three, view(node("n1", "", 0), node("n2", "", 0)), seeded(1), 42)
	require.NoError(t, err)
	require.Len(t, cmd.CreateTopic.Replicas[0], 2)

	bad := req
	bad.Config.Compression = "gzip"
	_, _, err = CreateTopic(bad, one, seeded(1), 42)
	require.ErrorIs(t, err, base.CodeInvalidArgument)

	wide := req
	wide.Spans = keyspace.Tile(4)
	cmd, _, err = CreateTopic(wide, one, seeded(1), 42)
	require.NoError(t, err)
	require.Len(t, cmd.CreateTopic.Replicas, 4)

	_, _, err = CreateTopic(req, topology.View{}, seeded(1), 42)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
}

func TestMake(t *testing.T) {
	topic := topicOf(base.TopicConfig{ReplicationFactor: 1, Retention: time.Second}, meta.Segment{LastAppendMs: 1})
	ref := base.RangeRef{Topic: topic.ID, Range: 1}
	in := Input{
		NowMs: 10_000, View: view(node("n1", "", 0)), Rand: seeded(1), Opened: func(base.SegmentID) bool { return true },
		Topic: func(id base.TopicID) *meta.Topic {
			if id == topic.ID {
				return topic
			}
			return nil
		},
	}
	answer := meta.FenceAnswer{Segment: 99, Replica: replica("n1"), Kind: meta.Extent, End: 25, Bytes: 7, LastAppendMs: 9}

	in.Rolls = []RollRequest{
		{Ref: ref, Segment: 99, Epoch: 99, End: 30, Cause: base.CauseAge, FrozenMs: 9_990, WaitedMs: 700},
		{Ref: ref, Segment: 7, Epoch: 7, End: 3, Cause: base.CauseAge},
		{Ref: base.RangeRef{Topic: base.TopicID{8}}, Segment: 1},
	}
	in.Recoveries = []Recovery{
		{Ref: ref, Segment: 99, Epoch: 99, Cause: base.CauseRecovery, SinceMs: 9_000, Answers: []meta.FenceAnswer{answer}},
		{Ref: ref, Segment: 1, Epoch: 1},
	}
	in.Due = []base.TopicID{topic.ID, {8}}
	p := Make(in)
	require.Len(t, p.Rolls, 3, "a stale roll is proposed too: the state machine knows the answer")
	require.EqualValues(t, 710, p.Rolls[0].GapMs)
	require.Equal(t, []base.Replica{replica("n1")}, p.Rolls[0].Replicas)
	require.Equal(t, meta.RollSegment{
		Topic: topic.ID, Range: 1, Segment: 99, Epoch: 99, End: 25, Cause: base.CauseRecovery, Replicas: []base.Replica{replica("n1")},
		Bytes: 7, LastAppendMs: 9, GapMs: 9_991, Opened: true, Boots: []uint64{1},
	}, p.Rolls[2])
	require.Len(t, p.Trims, 1)
	require.Len(t, p.Waiting, 1)
	require.Equal(t, base.CodeTopicNotFound, p.Waiting[0].Err.Code)

	in.View = topology.View{}
	p = Make(in)
	require.Len(t, p.Rolls, 1, "what is over takes no nodes")
	require.EqualValues(t, 7, p.Rolls[0].Segment)
	require.Len(t, p.Waiting, 3)
	require.ErrorIs(t, p.Waiting[0].Err, base.CodeNotEnoughNodes)
}

func TestARecoveryGoesWhereTheStateIs(t *testing.T) {
	topic := topicOf(base.TopicConfig{ReplicationFactor: 3})
	active := topic.Ranges[0].Active()
	in := Input{
		View: view(node("n1", "", 0), node("n2", "", 90), node("n3", "", 0)), Rand: seeded(1),
		Topic: func(base.TopicID) *meta.Topic { return topic },
		Recoveries: []Recovery{{
			Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: active.ID, Epoch: active.Epoch, On: []base.Replica{replica("n2")},
			Answers: []meta.FenceAnswer{{Segment: active.ID, Replica: active.Leader(), Kind: meta.Extent, End: active.Base, Unlisted: true}},
		}},
	}
	p := Make(in)
	require.Len(t, p.Rolls, 1)
	require.Equal(t, replica("n2"), p.Rolls[0].Replicas[0], "however loaded it is")
	require.False(t, p.Rolls[0].Opened, "the leader never had the segment: what is before it stays the one to start from")

	in.Recoveries[0].On = []base.Replica{{Node: "n2", Disk: base.DiskID{7}}}
	p = Make(in)
	require.Empty(t, p.Rolls, "another disk knows nothing")
	require.ErrorIs(t, p.Waiting[0].Err, base.CodeNotEnoughNodes)
}

func TestCommandsAreCutIntoEntries(t *testing.T) {
	p := Plan{Rolls: make([]meta.RollSegment, 2*BatchSize+1), Trims: make([]meta.TrimRange, 1)}
	for i := range p.Rolls {
		p.Rolls[i].Segment = base.SegmentID(i)
	}
	cmds := p.Commands(5)
	require.Len(t, cmds, 4)
	require.Len(t, cmds[2].RollSegments, 1)
	require.EqualValues(t, BatchSize, cmds[1].RollSegments[0].Segment)
	require.Len(t, cmds[3].TrimRanges, 1)
}

func TestCheckReplication(t *testing.T) {
	one := view(node("n1", "", 0))
	require.NoError(t, CheckReplication(base.TopicConfig{ReplicationFactor: 1}, one))
	err := CheckReplication(base.TopicConfig{ReplicationFactor: 3}, one)
	require.ErrorIs(t, err, base.CodeNotEnoughNodes)
	var e *base.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "lower the replication factor to 1, or add nodes", e.HintText())
}
