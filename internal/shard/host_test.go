package shard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

var (
	metaUUID = base.UUID{1}
	cluster  = base.ClusterID{7}
)

// options are those of a small host that makes snapshots early.
func options(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: "meta", Meta: metaUUID, Node: "n1", Shards: 4, FileBytes: 256 << 10,
		snapshotEntries: 20, snapshotBytes: 64 << 10,
	}
}

// start opens and starts a host, and bootstraps it if it is new.
func start(t testing.TB, o Options) *Host {
	t.Helper()
	h, err := tryStart(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func tryStart(o Options) (*Host, error) {
	if err := o.FS.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	h, err := Open(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = h.Start(ctx)
	if err == nil && !h.Bootstrapped() {
		_, err = h.Bootstrap(ctx, cluster)
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// uuid is a stable id for a number.
func uuid(kind byte, i int) base.UUID {
	return base.UUID{kind, byte(i >> 16), byte(i >> 8), byte(i), 0, 0, 0x40, 0, 0x80}
}

func createTopic(i int) (string, meta.Command) {
	name := fmt.Sprintf("topic-%d", i)
	return name, meta.Command{RequestID: uuid('r', i), CreateTopic: &meta.CreateTopic{
		ID: uuid('t', i), Name: name, Config: base.TopicConfig{ReplicationFactor: 1},
		Spans: keyspace.Tile(1), Replicas: [][]base.Replica{{{Node: "n1", Disk: base.UUID{9}}}},
	}}
}

func create(ctx context.Context, h *Host, i int) error {
	name, cmd := createTopic(i)
	r, err := h.Propose(ctx, h.ShardOf(name), cmd)
	if err != nil {
		return err
	}
	return r.Err("create topic")
}

// holds reports whether topic i is there, by a fresh read.
func holds(t testing.TB, h *Host, i int) bool {
	t.Helper()
	name, _ := createTopic(i)
	found := false
	require.NoError(t, h.View(t.Context(), h.ShardOf(name), func(s *meta.State) error {
		found = s.TopicByName(name) != nil
		return s.Check()
	}))
	return found
}

func TestAHostServesAndRestartsFromItsLog(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	o.snapshotEntries = 1 << 30
	h := start(t, o)
	require.Equal(t, cluster, h.Cluster())
	for i := range 40 {
		require.NoError(t, create(t.Context(), h, i))
	}
	require.ErrorIs(t, func() error {
		_, cmd := createTopic(3)
		cmd.RequestID = uuid('r', 1000)
		r, err := h.Propose(t.Context(), h.ShardOf("topic-3"), cmd)
		require.NoError(t, err)
		return r.Err("create topic")
	}(), base.CodeTopicExists)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())

	h = start(t, o)
	require.Equal(t, cluster, h.Cluster())
	for i := range 40 {
		require.True(t, holds(t, h, i), i)
	}
	for _, s := range h.Status() {
		require.Equal(t, "leader", s.State)
		require.Equal(t, base.NodeID("n1"), s.Leader)
		require.Equal(t, []base.NodeID{"n1"}, s.Voters)
		require.True(t, s.Ready)
	}
	// A retry of an old request gets the old answer.
	_, cmd := createTopic(3)
	r, err := h.Propose(t.Context(), h.ShardOf("topic-3"), cmd)
	require.NoError(t, err)
	require.True(t, r.Repeat)
	require.Equal(t, base.CodeOK, r.Code)
}

func TestAHostRestartsFromSnapshotAndLog(t *testing.T) {
	fs := vfs.NewMem()
	h := start(t, options(fs))
	for i := range 400 {
		require.NoError(t, create(t.Context(), h, i))
		if i%150 == 149 {
			snapshotAll(t, h)
		}
	}
	for i := 400; i < 420; i++ {
		require.NoError(t, create(t.Context(), h, i))
	}
	require.NoError(t, h.Close())

	h = start(t, options(fs))
	for i := range 420 {
		require.True(t, holds(t, h, i), i)
	}
}

func eventually(t testing.TB, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond)
}

func TestProposalsShareBatches(t *testing.T) {
	o := options(vfs.NewMem())
	var applied atomic.Int64
	o.OnApply = func(_ base.ShardID, events []meta.Event) { applied.Add(int64(len(events))) }
	h := start(t, o)
	before := h.LogStats().Commits
	var wg sync.WaitGroup
	var failed atomic.Int64
	const n, workers = 2000, 64
	next := atomic.Int64{}
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if create(t.Context(), h, i) != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, failed.Load())
	require.EqualValues(t, n+1, applied.Load()) // and the cluster's creation
	require.Less(t, h.LogStats().Commits-before, uint64(n), "commits must be shared")
	for i := range n {
		require.True(t, holds(t, h, i))
	}
}

func TestLeadershipIsAnnounced(t *testing.T) {
	o := options(vfs.NewMem())
	var mu sync.Mutex
	leads := map[base.ShardID][]bool{}
	o.OnLead = func(id base.ShardID, leading bool, _ uint64) {
		mu.Lock()
		defer mu.Unlock()
		leads[id] = append(leads[id], leading)
	}
	h := start(t, o)
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(leads) == 4
	})
	require.NoError(t, h.Close())
	for id, seen := range leads {
		require.Equal(t, []bool{true, false}, seen, id)
	}
	_, err := h.Propose(t.Context(), base.RootShard, meta.Command{})
	require.ErrorIs(t, err, base.CodeNoLeader)
}

func TestAProposalThatTimesOutIsUnknown(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	h := start(t, options(fault))
	fault.Add(vfs.Rule{Ops: vfs.OpSyncData, Delay: 200 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := create(ctx, h, 1)
	require.ErrorIs(t, err, base.CodeTimeout)
	var e *base.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, base.Unknown, e.Outcome)
	fault.Clear()
	// The same request again says that it was applied after all.
	require.NoError(t, create(t.Context(), h, 1))
	require.True(t, holds(t, h, 1))
}

func TestAFailedDiskEndsTheProcess(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	o := options(fault)
	fatal := make(chan error, 100)
	o.OnFatal = func(err error) { fatal <- err }
	h := start(t, o)
	fault.Add(vfs.Rule{Ops: vfs.OpSyncData, Err: errDisk})
	require.Error(t, create(t.Context(), h, 1))
	require.Error(t, <-fatal)
	// A group that stands for election now cannot store its term: it stops, it does not panic.
	for _, g := range h.all() {
		require.NoError(t, g.transport.timeoutNow(t.Context()))
	}
	eventually(t, func() bool { return h.all()[0].raft.State() == raft.Candidate })
	_ = h.Close()
	require.Empty(t, fatal, "told once")
}

func TestAFullDiskWaitsForRoom(t *testing.T) {
	mem := vfs.NewMem()
	o := options(mem)
	o.FileBytes = 64 << 10
	asked := make(chan struct{}, 1000)
	o.MakeRoom = func() bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		return false
	}
	h := start(t, o)
	free, total, err := mem.Free("meta")
	require.NoError(t, err)
	mem.SetCapacity(total - free + 10<<10)
	created := make(chan int)
	go func() {
		n := 0
		for ; n < 1000; n++ {
			if create(context.Background(), h, n) != nil {
				break
			}
		}
		created <- n
	}()
	<-asked // by a group that cannot write
	mem.SetCapacity(64 << 20)
	require.Equal(t, 1000, <-created)
	require.NoError(t, h.Close())
	h = start(t, o)
	require.True(t, holds(t, h, 999))
}

var errDisk = fmt.Errorf("the disk is gone")

func TestAHungDiskEndsTheProcess(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	o := options(fault)
	o.StoreTimeout = 50 * time.Millisecond
	fatal := make(chan error, 100)
	o.OnFatal = func(err error) { fatal <- err }
	h := start(t, o)
	release := make(chan struct{})
	fault.Add(vfs.Rule{Ops: vfs.OpSyncData, Before: func(vfs.Call) { <-release }})
	go func() { _ = create(context.Background(), h, 1) }()
	require.ErrorContains(t, <-fatal, "has not answered")
	close(release)
	require.NoError(t, h.Close())
}

func TestColdGroupsPinNoFile(t *testing.T) {
	o := options(vfs.NewMem())
	o.Shards = 2
	h := start(t, o)
	// All writes go to one shard; the other one's first entries would keep the first file for ever.
	busy := base.ShardID{Root: 1}
	for i, n := 0, 0; n < 1500; i++ {
		name, cmd := createTopic(i)
		if h.ShardOf(name) != busy {
			continue
		}
		n++
		cmd.CreateTopic.Config.Labels = map[string]string{"pad": string(make([]byte, 0, 1)) + fmt.Sprintf("%0200d", i)}
		cmd.RequestID = base.RequestID{}
		_, err := h.Propose(t.Context(), busy, cmd)
		require.NoError(t, err)
		name2 := name
		_, err = h.Propose(t.Context(), busy, meta.Command{DeleteTopic: &meta.DeleteTopic{Name: name2}})
		require.NoError(t, err)
		_, err = h.Propose(t.Context(), busy, meta.Command{TopicsGone: []meta.TopicGone{{Topic: cmd.CreateTopic.ID, Replica: base.Replica{Node: "n1", Disk: base.UUID{9}}}}})
		require.NoError(t, err)
	}
	eventually(t, func() bool { h.log.tidy(); return h.LogStats().Start > 0 && h.LogStats().Files <= keepFiles+2 })
	require.NoError(t, h.Close())
	h = start(t, o)
	require.Equal(t, cluster, h.Cluster())
	require.NoError(t, h.View(t.Context(), base.RootShard, func(s *meta.State) error {
		require.Equal(t, cluster, s.Root().Cluster)
		return s.Check()
	}))
}

func TestClosingInTheMiddleOfThingsLeavesNothingBehind(t *testing.T) {
	for round := range 10 {
		o := options(vfs.NewMem())
		h := start(t, o)
		var wg sync.WaitGroup
		done := make(chan struct{}, 1)
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					if err := create(context.Background(), h, 1000*w+i); err != nil {
						return
					}
					select {
					case done <- struct{}{}:
					default:
					}
					if h.View(context.Background(), base.RootShard, func(*meta.State) error { return nil }) != nil {
						return
					}
				}
			})
		}
		for range 4 * round { // they are anywhere then
			<-done
		}
		require.NoError(t, h.Close())
		wg.Wait() // nobody hangs, although no context ends
	}
}
