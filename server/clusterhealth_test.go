package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

func threeNodes(edit ...func(*topology.Node)) topology.View {
	v := topology.View{Nodes: []topology.Node{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}}
	for i := range v.Nodes {
		v.Nodes[i].Liveness = topology.Alive
		if i < len(edit) {
			edit[i](&v.Nodes[i])
		}
	}
	return v
}

func reports(edit ...func(*wire.NodeStatus)) nodeReports {
	r := nodeReports{status: []wire.NodeStatus{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}}
	for i := range r.status {
		r.status[i].State, r.status[i].RingHash, r.status[i].DiskTotal = "alive", 7, 100
		if i < len(edit) {
			edit[i](&r.status[i])
		}
	}
	return r
}

func silent(r nodeReports, n base.NodeID) nodeReports {
	r.silent = []base.NodeID{n}
	return r
}

func TestHealthOfNodes(t *testing.T) {
	same := func(*topology.Node) {}
	for name, c := range map[string]struct {
		view   topology.View
		nodes  nodeReports
		want   wire.HealthResult
		detail string
	}{
		"well":         {threeNodes(), reports(), wire.HealthPass, "3 of 3 nodes alive"},
		"one is dead":  {threeNodes(same, func(n *topology.Node) { n.Liveness = topology.Dead }), reports(), wire.HealthFail, "2 of 3 nodes alive; dead: n2"},
		"one stopped":  {threeNodes(same, func(n *topology.Node) { n.Liveness = topology.Left }), reports(), wire.HealthFail, "2 of 3 nodes alive; stopped: n2"},
		"one is out":   {threeNodes(same, func(n *topology.Node) { n.Liveness, n.Standing = topology.Dead, topology.Out }), reports(), wire.HealthPass, "2 of 3 nodes alive"},
		"one is mute":  {threeNodes(), silent(reports(), "n3"), wire.HealthFail, "3 of 3 nodes alive; no answer from n3"},
		"nobody known": {topology.View{}, nodeReports{}, wire.HealthFail, "0 of 0 nodes alive"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkNodes(c.view, c.nodes)
			require.Equal(t, c.want, got.Result)
			require.Equal(t, c.detail, got.Detail)
			require.Equal(t, c.want != wire.HealthPass, got.Next != "", "who is told that something is wrong is told what to do")
		})
	}
}

func TestHealthOfRings(t *testing.T) {
	require.Equal(t, wire.HealthPass, checkRings(reports()).Result)
	other := checkRings(reports(func(n *wire.NodeStatus) { n.RingHash = 8 }))
	require.Equal(t, wire.HealthFail, other.Result)
	require.Equal(t, "2 different rings among 3 nodes", other.Detail)
	require.Equal(t, wire.HealthFail, checkRings(silent(reports(), "n2")).Result, "who does not answer may have another one")
	dead := checkRings(reports(func(n *wire.NodeStatus) { n.State, n.RingHash = "dead", 0 }))
	require.Equal(t, wire.HealthPass, dead.Result, "the dead have no ring")
	require.Equal(t, wire.HealthFail, checkRings(nodeReports{}).Result)
}

func TestHealthOfShards(t *testing.T) {
	s := &Server{cfg: config.Default()}
	sum := func(id uint16, voters ...base.NodeID) shardSum {
		return shardSum{Status: wire.ShardStatus{ID: base.ShardID{Root: id}, Leader: "n1", Voters: voters}}
	}
	full := []shardSum{sum(0, "n1", "n2", "n3"), sum(1, "n1", "n2", "n3")}
	missing := []base.ShardID{{Root: 2}}
	require.Equal(t, wire.HealthPass, checkShards(full, nil).Result)
	lost := checkShards(full, missing)
	require.Equal(t, wire.HealthFail, lost.Result)
	require.Equal(t, "2 of 3 shards have a leader; no answer from 1 shard: 2", lost.Detail)
	require.Equal(t, wire.HealthFail, checkShards(nil, nil).Result)

	require.Equal(t, wire.HealthPass, s.checkVoters(threeNodes(), full, nil).Result)
	require.Equal(t, wire.HealthFail, s.checkVoters(threeNodes(), full, missing).Result)
	require.Equal(t, wire.HealthFail, s.checkVoters(threeNodes(), []shardSum{sum(0, "n1", "n2")}, nil).Result)
	behind, astray := sum(0, "n1", "n2", "n3"), sum(0, "n1", "n2", "n3")
	behind.Behind, astray.Astray = 1, true
	require.Equal(t, wire.HealthFail, s.checkVoters(threeNodes(), []shardSum{behind}, nil).Result)
	require.Equal(t, wire.HealthWarn, s.checkVoters(threeNodes(), []shardSum{astray}, nil).Result)

	for _, check := range []func([]shardSum, []base.ShardID) wire.HealthCheck{checkCover, checkCopiesAlone, checkGaps, checkEndsNow} {
		require.Equal(t, wire.HealthPass, check(full, nil).Result)
		require.Equal(t, wire.HealthFail, check(full, missing).Result, "what cannot be checked fails")
	}
	hole := sum(0)
	hole.Holes, hole.Hole = 1, "orders: nothing covers it"
	require.Equal(t, wire.HealthFail, checkCover([]shardSum{hole}, nil).Result)
}

func TestVotersAreJudgedByTheirLeader(t *testing.T) {
	member := func(n base.NodeID, match uint64) shard.Member {
		return shard.Member{Node: n, Voter: true, Intended: true, Heard: true, Match: match}
	}
	d := shard.Detail{LastIndex: 5000, Members: []shard.Member{member("n1", 5000), member("n2", 5000-mostTrail), member("n3", 4990)}}
	var sum shardSum
	sum.addVoters(d)
	require.Zero(t, sum.Behind)
	require.False(t, sum.Astray)

	d.Members[1].Match--
	d.Members[2].Heard = false
	d.Members[0].Intended = false
	sum = shardSum{}
	sum.addVoters(d)
	require.Equal(t, 2, sum.Behind)
	require.True(t, sum.Astray)
}

func TestHealthOfDisks(t *testing.T) {
	require.Equal(t, wire.HealthPass, checkDisks(reports()).Result)
	full := checkDisks(reports(func(n *wire.NodeStatus) { n.Full = true }))
	require.Equal(t, wire.HealthFail, full.Result)
	require.Contains(t, full.Detail, "no room on n1")
	require.Equal(t, wire.HealthWarn, checkDisks(reports(func(n *wire.NodeStatus) { n.DiskUsed = 95 })).Result)
	require.Equal(t, wire.HealthWarn, checkDisks(reports(func(n *wire.NodeStatus) { n.FsyncP99Us = 600_000 })).Result)
	require.Equal(t, wire.HealthFail, checkDisks(silent(reports(), "n2")).Result)

	require.Equal(t, wire.HealthPass, checkDamage(reports()).Result)
	require.Equal(t, wire.HealthWarn, checkDamage(reports(func(n *wire.NodeStatus) { n.Quarantined = 1 })).Result)
	require.Equal(t, wire.HealthFail, checkDamage(reports(func(n *wire.NodeStatus) { n.Damaged = 1 })).Result)
}

func checkCopiesAlone(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	return checkCopies(sums, missing, reports())
}

func checkEndsNow(sums []shardSum, missing []base.ShardID) wire.HealthCheck {
	return checkEnds(sums, missing, time.Now())
}

func TestHealthOfEnds(t *testing.T) {
	now := time.Now()
	sums := []shardSum{{}, {}}
	for i := range mostShort + 2 {
		sums[1].Stuck.add("orders/r9", coord.Stuck{Segment: base.SegmentID(i + 1), Since: now.Add(-time.Minute), Reason: "n1, n2 and n3 are away"})
	}
	sums[0].Stuck.add("clicks/r1", coord.Stuck{Segment: 40, Since: now.Add(-time.Hour), Reason: "only n1 answers, and it has restarted"})
	c := checkEnds(sums, nil, now)
	require.Equal(t, wire.HealthFail, c.Result)
	require.Equal(t, "11 segments wait for a replica to say how they end; for 1h00m already: clicks/r1 s40, only n1 answers, and it has restarted", c.Detail)
	require.Contains(t, c.Next, "eg-cli segment describe s40")
}

// A range whose next segment finds fewer nodes than min_replicas says so where an operator looks, with what is missing.
func TestARangeThatWaitsForNodes(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ref, leader, followers := c.topic("orders", base.TopicConfig{MinReplicas: 3})
	leader.mustProduce(ref, "first")
	check := func() wire.HealthCheck {
		h := must[wire.ClusterHealthResponse](leader, wire.KindClusterHealth, wire.ClusterHealthRequest{})
		i := slices.IndexFunc(h.Checks, func(c wire.HealthCheck) bool { return c.ID == "EG144" })
		require.GreaterOrEqual(t, i, 0)
		return h.Checks[i]
	}
	require.Equal(t, wire.HealthPass, check().Result)

	c.cable(followers[0]).pull()
	soon(t, "health tells of it", func() bool {
		req := wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: 500}
		_, _, _ = call[wire.ProduceResponse](leader, wire.KindProduce, req, makeBatch(t, -1, -1, "waits")) // nothing rolls for want of it
		h := check()
		return h.Result == wire.HealthFail && strings.Contains(h.Detail, "1 range waits for nodes") &&
			strings.Contains(h.Detail, "orders/r1 s") && strings.Contains(h.Detail, "of 3 nodes can take a segment, 3 are needed")
	})
	soon(t, "the topic tells of it", func() bool {
		d := must[wire.DescribeTopicResponse](leader, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "orders"}).Topic
		return strings.Contains(d.Ranges[0].Segments[len(d.Ranges[0].Segments)-1].Waits, "3 are needed")
	})
	c.cable(followers[0]).putBack()
	c.goesOn(ref, nil, "goes on")
	soon(t, "all is well again", func() bool { return check().Result == wire.HealthPass })
}
