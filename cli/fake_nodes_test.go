package cli

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// fakeNodes is the part of fakeAdmin about nodes and shards: three nodes, of which the test may spoil any.
type fakeNodes struct {
	nodes     []sdk.NodeStatus
	silent    []sdk.NodeID // do not answer for themselves, nor pings
	shards    []sdk.ShardStatus
	noLeaders []sdk.ShardID // whose leaders do not answer
	rings     map[sdk.NodeID]sdk.NodeRing
	changes   []sdk.ChangeNode
	moves     []sdk.ShardMove
	unasked   []sdk.NodeID // of a balance
	moved     []sdk.TransferShard
	recovered []sdk.RecoverShard
	looks     int
	onLook    func(f *fakeNodes) // before each list of nodes
}

func threeNodes() fakeNodes {
	f := fakeNodes{}
	for i, id := range []sdk.NodeID{"n1", "n2", "n3"} {
		f.nodes = append(f.nodes, sdk.NodeStatus{
			ID: id, Boot: uint64(i + 1), Address: "10.0.0.1" + string(id[1:]) + ":2921", State: "alive", Status: "normal", Version: "1.2.3",
			UptimeMs: 3_600_000, Vnodes: 1024, OwnsPerMillion: 333_333, DiskUsed: 41 << 30, DiskTotal: 100 << 30, Leaders: 4, Segments: 12,
			InBytesPerSec: 2 << 20, FsyncP99Us: 1900, RttUs: 400, Admitted: true, SinceMs: testNow.Add(-time.Hour).UnixMilli(),
		})
	}
	for i := range 4 {
		f.shards = append(f.shards, sdk.ShardStatus{
			ID: sdk.ShardID{Root: uint16(i)}, State: "ok", Leader: sdk.NodeID([]string{"n1", "n2", "n3", "n1"}[i]), Term: 4, Commit: 100, Applied: 100,
			Voters: []sdk.NodeID{"n1", "n2", "n3"}, Want: 3, Topics: i, SinceMs: testNow.Add(-time.Minute).UnixMilli(),
		})
	}
	return f
}

func (f *fakeNodes) find(id sdk.NodeID) (*sdk.NodeStatus, error) {
	for i := range f.nodes {
		if f.nodes[i].ID == id {
			return &f.nodes[i], nil
		}
	}
	return nil, errorf(sdk.CodeNodeNotFound, "node %q not found", string(id))
}

func (f *fakeNodes) shard(id sdk.ShardID) (sdk.ShardStatus, error) {
	for _, s := range f.shards {
		if s.ID == id {
			return s, nil
		}
	}
	return sdk.ShardStatus{}, errorf(sdk.CodeShardNotFound, "shard %s not found", id)
}

func (f *fakeAdmin) ListNodes(context.Context) (sdk.NodeList, error) {
	if err := f.note("nodes"); err != nil {
		return sdk.NodeList{}, err
	}
	f.looks++
	if f.onLook != nil {
		f.onLook(&f.fakeNodes)
	}
	return sdk.NodeList{Observer: "n1", ObservedMs: testNow.UnixMilli(), Nodes: slices.Clone(f.nodes), Missing: f.silent}, nil
}

func (f *fakeAdmin) DescribeNode(_ context.Context, id sdk.NodeID) (sdk.NodeDetail, error) {
	if err := f.note("describe node"); err != nil {
		return sdk.NodeDetail{}, err
	}
	if id == "" {
		id = "n1"
	}
	n, err := f.fakeNodes.find(id)
	if err != nil {
		return sdk.NodeDetail{}, err
	}
	return sdk.NodeDetail{
		Status: *n, GoVersion: "go1.26", Platform: "linux/amd64", Pid: 7, StartedMs: testNow.Add(-time.Hour).UnixMilli(),
		ClusterAddress: "10.0.0.1:2922", DataDir: "/data", MetaDir: "/meta", Counters: map[string]int64{"eastguard_acks_total": 12},
		Settings: []sdk.Setting{
			{Key: "client_port", Value: "2921", Default: "2921", Source: "default"},
			{Key: "node_id", Value: string(id), Source: "flag", Reload: "restart"},
		},
	}, nil
}

func (f *fakeAdmin) NodeRing(_ context.Context, id sdk.NodeID, tokens bool) (sdk.NodeRing, error) {
	if f.err != nil {
		return sdk.NodeRing{}, f.err
	}
	if id == "" {
		id = "n1"
	}
	if slices.Contains(f.silent, id) {
		return sdk.NodeRing{}, errorf(sdk.CodeUnreachable, "node %s does not answer", id)
	}
	if r, ok := f.rings[id]; ok {
		return r, nil
	}
	if _, err := f.fakeNodes.find(id); err != nil {
		return sdk.NodeRing{}, err
	}
	ring := sdk.NodeRing{Observer: id, ObservedMs: testNow.UnixMilli(), Hash: 0xabc, Version: 9}
	for i, n := range f.nodes {
		m := sdk.RingMember{Node: n.ID, State: n.State, Status: "normal", Boot: n.Boot, Vnodes: 2, OwnsPerMillion: 333_333, SinceMs: n.SinceMs}
		if tokens {
			m.Tokens = []uint64{uint64(i+1) << 61, uint64(i+1)<<61 + 1<<60}
		}
		ring.Members = append(ring.Members, m)
	}
	return ring, nil
}

func (f *fakeAdmin) Ping(_ context.Context, id sdk.NodeID) (time.Duration, error) {
	if slices.Contains(f.silent, id) {
		return 0, errorf(sdk.CodeUnreachable, "node %s does not answer", id)
	}
	return 500 * time.Microsecond, nil
}

func (f *fakeAdmin) Reach(_ context.Context, r sdk.Reach) (sdk.Reached, error) {
	if slices.Contains(f.silent, r.From) {
		return sdk.Reached{}, errorf(sdk.CodeUnreachable, "node %s does not answer", r.From)
	}
	reached := sdk.Reached{Observer: r.From}
	for _, id := range r.Nodes {
		p := sdk.PeerReach{Node: id, Sent: r.Count, OK: r.Count, RttUs: slices.Repeat([]int64{400}, r.Count), Gossip: "alive", Link: "reachable"}
		if slices.Contains(f.silent, id) {
			p = sdk.PeerReach{Node: id, Sent: r.Count, Gossip: "suspect", Link: "refused", Error: "connection refused"}
		}
		reached.Peers = append(reached.Peers, p)
	}
	return reached, nil
}

func (f *fakeAdmin) ChangeNode(_ context.Context, r sdk.ChangeNode) (sdk.ChangedNode, error) {
	if f.err != nil {
		return sdk.ChangedNode{}, f.err
	}
	n, err := f.fakeNodes.find(r.Node)
	if err != nil {
		return sdk.ChangedNode{}, err
	}
	if r.Change == sdk.ForgetNode && n.State == "alive" {
		return sdk.ChangedNode{}, errorf(sdk.CodePreconditionFailed, "node %s is alive", r.Node)
	}
	if !r.DryRun {
		f.changes = append(f.changes, r)
	}
	return sdk.ChangedNode{Node: r.Node, Before: n.State + ", normal", After: "left", Segments: 2, Shards: []sdk.ShardID{{Root: 3}}, DryRun: r.DryRun}, nil
}

func (f *fakeAdmin) ListShards(context.Context) (sdk.ShardList, error) {
	if err := f.note("shards"); err != nil {
		return sdk.ShardList{}, err
	}
	return sdk.ShardList{Observer: "n1", ObservedMs: testNow.UnixMilli(), Shards: f.shards, Missing: f.noLeaders}, nil
}

func (f *fakeAdmin) DescribeShard(_ context.Context, id sdk.ShardID) (sdk.ShardDetail, error) {
	if err := f.note("describe shard"); err != nil {
		return sdk.ShardDetail{}, err
	}
	s, err := f.shard(id)
	if err != nil {
		return sdk.ShardDetail{}, err
	}
	d := sdk.ShardDetail{Status: s, Observer: s.Leader, FirstIndex: 1, LastIndex: 100, SnapshotIndex: 90, SnapshotBytes: 4096}
	for i, v := range s.Voters {
		d.Members = append(d.Members, sdk.ShardMember{
			Node: v, Server: base.UUID{byte(i + 1)}, Voter: true, Leader: v == s.Leader, Match: 100 - uint64(i), Intended: true, State: "reachable",
		})
	}
	d.Events = []sdk.Event{{Seq: 3, TimeMs: testNow.UnixMilli(), Node: "n1", Type: "SHARD_LEADER", Subject: "3", Before: "n2", After: "n1"}}
	return d, nil
}

func (f *fakeAdmin) LocateShard(_ context.Context, topic string) (sdk.LocatedShard, error) {
	if err := f.note("locate " + topic); err != nil {
		return sdk.LocatedShard{}, err
	}
	if err := base.CheckTopicName(topic); err != nil {
		return sdk.LocatedShard{}, err
	}
	return sdk.LocatedShard{Hash: 0x1800 << 48, Shard: sdk.ShardID{Root: 3}, Voters: []sdk.NodeID{"n1", "n2", "n3"}, Leader: "n1"}, nil
}

func (f *fakeAdmin) RouteKey(_ context.Context, topic string, _ []byte) (sdk.KeyRoute, error) {
	if _, err := f.find(topic); err != nil {
		return sdk.KeyRoute{}, err
	}
	return sdk.KeyRoute{
		Topic: base.UUID{1}, Version: 7, Hash: 0x4abc << 48, Range: 2, Start: 0x4000 << 48, End: 0x8000 << 48, Segment: 5, Epoch: 3,
		Replicas: []sdk.NodeAddress{{ID: "n2", Address: "10.0.0.12:2921"}, {ID: "n3", Address: "10.0.0.13:2921"}}, ReadFrom: "n3",
	}, nil
}

func (f *fakeAdmin) TransferShard(_ context.Context, r sdk.TransferShard) (sdk.TransferredShard, error) {
	s, err := f.shard(r.Shard)
	if err != nil {
		return sdk.TransferredShard{}, err
	}
	if _, err := f.fakeNodes.find(r.To); err != nil {
		return sdk.TransferredShard{}, err
	}
	m := sdk.ShardMove{Shard: r.Shard, From: s.Leader, To: r.To, Term: s.Term}
	if !r.DryRun {
		f.moved = append(f.moved, r)
		m.Term, m.LeaderlessUs = s.Term+1, 4200
		for i := range f.shards {
			if f.shards[i].ID == r.Shard {
				f.shards[i].Leader = r.To
			}
		}
	}
	return sdk.TransferredShard{Move: m, DryRun: r.DryRun}, nil
}

func (f *fakeAdmin) BalanceShards(_ context.Context, dryRun bool) (sdk.BalancedShards, error) {
	if f.err != nil {
		return sdk.BalancedShards{}, f.err
	}
	f.calls = append(f.calls, map[bool]string{true: "plan balance", false: "balance"}[dryRun])
	return sdk.BalancedShards{Moves: f.moves, DryRun: dryRun, Missing: f.unasked}, nil
}

func (f *fakeAdmin) RecoverShard(_ context.Context, r sdk.RecoverShard) (sdk.RecoveredShard, error) {
	if _, err := f.shard(r.Shard); err != nil {
		return sdk.RecoveredShard{}, err
	}
	if !r.DryRun {
		f.recovered = append(f.recovered, r)
	}
	return sdk.RecoveredShard{
		Shard: r.Shard, DryRun: r.DryRun, Lost: []base.UUID{{9}},
		Logs: []sdk.ShardLog{{Node: "n1", Term: 3, Index: 90}, {Node: "n2", Term: 4, Index: 88, Chosen: true}},
	}, nil
}
