package sdk

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// logNodes is a cluster of nodes that only log, and count.
type logNodes struct {
	net *fakeNet

	mu    sync.Mutex
	nodes map[NodeID]*logNode
}

type logNode struct {
	all   *logNodes
	id    NodeID
	boot  uint64
	lines []LogLine
	lost  uint64
	state string // as the others believe; empty: alive
	srv   *mux.Server
}

func newLogNodes(ids ...NodeID) *logNodes {
	all := &logNodes{net: &fakeNet{listeners: make(map[string]*fakeListener)}, nodes: make(map[NodeID]*logNode)}
	for _, id := range ids {
		all.start(id, 1)
	}
	return all
}

func (all *logNodes) start(id NodeID, boot uint64) {
	n := &logNode{all: all, id: id, boot: boot}
	n.srv = mux.NewServer(mux.ServerOptions{
		Handler: mux.HandlerFunc(n.handle),
		Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
			return wire.HelloResponse{Cluster: base.ClusterID{1}, Node: id}, nil
		},
	})
	lis := all.net.listen(string(id) + ":2921")
	all.mu.Lock()
	all.nodes[id] = n
	all.mu.Unlock()
	go func() { _ = n.srv.Serve(lis) }()
}

func (all *logNodes) log(id NodeID, messages ...string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	n := all.nodes[id]
	for _, m := range messages {
		n.lines = append(n.lines, LogLine{Seq: uint64(len(n.lines) + 1), TimeMs: time.Now().UnixMilli(), Level: "info", Message: m})
	}
}

func (all *logNodes) close() {
	for _, n := range all.nodes {
		_ = n.srv.Close()
	}
}

func (n *logNode) handle(ctx context.Context, r *mux.Request) {
	switch r.Kind {
	case wire.KindListNodes:
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		var resp wire.ListNodesResponse
		for id, node := range n.all.nodes {
			resp.Nodes = append(resp.Nodes, NodeStatus{ID: id, State: cmp.Or(node.state, "alive"), Address: string(id) + ":2921"})
		}
		r.Reply(wire.Encode(resp))
	case wire.KindWatchLogs:
		var req wire.WatchLogsRequest
		if err := r.Decode(&req); err != nil {
			r.Fail(err)
			return
		}
		go n.logs(ctx, r, req)
	case wire.KindWatchNode:
		var req wire.WatchNodeRequest
		if err := r.Decode(&req); err != nil {
			r.Fail(err)
			return
		}
		go n.count(ctx, r, req)
	default:
		r.Reply(nil)
	}
}

// logs answers a page of three lines, or waits for one.
func (n *logNode) logs(ctx context.Context, r *mux.Request, req wire.WatchLogsRequest) {
	if req.Boot != n.boot {
		req.From = 0
	}
	for until := time.Now().Add(time.Duration(req.WaitMs) * time.Millisecond); ; {
		n.all.mu.Lock()
		from := max(req.From, 1)
		end := min(from+2, uint64(len(n.lines)))
		resp := wire.WatchLogsResponse{Node: n.id, Boot: n.boot, Lines: n.lines[from-1 : end], Next: end + 1, More: end < uint64(len(n.lines)), Lost: n.lost}
		n.lost = 0
		n.all.mu.Unlock()
		if len(resp.Lines) > 0 || resp.Lost > 0 || !time.Now().Before(until) {
			r.Reply(wire.Encode(resp))
			return
		}
		if !task.Pause(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// count answers with counters a second after the last ones.
func (n *logNode) count(ctx context.Context, r *mux.Request, req wire.WatchNodeRequest) {
	now := time.Now()
	resp := wire.WatchNodeResponse{Node: n.id, Boot: n.boot, StateVersion: 1}
	if due := time.UnixMilli(req.Counted).Add(time.Second); req.Counted != 0 && due.After(now) && !task.Pause(ctx, due.Sub(now)) {
		return
	}
	resp.ObservedMs = time.Now().UnixMilli()
	if req.Counters {
		resp.Counters = &wire.NodeCounters{ObservedMs: resp.ObservedMs, InBytesPerSec: 7}
	}
	r.Reply(wire.Encode(resp))
}

func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newLogNodes("n1", "n2")
		c, err := NewClient(WithSeeds("n1:2921"), WithDialer(all.net.dial))
		require.NoError(t, err)
		for i := range 4 {
			all.log("n1", fmt.Sprint("a", i))
			time.Sleep(time.Millisecond)
			all.log("n2", fmt.Sprint("b", i))
			time.Sleep(time.Millisecond)
		}
		var words []string
		for ev, err := range c.Logs(t.Context(), LogOptions{}) {
			require.NoError(t, err)
			words = append(words, ev.Line.Message)
		}
		require.Equal(t, []string{"a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"}, words, "in the order of time, over all pages")

		for _, err := range c.Logs(t.Context(), LogOptions{Nodes: []NodeID{"n9"}}) {
			require.ErrorIs(t, err, base.CodeNodeNotFound)
		}

		// Following: what there is, and then what comes, over a restart, until the loop is left.
		words = nil
		go func() {
			time.Sleep(time.Second)
			all.log("n2", "b4")
		}()
		for ev, err := range c.Logs(t.Context(), LogOptions{Nodes: []NodeID{"n2"}, Follow: true, Last: -1}) {
			require.NoError(t, err)
			switch {
			case ev.Err != nil:
				words = append(words, "lost")
				all.start("n2", 2)
				all.log("n2", "new")
				continue
			case ev.Over:
				words = append(words, "back")
				continue
			case ev.Lost > 0:
				words = append(words, fmt.Sprint("dropped ", ev.Lost))
				_ = all.nodes["n2"].srv.Close()
				continue
			}
			words = append(words, ev.Line.Message)
			switch ev.Line.Message {
			case "b4":
				all.mu.Lock()
				all.nodes["n2"].lost = 5
				all.mu.Unlock()
			case "new":
				all.log("n2", "end")
			}
			if ev.Line.Message == "end" {
				break
			}
		}
		require.Equal(t, []string{"dropped 5", "lost", "back", "new", "end"}, words[1:])
		require.NoError(t, c.Close())
		all.close()
	})
}

// A node that was taken for dead and is back tells what came since, not what was read before.
func TestLogsOfANodeThatIsBackGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newLogNodes("n1", "n2")
		c, err := NewClient(WithSeeds("n1:2921"), WithDialer(all.net.dial))
		require.NoError(t, err)
		believe := func(state string) {
			all.mu.Lock()
			defer all.mu.Unlock()
			all.nodes["n2"].state = state
		}
		all.log("n1", "here")
		all.log("n2", "a", "b")
		var words []string
		for ev, err := range c.Logs(t.Context(), LogOptions{Nodes: []NodeID{"n2"}, Follow: true, Last: 100}) {
			require.NoError(t, err)
			require.NotNil(t, ev.Line)
			words = append(words, ev.Line.Message)
			if ev.Line.Message == "b" {
				go func() {
					believe("dead")
					time.Sleep(2 * watchMembers)
					all.log("n2", "c")
					believe("alive")
				}()
			}
			if ev.Line.Message == "c" {
				break
			}
		}
		require.Equal(t, []string{"a", "b", "c"}, words)
		require.NoError(t, c.Close())
		all.close()
	})
}

// An address may have another node behind it than it had: what that tells is not taken for the other's.
func TestWhoAnswersInAnothersPlaceIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newLogNodes("n1", "n2")
		c, err := NewClient(WithSeeds("n1:2921"), WithDialer(all.net.dial))
		require.NoError(t, err)
		all.log("n2", "of another")
		all.mu.Lock()
		all.nodes["n2"].id = "n9"
		all.mu.Unlock()
		for ev, err := range c.Logs(t.Context(), LogOptions{Nodes: []NodeID{"n2"}}) {
			require.NoError(t, err)
			require.Nil(t, ev.Line)
			require.ErrorContains(t, ev.Err, "node n9 answers at n2:2921, where n2 was")
		}
		for ev, err := range c.Watch(t.Context(), WatchOptions{Nodes: []NodeID{"n2"}, Counters: true, Once: true}) {
			require.NoError(t, err)
			require.NotNil(t, ev.Gap)
			require.ErrorContains(t, ev.Gap.Err, "node n9 answers at n2:2921, where n2 was")
		}
		require.NoError(t, c.Close())
		all.close()
	})
}

func TestWatchCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newLogNodes("n1", "n2")
		c, err := NewClient(WithSeeds("n1:2921"), WithDialer(all.net.dial))
		require.NoError(t, err)
		counted := map[NodeID]int{}
		began := time.Now()
		for ev, err := range c.Watch(t.Context(), WatchOptions{Counters: true}) {
			require.NoError(t, err)
			if ev.Counters != nil {
				require.Equal(t, int64(7), ev.Counters.InBytesPerSec)
				counted[ev.Node]++
			}
			if time.Since(began) >= 5*time.Second {
				break
			}
		}
		for node, n := range counted {
			require.InDelta(t, 6, n, 1, "%s is told once a second", node)
		}
		require.Len(t, counted, 2)
		require.NoError(t, c.Close())
		all.close()
	})
}
