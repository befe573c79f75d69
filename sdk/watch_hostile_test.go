package sdk

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// liar is a node that answers at once, whatever it is asked to wait, and with whatever a test has it say.
type liar struct {
	srv   *mux.Server
	nodes []NodeStatus
	watch func(n int, req wire.WatchNodeRequest) wire.WatchNodeResponse
	logs  func(n int, req wire.WatchLogsRequest) wire.WatchLogsResponse

	mu    sync.Mutex
	asked int
}

// listen puts the liar n1 on a network.
func (l *liar) listen(net *fakeNet) {
	l.nodes = append([]NodeStatus{{ID: "n1", State: "alive", Address: "n1:2921"}}, l.nodes...)
	l.srv = mux.NewServer(mux.ServerOptions{
		Handler: mux.HandlerFunc(l.handle),
		Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
			return wire.HelloResponse{Cluster: base.ClusterID{1}, Node: "n1"}, nil
		},
	})
	lis := net.listen("n1:2921")
	go func() { _ = l.srv.Serve(lis) }()
}

func (l *liar) handle(_ context.Context, r *mux.Request) {
	if r.Kind == wire.KindListNodes {
		r.Reply(wire.Encode(wire.ListNodesResponse{Observer: "n1", Nodes: l.nodes}))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	switch r.Kind {
	case wire.KindWatchNode:
		var req wire.WatchNodeRequest
		if err := r.Decode(&req); err != nil {
			r.Fail(err)
			return
		}
		resp := l.watch(l.asked, req)
		resp.Node = "n1"
		r.Reply(wire.Encode(resp))
	case wire.KindWatchLogs:
		var req wire.WatchLogsRequest
		if err := r.Decode(&req); err != nil {
			r.Fail(err)
			return
		}
		resp := l.logs(l.asked, req)
		resp.Node = "n1"
		r.Reply(wire.Encode(resp))
	default:
		r.Reply(nil)
	}
}

func (l *liar) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// among puts the liar n1 beside the honest node n2, in virtual time.
func (l *liar) among(t *testing.T, run func(t *testing.T, all *journals, cl *Client)) {
	synctest.Test(t, func(t *testing.T) {
		all := newJournals(t, "n2")
		l.nodes = append(l.nodes, all.nodes["n2"].status)
		l.listen(all.net)
		all.also = l.nodes[:1]
		cl := all.client()
		run(t, all, cl)
		require.NoError(t, cl.Close())
		require.NoError(t, l.srv.Close())
		all.close()
		synctest.Wait()
	})
}

func told(seqs ...uint64) (events []Event) {
	for _, s := range seqs {
		events = append(events, Event{Seq: s, TimeMs: time.Now().UnixMilli(), Type: "TOPIC", Subject: "lie"})
	}
	return events
}

// What no broker says makes a node one that cannot be listened to, with the reason, and nothing of it is told; the others
// go on.
func TestWatchRefusesNonsense(t *testing.T) {
	many := make([]uint64, 2000)
	for i := range many {
		many[i] = uint64(i + 1)
	}
	for _, tc := range []struct {
		name, why string
		answer    func(n int, req wire.WatchNodeRequest) wire.WatchNodeResponse
	}{
		{"more of nothing", "there is more, and nothing of it", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 1, More: true}
		}},
		{"out of order", "event 2, where 4 was to come next", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 4, Events: told(3, 2)}
		}},
		{"doubles", "event 3, where 4 was to come next", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 4, Events: told(3, 3)}
		}},
		{"the last number", "which nothing can follow", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 0, Events: told(math.MaxUint64)}
		}},
		{"back to the start", "that event 1 comes next, where 3 does", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 1, Events: told(1, 2)}
		}},
		{"too many", "2000 events, where 1000 were asked for", func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 2001, Events: told(many...)}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &liar{watch: tc.answer}
			l.among(t, func(t *testing.T, all *journals, cl *Client) {
				w, stop := all.watch(cl, WatchOptions{})
				time.Sleep(5 * time.Second)
				all.say("n2", "true")
				time.Sleep(time.Minute)
				stop()
				require.Equal(t, []string{"n1 lost", "n2#1 true"}, w.seen())
				require.Len(t, w.why, 1, "told once")
				require.Contains(t, w.why[0], "node n1 tells nonsense: ")
				require.Contains(t, w.why[0], tc.why)
				require.Less(t, l.requests(), 100, "it is asked again, less and less often")
			})
		})
	}
}

// The same within a start: numbers that were told are not told again.
func TestWatchRefusesWhatWasTold(t *testing.T) {
	l := &liar{watch: func(n int, _ wire.WatchNodeRequest) wire.WatchNodeResponse {
		return wire.WatchNodeResponse{Boot: 1, Next: 3, Events: told(1, 2)}
	}}
	l.among(t, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{})
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"n1#1 lie", "n1#2 lie", "n1 lost"}, w.seen())
	})
}

// A node that never waits, and one whose backlog has no end, are asked at a pace; a watch that ends does end.
func TestWatchHasAPaceOfItsOwn(t *testing.T) {
	endless := func(n int, req wire.WatchNodeRequest) wire.WatchNodeResponse {
		return wire.WatchNodeResponse{Boot: 1, ObservedMs: time.Now().UnixMilli(), Events: told(req.From + 1), Next: req.From + 2, More: true}
	}
	for name, answer := range map[string]func(int, wire.WatchNodeRequest) wire.WatchNodeResponse{
		"heartbeats without end": func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
			return wire.WatchNodeResponse{Boot: 1, Next: 1}
		},
		"a backlog without end": endless,
	} {
		t.Run(name, func(t *testing.T) {
			l := &liar{watch: answer}
			l.among(t, func(t *testing.T, all *journals, cl *Client) {
				_, stop := all.watch(cl, WatchOptions{})
				time.Sleep(10 * time.Second)
				stop()
				require.LessOrEqual(t, l.requests(), int(10*time.Second/pullPace)+2) // the first, and one at the very end
			})
		})
	}
	t.Run("once", func(t *testing.T) {
		l := &liar{watch: endless}
		l.among(t, func(t *testing.T, all *journals, cl *Client) {
			w, stop := all.watch(cl, WatchOptions{Once: true})
			time.Sleep(2 * keptEvents * pullPace)
			select {
			case <-w.done:
			default:
				t.Fatal("it goes on")
			}
			stop()
		})
	})
}

// A clock that is years behind hides what was before, not what happens now.
func TestWatchOfAClockYearsBehind(t *testing.T) {
	l := &liar{watch: func(n int, req wire.WatchNodeRequest) wire.WatchNodeResponse {
		resp := wire.WatchNodeResponse{Boot: 1, ObservedMs: 1000, Next: max(req.From, 1)}
		if n == 1 || n == 5 {
			resp.Events = []Event{{Seq: resp.Next, TimeMs: 1000, Type: "TOPIC", Subject: fmt.Sprint("of answer ", n)}}
			resp.Next++
		}
		return resp
	}}
	l.among(t, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{Since: time.Now().Add(-time.Hour)})
		time.Sleep(10 * time.Second)
		stop()
		require.Equal(t, []string{"n1#2 of answer 5"}, w.seen())
	})
}

// A list of more nodes than there can be costs no more than those that are followed, and it is said which are not.
func TestWatchOfTooManyNodes(t *testing.T) {
	l := &liar{watch: func(int, wire.WatchNodeRequest) wire.WatchNodeResponse {
		return wire.WatchNodeResponse{Boot: 1, Next: 1}
	}}
	for i := range maxKnownNodes + 100 {
		l.nodes = append(l.nodes, NodeStatus{ID: NodeID(fmt.Sprintf("m%05d", i)), State: "alive", Address: "n1:2921"})
	}
	l.among(t, func(t *testing.T, all *journals, cl *Client) {
		w, stop := all.watch(cl, WatchOptions{})
		time.Sleep(6 * time.Second)
		stop()
		tooMany := 0
		for _, why := range w.why {
			if strings.Contains(why, "is one too many") {
				tooMany++
			}
		}
		require.Equal(t, maxPlaces, tooMany, "it is said of as many as are remembered")
		cl.brokers.mu.Lock()
		defer cl.brokers.mu.Unlock()
		require.LessOrEqual(t, len(cl.brokers.mu.nodes), maxKnownNodes)
	})
}

// What a log has been holding comes to an end, though a node says that it never does.
func TestLogsWithoutEnd(t *testing.T) {
	for name, follow := range map[string]bool{"follow": true, "once": false} {
		t.Run(name, func(t *testing.T) {
			l := &liar{logs: func(_ int, req wire.WatchLogsRequest) wire.WatchLogsResponse {
				resp := wire.WatchLogsResponse{Boot: 1, Next: max(req.From, 1) + uint64(req.MaxLines), More: true}
				for i := range req.MaxLines {
					resp.Lines = append(resp.Lines, LogLine{Seq: max(req.From, 1) + uint64(i)})
				}
				return resp
			}}
			synctest.Test(t, func(t *testing.T) {
				net := &fakeNet{listeners: make(map[string]*fakeListener)}
				l.listen(net)
				cl, err := NewClient(WithSeeds("n1"), WithDialer(net.dial))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				lines := 0
				for ev, err := range cl.Logs(ctx, LogOptions{Follow: follow}) {
					require.NoError(t, err)
					require.NoError(t, ev.Err)
					lines++
				}
				require.GreaterOrEqual(t, lines, keptLines)
				require.Equal(t, follow, ctx.Err() != nil, "only who follows goes on")
				require.LessOrEqual(t, l.requests(), int(10*time.Second/pullPace)+2) // the first, and one at the very end
				require.NoError(t, cl.Close())
				require.NoError(t, l.srv.Close())
			})
		})
	}
}
