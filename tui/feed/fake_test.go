package feed

import (
	"context"
	"iter"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// fakeCluster is a cluster that says what a test has it say.
type fakeCluster struct {
	mu     sync.Mutex
	down   bool
	nodes  []sdk.NodeStatus
	asked  map[string]int
	events chan sdk.WatchEvent
	lines  chan sdk.LogEvent
	opens  int
	seeds  []string
	opts   sdk.WatchOptions
	gone   bool // the topic

	segments []sdk.SegmentRow
}

func newFake(nodes ...sdk.NodeID) *fakeCluster {
	f := &fakeCluster{asked: make(map[string]int), events: make(chan sdk.WatchEvent), lines: make(chan sdk.LogEvent)}
	for _, n := range nodes {
		f.nodes = append(f.nodes, sdk.NodeStatus{ID: n, State: "alive", Address: string(n) + ":2921", Boot: 1})
	}
	return f
}

func (f *fakeCluster) connect(seeds []string) (Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	f.seeds = seeds
	return f, nil
}

func (f *fakeCluster) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *fakeCluster) segment(id int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.segments = append(f.segments, sdk.SegmentRow{Topic: "orders", Range: 1, Segment: sdk.SegmentDetail{ID: sdk.SegmentID(id)}})
}

func (f *fakeCluster) ask(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[what]++
	if f.down {
		return base.Errorf(base.CodeUnreachable, what, "dial n1: connection refused")
	}
	return nil
}

func (f *fakeCluster) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[what]
}

func (f *fakeCluster) Admin() Admin { return f }
func (f *fakeCluster) Close() error { return nil }

func (f *fakeCluster) Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error] {
	f.mu.Lock()
	f.opts = opts
	f.mu.Unlock()
	return func(yield func(sdk.WatchEvent, error) bool) {
		for {
			select {
			case ev := <-f.events:
				if !yield(ev, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fakeCluster) Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error] {
	return func(yield func(sdk.LogEvent, error) bool) {
		_ = f.ask("logs " + opts.Level)
		for {
			select {
			case ev := <-f.lines:
				if !yield(ev, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fakeCluster) ListNodes(context.Context) (sdk.NodeList, error) {
	return sdk.NodeList{Observer: "n1", Nodes: f.nodes}, f.ask("nodes")
}

func (f *fakeCluster) ListShards(context.Context) (sdk.ShardList, error) {
	return sdk.ShardList{}, f.ask("shards")
}

func (f *fakeCluster) ListTopics(context.Context, sdk.ListTopics) (sdk.TopicList, error) {
	return sdk.TopicList{Topics: []sdk.TopicSummary{{Name: "orders"}}}, f.ask("topics")
}

func (f *fakeCluster) DescribeTopic(_ context.Context, name string) (sdk.TopicDetail, error) {
	err := f.ask("topic " + name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		err = base.Errorf(base.CodeTopicNotFound, "describe", "no topic %s", name)
	}
	return sdk.TopicDetail{Summary: sdk.TopicSummary{Name: name}}, err
}

func (f *fakeCluster) ListSegments(_ context.Context, r sdk.ListSegments) (sdk.SegmentList, error) {
	err := f.ask("segments " + r.Topic + r.State)
	f.mu.Lock()
	defer f.mu.Unlock()
	return sdk.SegmentList{Segments: f.segments[:min(len(f.segments), r.Limit)]}, err
}

func (f *fakeCluster) ClusterStatus(context.Context) (sdk.ClusterStatus, error) {
	return sdk.ClusterStatus{Topics: 3}, f.ask("status")
}

func (f *fakeCluster) ClusterHealth(context.Context) (sdk.ClusterHealth, error) {
	return sdk.ClusterHealth{}, f.ask("health")
}
