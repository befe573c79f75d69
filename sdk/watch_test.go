package sdk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// journals is a cluster of nodes that only keep journals.
type journals struct {
	t   *testing.T
	net *fakeNet

	mu    sync.Mutex
	nodes map[NodeID]*journalNode
	also  []NodeStatus // nodes of other kinds, which lists have too
}

type journalNode struct {
	all    *journals
	id     NodeID
	srv    *mux.Server
	lis    *fakeListener
	status NodeStatus
	boot   uint64
	events []Event // Seq 1 is at index 0
	kept   int     // how many of the last are kept; 0 = all
	grown  chan struct{}
	mute   bool
	page   int // events of an answer at most; 0 = as many as are asked for
}

func newJournals(t *testing.T, nodes ...NodeID) *journals {
	all := &journals{t: t, net: &fakeNet{listeners: make(map[string]*fakeListener)}, nodes: make(map[NodeID]*journalNode)}
	for _, id := range nodes {
		all.start(id)
	}
	return all
}

// start begins a node, or begins it anew with an empty journal.
func (all *journals) start(id NodeID) *journalNode {
	all.mu.Lock()
	defer all.mu.Unlock()
	n := &journalNode{all: all, id: id, grown: make(chan struct{}), boot: 1}
	if old := all.nodes[id]; old != nil {
		n.boot = old.boot + 1
	}
	addr := string(id) + ":2921"
	n.status = NodeStatus{ID: id, Boot: n.boot, State: "alive", Address: addr}
	n.srv = mux.NewServer(mux.ServerOptions{
		Handler: mux.HandlerFunc(n.handle),
		Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
			return wire.HelloResponse{Cluster: base.ClusterID{1}, Node: id}, nil
		},
	})
	n.lis = all.net.listen(addr)
	all.nodes[id] = n
	go func() { _ = n.srv.Serve(n.lis) }()
	return n
}

func (all *journals) stop(id NodeID) {
	_ = all.nodes[id].srv.Close()
	_ = all.nodes[id].lis.Close()
}

func (all *journals) close() {
	for id := range all.nodes {
		all.stop(id)
	}
}

// say adds events to a node's journal, at once.
func (all *journals) say(id NodeID, subjects ...string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	n := all.nodes[id]
	for _, s := range subjects {
		n.events = append(n.events, Event{Seq: uint64(len(n.events) + 1), TimeMs: time.Now().UnixMilli(), Node: id, Type: "TOPIC", Subject: s})
	}
	close(n.grown)
	n.grown = make(chan struct{})
}

func (n *journalNode) handle(ctx context.Context, r *mux.Request) {
	switch r.Kind {
	case wire.KindListNodes:
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		resp := wire.ListNodesResponse{Nodes: slices.Clone(n.all.also)}
		for _, other := range n.all.nodes {
			resp.Nodes = append(resp.Nodes, other.status)
		}
		r.Reply(wire.Encode(resp))
	case wire.KindWatchNode:
		var req wire.WatchNodeRequest
		if err := r.Decode(&req); err != nil {
			r.Fail(err)
			return
		}
		go n.watch(ctx, r, req)
	default:
		r.Reply(nil)
	}
}

func (n *journalNode) watch(ctx context.Context, r *mux.Request, req wire.WatchNodeRequest) {
	deadline := time.After(time.Duration(req.WaitMs) * time.Millisecond)
	for {
		n.all.mu.Lock()
		resp, grown := n.answer(req), n.grown
		mute := n.mute
		n.all.mu.Unlock()
		if mute {
			<-ctx.Done()
			return
		}
		if len(resp.Events) > 0 || resp.State != nil || req.WaitMs == 0 {
			r.Reply(wire.Encode(resp))
			return
		}
		select {
		case <-grown:
		case <-deadline:
			req.WaitMs = 0
		case <-ctx.Done():
			return
		}
	}
}

// answer is what there is for a request now. The state is versioned by the boot.
func (n *journalNode) answer(req wire.WatchNodeRequest) wire.WatchNodeResponse {
	resp := wire.WatchNodeResponse{Node: n.id, Boot: n.boot, ObservedMs: time.Now().UnixMilli(), StateVersion: 7}
	if req.Boot != n.boot {
		req.From, req.Seen = 0, 0
	}
	if req.Seen != 7 {
		resp.State = &wire.WatchedState{Self: n.status}
	}
	from := max(req.From, 1)
	if n.kept > 0 {
		if oldest := uint64(max(1, len(n.events)-n.kept+1)); from < oldest {
			resp.Lost, from = oldest-from, oldest
		}
	}
	page := req.MaxEvent
	if n.page > 0 {
		page = min(page, n.page)
	}
	end := min(uint64(len(n.events)), from+uint64(page)-1)
	resp.Events = n.events[from-1 : end]
	resp.Next, resp.More = end+1, end < uint64(len(n.events))
	return resp
}

// watched is what one watch saw, in words.
type watched struct {
	mu    sync.Mutex
	words []string
	err   error
	done  chan struct{}
	why   []string // nodes were lost
}

func (all *journals) watch(cl *Client, opts WatchOptions) (w *watched, stop func()) {
	ctx, cancel := context.WithCancel(all.t.Context())
	w = &watched{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ev, err := range cl.Watch(ctx, opts) {
			w.mu.Lock()
			if err != nil {
				w.err = err
			} else {
				w.words = append(w.words, inWords(ev))
				if ev.Gap != nil && ev.Gap.Err != nil {
					w.why = append(w.why, ev.Gap.Err.Error())
				}
			}
			w.mu.Unlock()
		}
	}()
	return w, func() { cancel(); <-w.done }
}

// seen is what came since the last call.
func (w *watched) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	words := w.words
	w.words = nil
	return words
}

func inWords(ev WatchEvent) string {
	switch {
	case ev.Event != nil:
		return fmt.Sprintf("%s#%d %s", ev.Node, ev.Event.Seq, ev.Event.Subject)
	case ev.State != nil:
		return fmt.Sprintf("%s is %s", ev.Node, ev.State.Self.State)
	case ev.Gap.Err != nil:
		return string(ev.Node) + " lost"
	}
	text := string(ev.Node)
	if ev.Gap.Over {
		text += " back"
	}
	if ev.Gap.Restarted {
		text += " restarted"
	}
	if ev.Gap.Lost > 0 {
		text += fmt.Sprintf(" dropped %d", ev.Gap.Lost)
	}
	return text
}

func (all *journals) client() *Client {
	cl, err := NewClient(WithSeeds("n1"), WithDialer(all.net.dial))
	require.NoError(all.t, err)
	return cl
}

func inVirtualTime(t *testing.T, nodes []NodeID, run func(t *testing.T, all *journals, cl *Client)) {
	synctest.Test(t, func(t *testing.T) {
		all := newJournals(t, nodes...)
		cl := all.client()
		run(t, all, cl)
		require.NoError(t, cl.Close())
		all.close()
		synctest.Wait()
	})
}

func TestWatchMergesByTime(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1", "n2", "n3"}, func(t *testing.T, all *journals, cl *Client) {
		var want []string
		tell := func(id NodeID, word string) {
			all.say(id, word)
			want = append(want, fmt.Sprintf("%s#%d %s", id, len(all.nodes[id].events), word))
			time.Sleep(7 * time.Millisecond)
		}
		for i := range 3000 {
			tell([]NodeID{"n1", "n2", "n3"}[i*i%3], fmt.Sprint("kept ", i))
		}
		w, stop := all.watch(cl, WatchOptions{})
		time.Sleep(time.Second)
		require.Equal(t, want, w.seen())
		want = nil
		for i := range 300 {
			tell([]NodeID{"n1", "n2", "n3"}[i*i%3], fmt.Sprint("new ", i))
		}
		time.Sleep(time.Second)
		require.Equal(t, want, w.seen())
		stop()
		require.NoError(t, w.err)
	})
}

func TestWatchGoesOnWhereItStopped(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1", "n2"}, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{})
		all.say("n2", "a")
		time.Sleep(time.Second)
		all.net.cut("n2:2921") // the connection breaks, and is made again
		all.say("n2", "b")
		time.Sleep(3 * time.Second)
		got := slices.DeleteFunc(w.seen(), func(s string) bool { return s == "n2 lost" || s == "n2 back" })
		require.Equal(t, []string{"n2#1 a", "n2#2 b"}, got)

		all.stop("n2")
		time.Sleep(time.Second)
		require.Equal(t, []string{"n2 lost"}, w.seen(), "told once")
		all.say("n1", "c")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n1#1 c"}, w.seen(), "the others go on")
		all.start("n2")
		all.say("n2", "d")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"n2 back restarted", "n2#1 d"}, w.seen())
		stop()
	})
}

func TestWatchTakesInWhoJoins(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1"}, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{States: true})
		time.Sleep(time.Second)
		all.start("n2")
		all.say("n2", "hello")
		time.Sleep(watchMembers + time.Second)
		require.ElementsMatch(t, []string{"n1 is alive", "n2 is alive", "n2#1 hello"}, w.seen())
		all.mu.Lock()
		gone := all.nodes["n2"]
		delete(all.nodes, "n2")
		all.mu.Unlock()
		time.Sleep(watchMembers + time.Second)
		_, _ = gone.srv.Close(), gone.lis.Close()
		time.Sleep(watchMembers)
		require.Empty(t, w.seen(), "who has left the cluster is not missed")
		stop()
	})
}

func TestWatchOnce(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1", "n2", "n3"}, func(t *testing.T, all *journals, cl *Client) {
		for i := range 2 * watchPage {
			all.say("n2", fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		since := time.Now()
		all.say("n1", "x")
		all.nodes["n3"].status.State = "dead"
		w, stop := all.watch(cl, WatchOptions{Once: true})
		<-w.done
		require.NoError(t, w.err)
		got := w.seen()
		require.Len(t, got, 2*watchPage+2)
		require.Equal(t, []string{"n1#1 x", "n3 lost"}, got[2*watchPage:])
		stop()

		w, stop = all.watch(cl, WatchOptions{Once: true, Since: since, Nodes: []NodeID{"n1", "n2"}})
		<-w.done
		require.Equal(t, []string{"n1#1 x"}, w.seen())
		stop()
		w, stop = all.watch(cl, WatchOptions{Nodes: []NodeID{"n9"}})
		<-w.done
		require.ErrorIs(t, w.err, CodeNodeNotFound)
		stop()
	})
}

// A node may put less into an answer than it was asked for: long events fill it early.
func TestWatchOnceReadsShortAnswersToTheEnd(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1"}, func(t *testing.T, all *journals, cl *Client) {
		all.nodes["n1"].page = 3
		all.say("n1", "a", "b", "c", "d", "e", "f", "g")
		w, stop := all.watch(cl, WatchOptions{Once: true})
		<-w.done
		require.NoError(t, w.err)
		require.Equal(t, []string{"n1#1 a", "n1#2 b", "n1#3 c", "n1#4 d", "n1#5 e", "n1#6 f", "n1#7 g"}, w.seen())
		stop()
	})
}

// A list may lack a node for a while, as from a broker that has only just started: what was told does not come again.
func TestWatchDoesNotRepeatAfterAShortList(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1", "n2"}, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{States: true})
		all.say("n2", "a")
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"n1 is alive", "n2 is alive", "n2#1 a"}, w.seen())
		all.mu.Lock()
		n2 := all.nodes["n2"]
		delete(all.nodes, "n2")
		all.mu.Unlock()
		time.Sleep(3 * watchMembers)
		all.mu.Lock()
		all.nodes["n2"] = n2
		all.mu.Unlock()
		all.say("n2", "b")
		time.Sleep(3 * watchMembers)
		require.Equal(t, []string{"n2#2 b"}, w.seen())
		stop()
	})
}

func TestWatchOfANodeThatDoesNotAnswer(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1", "n2"}, func(t *testing.T, all *journals, cl *Client) {
		all.nodes["n2"].mute = true
		all.say("n1", "x")
		began := time.Now()
		w, stop := all.watch(cl, WatchOptions{Once: true})
		<-w.done
		require.Equal(t, []string{"n1#1 x", "n2 lost"}, w.seen())
		require.LessOrEqual(t, time.Since(began), watchPatience+time.Second)
		stop()
	})
}

func TestWatchTellsWhatWasDropped(t *testing.T) {
	inVirtualTime(t, []NodeID{"n1"}, func(t *testing.T, all *journals, cl *Client) {
		all.nodes["n1"].kept = 10
		all.say("n1", slices.Repeat([]string{"old"}, 50)...)
		w, stop := all.watch(cl, WatchOptions{})
		time.Sleep(time.Second)
		require.Len(t, w.seen(), 10, "what went before the watch began is no gap")
		all.net.cut("n1:2921")
		all.say("n1", slices.Repeat([]string{"new"}, 30)...)
		time.Sleep(5 * time.Second)
		seen := w.seen()
		require.True(t, slices.Contains(seen, "n1 back dropped 20") || slices.Contains(seen, "n1 dropped 20"), "%v", seen)
		stop()
	})
}

func TestWatchEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newJournals(t, "n1")
		cl := all.client()
		w, stop := all.watch(cl, WatchOptions{})
		time.Sleep(time.Second)
		require.NoError(t, cl.Close())
		<-w.done
		require.ErrorIs(t, w.err, CodeShuttingDown)
		stop()
		all.close()
	})
}

func TestWatchOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, err := NewClient(WithDialer((&fakeNet{}).dial))
		require.NoError(t, err)
		for _, err = range cl.Watch(t.Context(), WatchOptions{}) {
		}
		require.ErrorIs(t, err, CodeUnreachable)
		require.NoError(t, cl.Close())
	})
}
