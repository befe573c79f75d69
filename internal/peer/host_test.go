package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestCalls(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		a, b := nodes[0], nodes[1]
		for _, size := range []int{0, 1, copyBelow - 1, copyBelow, 3 * bodyAtATime / 2, MaxBody} {
			msg := []byte(strings.Repeat("x", size))
			got, err := b.Call(t.Context(), "n1", kindEcho, msg)
			require.NoError(t, err)
			require.Len(t, got, size)
			require.Equal(t, string(msg), string(got))
		}
		require.NoError(t, a.Send("n2", kindNote, []byte("hello")))
		require.Equal(t, "n1 0 hello", <-b.notes)

		answers := make(chan string, 1)
		_, err := a.Go("n2", kindEcho, 3, []byte("async"), func(b []byte, err error) { answers <- fmt.Sprint(string(b), err) })
		require.NoError(t, err)
		require.Equal(t, "async<nil>", <-answers)

		for _, tc := range []struct {
			node base.NodeID
			kind Kind
			size int
			want base.Code
		}{
			{"n1", kindEcho, 0, base.CodeInvalidArgument},
			{"n2", kindPing, 0, base.CodeInvalidArgument},
			{"n2", kindEcho, MaxBody + 1, base.CodeInvalidArgument},
			{"n2", Control + 99, 0, base.CodeUnknownKind},
			{"nowhere", kindEcho, 0, base.CodeUnreachable},
			{"n9", kindEcho, 0, base.CodeUnreachable},
		} {
			_, err := a.Call(t.Context(), tc.node, tc.kind, make([]byte, tc.size))
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, base.NotApplied, base.OutcomeOf(err))
		}
		synctest.Wait()
		require.Equal(t, 1, w.network.Links())
	})
}

func TestErrorsKeepTheirShape(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		want := base.Errorf(base.CodeNotLeader, "assign", "n3 leads").WithHint("ask n3").WithOutcome(base.Unknown).WithRedirect(base.Redirect{Node: "n3"})
		go func() { (<-nodes[1].blocked).Fail(want) }()
		_, err := nodes[0].Call(t.Context(), "n2", kindBlock, nil)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		want.Node = "n2"
		require.Equal(t, want, e)
	})
}

func TestGivingUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		_, err := nodes[0].Call(within1s(t), "n2", kindBlock, nil)
		require.ErrorIs(t, err, base.CodeTimeout)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		(<-nodes[1].blocked).Reply([]byte("late"))

		results := make(chan error, 2)
		cancel, err := nodes[0].Go("n2", kindBlock, 0, nil, func(_ []byte, err error) { results <- err })
		require.NoError(t, err)
		cancel()
		cancel()
		require.ErrorIs(t, <-results, base.CodeCanceled)
		r := <-nodes[1].blocked
		r.Reply(nil)
		r.Reply(nil) // ignored
		synctest.Wait()
		require.Empty(t, results)
		require.Zero(t, nodes[1].peers["n1"].lanes[mainLane].conn.requests.Load())

		got, err := nodes[0].Call(t.Context(), "n2", kindEcho, []byte("next"))
		require.NoError(t, err)
		require.Equal(t, "next", string(got))
	})
}

// However they dial, two nodes end up with one connection, on both ends the same.
func TestOneConnectionAPair(t *testing.T) {
	for seed := range seeds(6) {
		inWorld(t, func(t *testing.T, w *world) {
			nodes := w.mesh(5)
			rng := rand.New(rand.NewPCG(uint64(seed), 0))
			for range 10 {
				a, b := rng.IntN(5)+1, rng.IntN(5)+1
				w.network.Reset(fmt.Sprint("n", a), fmt.Sprint("n", b))
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			w.settle(nodes...)
			synctest.Wait()
			require.Equal(t, 10, w.network.Links())
			for _, n := range nodes {
				require.Equal(t, 4, n.Stats().Connections)
			}
		})
	}
}

func TestGroupsAreQueued(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gates := map[uint32]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})}
		var mu sync.Mutex
		var served []string
		b := w.start("n2")
		b.Register(kindGroup, b.Queued(3, func(_ context.Context, r *Request) ([]byte, error) {
			<-gates[r.Group]
			mu.Lock()
			defer mu.Unlock()
			served = append(served, fmt.Sprint(r.Group, string(r.Body)))
			if string(r.Body) == "2" {
				return nil, base.Errorf(base.CodeFenced, "append", "old epoch")
			}
			return r.Body, nil
		}))
		a := w.start("n1")
		require.NoError(t, a.Keep([]base.NodeID{"n2"}))
		w.settle(a, b)

		results := make(map[string]chan error)
		send := func(group uint32, msg string) {
			c := make(chan error, 1)
			results[fmt.Sprint(group, msg)] = c
			_, err := a.Go("n2", kindGroup, group, []byte(msg), func(_ []byte, err error) { c <- err })
			require.NoError(t, err)
		}
		for _, msg := range []string{"1", "2", "3", "4", "5"} {
			send(1, msg)
		}
		require.ErrorIs(t, <-results["15"], base.CodeBusy, "one is served, three wait")
		send(2, "other")
		close(gates[2])
		require.NoError(t, <-results["2other"], "another group does not wait")
		close(gates[1])
		require.NoError(t, <-results["11"])
		require.ErrorIs(t, <-results["12"], base.CodeFenced)
		require.NoError(t, <-results["14"])
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"2other", "11", "12", "13", "14"}, served)
	})
}

func TestLimits(t *testing.T) {
	t.Run("requests", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.start("n1"), w.start("n2", func(o *Options) { o.MaxInFlight = 2; o.InFlightBytes = 100 })
			require.NoError(t, a.Keep([]base.NodeID{"n2"}))
			w.settle(a, b)
			for range 2 {
				_, err := a.Go("n2", kindBlock, 0, nil, func([]byte, error) {})
				require.NoError(t, err)
			}
			_, err := a.Call(t.Context(), "n2", kindEcho, nil)
			require.ErrorIs(t, err, base.CodeBusy)
			(<-b.blocked).Reply(nil)
			_, err = a.Call(t.Context(), "n2", kindEcho, make([]byte, 101))
			require.ErrorIs(t, err, base.CodeBusy, "too many bytes beside another")
			(<-b.blocked).Reply(nil)
			_, err = a.Call(t.Context(), "n2", kindEcho, make([]byte, 101))
			require.NoError(t, err, "alone it may")
		})
	})
	t.Run("queue", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			nodes := w.mesh(2, func(o *Options) { o.QueueBytes = 1 << 20 })
			w.network.Split("n1", "n2")
			var busy error
			for range 10 {
				if err := nodes[0].Send("n2", kindNote, make([]byte, 500<<10)); err != nil {
					busy = err
				}
				synctest.Wait()
			}
			require.ErrorIs(t, busy, base.CodeBusy)
			require.Equal(t, base.NotApplied, base.OutcomeOf(busy))
		})
	})
	t.Run("calls", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.start("n1", func(o *Options) { o.MaxInFlight = 1 })
			b := w.start("n2")
			require.NoError(t, a.Keep([]base.NodeID{"n2"}))
			w.settle(a, b)
			_, err := a.Go("n2", kindBlock, 0, nil, func([]byte, error) {})
			require.NoError(t, err)
			_, err = a.Call(t.Context(), "n2", kindEcho, nil)
			require.ErrorIs(t, err, base.CodeBusy)
		})
	})
	t.Run("peers", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.start("n1", func(o *Options) { o.MaxPeers = 2 })
			require.ErrorIs(t, a.Keep([]base.NodeID{"n2", "n3", "n4"}), base.CodeBusy)
			require.Len(t, a.Liveness(), 2)
		})
	})
}

func TestBulkLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		got, err := nodes[1].Call(t.Context(), "n1", kindChunk, []byte("chunk"))
		require.NoError(t, err)
		require.Equal(t, "chunk", string(got))
		_, err = nodes[0].Call(t.Context(), "n2", kindChunk, nil)
		require.NoError(t, err)
		require.Equal(t, 2, w.network.Links(), "one lane for both directions")
		time.Sleep(31 * time.Second)
		require.Equal(t, 1, w.network.Links(), "idle, so closed")
		_, err = nodes[0].Call(t.Context(), "n2", kindChunk, nil)
		require.NoError(t, err, "and opened again")
	})
}

// A node that is not kept is dialled for a call and forgotten when the connection ends.
func TestOnDemand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("n1"), w.start("n2")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := a.Call(t.Context(), "n2", kindEcho, nil)
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), a.Stats().Dials)
		require.Equal(t, Reachable, a.status("n2"))
		time.Sleep(time.Second)
		b.kill()
		synctest.Wait()
		require.Empty(t, a.Liveness())
		_, err := a.Call(t.Context(), "n2", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		time.Sleep(time.Second)
		require.Empty(t, a.Liveness())
	})
}

func TestClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		results := make(chan error, 1)
		_, err := nodes[0].Go("n2", kindBlock, 0, nil, func(_ []byte, err error) { results <- err })
		require.NoError(t, err)
		<-nodes[1].blocked
		require.NoError(t, nodes[0].Close())
		require.NoError(t, nodes[0].Close())
		err = <-results
		require.ErrorIs(t, err, base.CodeShuttingDown)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		_, err = nodes[0].Call(t.Context(), "n2", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeShuttingDown)
		require.ErrorIs(t, nodes[0].Keep(nil), base.CodeShuttingDown)
	})
}

// Who stops does not wonder about it; the others say that a connection broke.
func TestOnlyOthersLogThatANodeStops(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		logs := make(map[base.NodeID]*bytes.Buffer)
		nodes := w.mesh(2, func(o *Options) {
			logs[o.Node] = new(bytes.Buffer)
			o.Logger = slog.New(slog.NewTextHandler(logs[o.Node], nil))
		})
		require.NoError(t, nodes[0].Close())
		synctest.Wait()
		require.NotContains(t, logs["n1"].String(), "peer connection ended")
		require.Contains(t, logs["n2"].String(), "peer connection ended")
	})
}

// Whatever happens to the network, each call ends exactly once and in time, and when the trouble is over all are
// connected again.
func TestChaos(t *testing.T) {
	for seed := range seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { inWorld(t, func(t *testing.T, w *world) { chaos(t, w, uint64(seed)) }) })
	}
}

func chaos(t *testing.T, w *world, seed uint64) {
	const size = 4
	nodes := w.mesh(size)
	names := []base.NodeID{"n1", "n2", "n3", "n4"}
	var mu sync.Mutex // guards nodes
	rng := rand.New(rand.NewPCG(seed, 1))
	var over atomic.Bool
	var callers sync.WaitGroup
	var answered, failed atomic.Int64
	for i := range size * 2 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)+10))
			for !over.Load() {
				from, to := rng.IntN(size), rng.IntN(size)
				mu.Lock()
				n := nodes[from]
				mu.Unlock()
				kind := kindEcho
				if rng.IntN(5) == 0 {
					kind = kindChunk
				}
				if from != to && callOnce(t, n, names[to], kind, rng.IntN(3*copyBelow)) {
					answered.Add(1)
				} else {
					failed.Add(1)
				}
				time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
			}
		})
	}
	for range 100 {
		a, b := fmt.Sprint("n", rng.IntN(size)+1), fmt.Sprint("n", rng.IntN(size)+1)
		switch rng.IntN(6) {
		case 0:
			w.network.Split(a, b)
		case 1:
			w.network.SplitOneWay(a, b)
		case 2, 3:
			w.network.Heal()
		case 4:
			w.network.Reset(a, b)
		case 5:
			i := rng.IntN(size)
			nodes[i].kill()
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			n := w.start(names[i])
			require.NoError(t, n.Keep(names))
			mu.Lock()
			nodes[i] = n
			mu.Unlock()
		}
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
	}
	w.network.Heal()
	over.Store(true)
	callers.Wait()
	w.settle(nodes...)
	time.Sleep(35 * time.Second) // bulk lanes become idle
	require.True(t, connected(nodes))
	require.Equal(t, size*(size-1)/2, w.network.Links())
	for _, n := range nodes {
		require.Empty(t, n.seenTwins())
	}
	require.Greater(t, answered.Load(), failed.Load()/4)
}

func callOnce(t *testing.T, n *node, to base.NodeID, kind Kind, size int) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	got, err := n.Call(ctx, to, kind, make([]byte, size))
	if err == nil {
		require.Len(t, got, size)
		return true
	}
	var e *base.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.LessOrEqual(t, time.Since(began), 3*time.Second)
	return false
}
