package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// watched is a journal and a state to watch, without a broker.
type watched struct {
	watches
	journal *telemetry.Journal

	mu     sync.Mutex
	voters uint64 // stands for the state
	looks  int
}

const watchedBoot = 3

func newWatched(kept int) *watched {
	w := &watched{journal: telemetry.NewJournal(kept)}
	w.begin(watchSource{
		node: "n1", boot: watchedBoot, journal: w.journal,
		state: func() wire.WatchedState {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looks++
			return wire.WatchedState{RingVersion: w.voters}
		},
		run: func(f func()) error { go f(); return nil },
	})
	return w
}

func (w *watched) happens(name string) {
	w.journal.Append(telemetry.Event{Type: name, Detail: map[string]string{"shard": "3"}})
	w.wake()
}

// moves changes the state, and says so or not.
func (w *watched) moves(silently bool) {
	w.mu.Lock()
	w.voters++
	w.mu.Unlock()
	if !silently {
		w.changed()
	}
}

// polled is one answer and when it came.
type polled struct {
	wire.WatchNodeResponse
	err   error
	after time.Duration
}

func (p polled) types() string {
	var list []string
	for _, e := range p.Events {
		list = append(list, e.Type)
	}
	return strings.Join(list, " ")
}

func (w *watched) poll(ctx context.Context, req wire.WatchNodeRequest) <-chan polled {
	start, answer := time.Now(), make(chan polled, 1)
	w.follow(ctx, req, func(r wire.WatchNodeResponse, err error) {
		answer <- polled{r, err, time.Since(start)}
	})
	return answer
}

// next is the request that goes on where an answer ended.
func (p polled) next(wait time.Duration) wire.WatchNodeRequest {
	return wire.WatchNodeRequest{Boot: p.Boot, From: p.Next, Seen: p.StateVersion, WaitMs: wait.Milliseconds()}
}

func TestWatchBeginsWithEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		w.happens("A")
		w.happens("B")
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{WaitMs: 30_000})
		require.NoError(t, p.err)
		require.Zero(t, p.after, "the first answer comes at once")
		require.Equal(t, "A B", p.types())
		require.Equal(t, "shard=3", p.Events[0].Detail)
		require.EqualValues(t, 3, p.Next)
		require.EqualValues(t, watchedBoot, p.Boot)
		require.Equal(t, base.NodeID("n1"), p.Node)
		require.NotNil(t, p.State)
		require.EqualValues(t, 1, p.StateVersion)
	})
}

func TestWatchWaitsForWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		second := w.poll(t.Context(), first.next(30*time.Second))
		time.Sleep(10 * time.Second)
		w.happens("A")
		p := <-second
		require.Equal(t, 10*time.Second, p.after)
		require.Equal(t, "A", p.types())
		require.Nil(t, p.State, "it is as it was")
		require.Equal(t, first.StateVersion, p.StateVersion)

		third := w.poll(t.Context(), p.next(2*time.Second))
		p = <-third
		require.Equal(t, 2*time.Second, p.after, "a heartbeat")
		require.Empty(t, p.Events)
		require.Nil(t, p.State)
		require.EqualValues(t, 2, p.Next)
	})
}

// A change of state is told as soon as somebody says so, and within a second if nobody does.
func TestWatchTellsChangesOfState(t *testing.T) {
	for name, tc := range map[string]struct {
		silently bool
		within   time.Duration
	}{"reported": {false, 0}, "unreported": {true, watchRecheck}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched(0)
			first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
			second := w.poll(t.Context(), first.next(30*time.Second))
			time.Sleep(10100 * time.Millisecond)
			w.moves(tc.silently)
			p := <-second
			require.NotNil(t, p.State, name)
			require.EqualValues(t, 1, p.State.RingVersion, name)
			require.Equal(t, first.StateVersion+1, p.StateVersion, name)
			require.LessOrEqual(t, p.after-10100*time.Millisecond, tc.within, name)
		})
	}
}

// A storm of events comes in pages, at most twenty answers a second.
func TestWatchKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		const storm = 5 * time.Second
		go func() {
			for start := time.Now(); time.Since(start) < storm; time.Sleep(time.Millisecond) {
				w.happens("A")
			}
		}()
		answers, events := 0, 0
		for start := time.Now(); time.Since(start) < storm; answers++ {
			p = <-w.poll(t.Context(), p.next(30*time.Second))
			require.NoError(t, p.err)
			require.Zero(t, p.Lost)
			events += len(p.Events)
		}
		require.LessOrEqual(t, answers, int(storm/watchPace)+1)
		require.GreaterOrEqual(t, answers, int(storm/watchPace)/2)
		require.GreaterOrEqual(t, events, 4900)
	})
}

// A backlog is read without pauses, in pages of the size asked for, and without holes.
func TestWatchReadsABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		for i := range 2500 {
			w.happens(fmt.Sprint("E", i))
		}
		start := time.Now()
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{MaxEvent: 1_000_000})
		require.Len(t, p.Events, maxWatchEvents)
		for seen := len(p.Events); seen < 2500; seen += len(p.Events) {
			require.EqualValues(t, seen+1, p.Next)
			require.True(t, p.More)
			q := p.next(30 * time.Second)
			q.MaxEvent = 700
			p = <-w.poll(t.Context(), q)
			require.EqualValues(t, seen+1, p.Events[0].Seq)
		}
		require.False(t, p.More)
		require.LessOrEqual(t, time.Since(start), watchPace, "only the last page keeps the pace")
	})
}

// Long events fill an answer before there are as many as were asked for, and it says that there are more.
func TestWatchSaysThatLongEventsDidNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		long := strings.Repeat("x", maxWatchBytes/4)
		for range 10 {
			w.source.journal.Append(telemetry.Event{Type: "E", Before: long})
		}
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		require.Less(t, len(p.Events), 10)
		require.True(t, p.More)
		for seen := len(p.Events); p.More; seen += len(p.Events) {
			p = <-w.poll(t.Context(), p.next(0))
			require.EqualValues(t, seen+1, p.Events[0].Seq)
		}
		require.EqualValues(t, 10, p.Events[len(p.Events)-1].Seq)
	})
}

func TestWatchSaysWhatItLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(10)
		first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		for range 25 {
			w.happens("A")
		}
		p := <-w.poll(t.Context(), first.next(time.Second))
		require.EqualValues(t, 15, p.Lost)
		require.Len(t, p.Events, 10)
		require.EqualValues(t, 16, p.Events[0].Seq)
	})
}

// What a client saw of an earlier start of the node says nothing about this one.
func TestWatchOfANodeThatRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		w.happens("A")
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{Boot: watchedBoot - 1, From: 4711, Seen: 1, WaitMs: 30_000})
		require.Zero(t, p.after)
		require.Equal(t, "A", p.types())
		require.NotNil(t, p.State)

		p = <-w.poll(t.Context(), wire.WatchNodeRequest{Boot: watchedBoot, From: 4711, Seen: p.StateVersion, WaitMs: 100})
		require.EqualValues(t, 2, p.Next, "no number that is yet to come can have been seen")
	})
}

func TestWatchBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		for _, ms := range []int64{31_000, 1 << 62} {
			p := <-w.poll(t.Context(), wire.WatchNodeRequest{Boot: first.Boot, From: first.Next, Seen: first.StateVersion, WaitMs: ms})
			require.Equal(t, maxWatchWait, p.after, "%d", ms)
		}
		p := <-w.poll(t.Context(), wire.WatchNodeRequest{Boot: first.Boot, From: first.Next, Seen: first.StateVersion, WaitMs: -1})
		require.Zero(t, p.after)

		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan polled
		for range maxWatchers {
			waiting = append(waiting, w.poll(ctx, first.next(30*time.Second)))
		}
		synctest.Wait()
		refused := <-w.poll(t.Context(), first.next(30*time.Second))
		require.ErrorIs(t, refused.err, base.CodeBusy)
		looks := w.looks
		w.moves(false)
		for _, c := range waiting {
			p := <-c
			require.NoError(t, p.err)
			require.NotNil(t, p.State)
		}
		require.LessOrEqual(t, w.looks-looks, 3, "one look serves all")
		require.Zero(t, w.len())
		cancel()
	})
}

// A connection that ends takes its polls with it.
func TestWatchOfAClientThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		ctx, cancel := context.WithCancel(t.Context())
		second := w.poll(ctx, first.next(30*time.Second))
		synctest.Wait()
		require.Equal(t, 1, w.len())
		cancel()
		p := <-second
		require.ErrorIs(t, p.err, base.CodeCanceled)
		require.Zero(t, p.after)

		p = <-w.poll(ctx, first.next(30*time.Second))
		require.ErrorIs(t, p.err, base.CodeCanceled, "it had gone before it asked")
		require.Zero(t, w.len())
	})
}

func TestWatchEndsWithTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(0)
		first := <-w.poll(t.Context(), wire.WatchNodeRequest{})
		second := w.poll(t.Context(), first.next(30*time.Second))
		synctest.Wait()
		w.happens("STOPPING")
		w.close()
		p := <-second
		require.NoError(t, p.err)
		require.Equal(t, "STOPPING", p.types(), "the last words are heard")
		p = <-w.poll(t.Context(), first.next(30*time.Second))
		require.ErrorIs(t, p.err, base.CodeShuttingDown)
	})
}

// Nobody misses an event, however polls and events meet.
func TestWatchMissesNothing(t *testing.T) {
	const watchers, events = 8, 400
	w := newWatched(0)
	var wg sync.WaitGroup
	for range watchers {
		wg.Go(func() {
			p := <-w.poll(t.Context(), wire.WatchNodeRequest{})
			for want := uint64(len(p.Events)) + 1; want <= events; {
				p = <-w.poll(t.Context(), p.next(10*time.Second))
				for _, e := range p.Events {
					if e.Seq != want {
						t.Errorf("event %d came for %d", e.Seq, want)
						return
					}
					want++
				}
				if len(p.Events) == 0 && w.journal.End() > want {
					t.Errorf("a heartbeat, while event %d is there", want)
					return
				}
			}
		})
	}
	for i := range events {
		w.happens("A")
		if i%40 == 0 {
			w.moves(false)
		}
	}
	wg.Wait()
}

// A broker's own journal and state, asked over its client port.
func TestWatchABroker(t *testing.T) {
	n := start(t, vfs.NewMem())
	first := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{})
	require.Equal(t, n.id.Boot, first.Boot)
	require.Len(t, first.State.Shards, 4)
	require.Equal(t, base.NodeID("n1"), first.State.Self.ID)
	require.Equal(t, 4, first.State.Self.ShardLeaders)
	require.Len(t, first.State.Members, 1)
	require.NotZero(t, first.State.RingHash)

	// Topics are not part of the state. Something else may change at the same time, but not each time.
	alone := func(name string) bool {
		n.create(name, base.TopicConfig{ReplicationFactor: 1})
		resp := must[wire.WatchNodeResponse](n, wire.KindWatchNode, wire.WatchNodeRequest{
			Boot: first.Boot, From: first.Next, Seen: first.StateVersion, WaitMs: 20_000,
		})
		first.Next, first.StateVersion = resp.Next, resp.StateVersion
		return resp.State == nil && resp.Events[0].Type == "TOPIC_CREATED" && resp.Events[0].Subject == name
	}
	for i := 0; !alone(fmt.Sprint("orders-", i)); i++ {
		require.Less(t, i, 20, "each topic came with a state")
	}
}
