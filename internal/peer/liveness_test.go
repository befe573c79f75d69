package peer

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestIdlePeersStayReachable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(3)
		changed, unsubscribe := nodes[0].Subscribe()
		defer unsubscribe()
		before := nodes[0].Stats().FramesIn
		time.Sleep(time.Minute)
		require.True(t, connected(nodes))
		require.Empty(t, changed)
		for _, s := range nodes[0].Liveness() {
			require.Less(t, time.Since(s.Heard), 130*time.Millisecond)
		}
		// Of each of two peers, a ping or an answer to one every 100 ms; both, if the two ping at the same time.
		require.InDelta(t, 1800, nodes[0].Stats().FramesIn-before, 700)
		require.Zero(t, nodes[0].Stats().Silences)
	})
}

func TestSilence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(3)
		a := nodes[0]
		changed, unsubscribe := a.Subscribe()
		defer unsubscribe()
		results := make(chan error, 1)
		_, err := a.Go("n2", kindBlock, 0, nil, func(_ []byte, err error) { results <- err })
		require.NoError(t, err)
		r := <-nodes[1].blocked

		w.network.Split("n1", "n2")
		took := a.waitStatus("n2", Unreachable)
		require.InDelta(t, 500, took.Milliseconds(), 130)
		require.Len(t, changed, 1)
		require.Equal(t, Reachable, a.status("n3"))
		began := time.Now()
		_, err = a.Call(t.Context(), "n2", kindEcho, nil)
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))
		require.Zero(t, time.Since(began))

		r.Reply(nil)
		time.Sleep(time.Second)
		w.network.Heal()
		require.Less(t, a.waitStatus("n2", Reachable), 100*time.Millisecond)
		require.NoError(t, <-results, "what was under way goes on")
		require.Equal(t, int64(1), a.Stats().Silences)
	})
}

// A connection that stays silent is given up, and made anew when the network is back.
func TestLongSilence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		results := make(chan error, 1)
		_, err := nodes[0].Go("n2", kindBlock, 0, nil, func(_ []byte, err error) { results <- err })
		require.NoError(t, err)
		w.network.Split("n1", "n2")
		began := time.Now()
		err = <-results
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		require.InDelta(t, 5000, time.Since(began).Milliseconds(), 200)
		time.Sleep(time.Minute)
		require.Equal(t, Unreachable, nodes[0].status("n2"))
		w.network.Heal()
		require.LessOrEqual(t, nodes[0].waitStatus("n2", Reachable), time.Second)
		w.settle(nodes...)
	})
}

func TestOneWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		w.network.SplitOneWay("n1", "n2")
		require.InDelta(t, 500, nodes[1].waitStatus("n1", Unreachable).Milliseconds(), 130)
		require.Equal(t, Reachable, nodes[0].status("n2"), "it goes on hearing the other's pings")
		time.Sleep(10 * time.Second)
		require.Equal(t, Unreachable, nodes[0].status("n2"), "until the other has given the connection up")
		w.network.Heal()
		w.settle(nodes...)
	})
}

// kill -9: the connection breaks, the redial is refused, and that is known at once.
func TestRefusedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(3)
		time.Sleep(time.Minute)
		changed, unsubscribe := nodes[0].Subscribe()
		defer unsubscribe()
		began := time.Now()
		w.network.Kill("n2")
		synctest.Wait()
		require.Equal(t, Refused, nodes[0].status("n2"))
		require.Equal(t, Refused, nodes[2].status("n2"))
		require.Zero(t, time.Since(began))
		require.Len(t, changed, 1)
		nodes[1].stop()

		dials := nodes[0].Stats().Dials
		time.Sleep(time.Minute)
		require.Equal(t, Refused, nodes[0].status("n2"))
		require.Less(t, nodes[0].Stats().Dials-dials, int64(250), "with pauses up to a second, half of it on average")
		require.Greater(t, nodes[0].Stats().Dials-dials, int64(50))

		again := w.start("n2")
		require.LessOrEqual(t, nodes[0].waitStatus("n2", Reachable), 2*time.Second)
		require.Equal(t, uint64(2), nodes[0].Liveness()["n2"].Boot)
		require.Equal(t, again.o.Instance, nodes[0].Liveness()["n2"].Instance)
	})
}

// A process that is killed closes its connections one after the other, and its ports at some time in between: who redials at
// once may find the port open still, and loses that connection too. The next attempt follows within milliseconds, because a
// refused port is what a segment's end waits for. So it is for a process that was away for long and has just begun.
func TestAPortThatClosesAfterItsConnections(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dying := false
		a := w.start("n1", func(o *Options) {
			dial := o.Dial
			o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
				if !dying {
					return dial(ctx, addr)
				}
				dying = false
				near, far := net.Pipe()
				return near, far.Close()
			}
		})
		b := w.start("n2")
		for _, n := range []*node{a, b} {
			require.NoError(t, n.Keep([]base.NodeID{"n1", "n2"}))
		}
		w.settle(a, b)
		time.Sleep(time.Minute)
		for round := range 50 {
			dying = true
			w.network.Kill("n2")
			require.LessOrEqual(t, a.waitStatus("n2", Refused), 10*time.Millisecond, "round %d", round)
			time.Sleep(time.Duration(round) * time.Second / 10)
			b.stop()
			b = w.start("n2")
			require.NoError(t, b.Keep([]base.NodeID{"n1", "n2"}))
			a.waitStatus("n2", Reachable)
			time.Sleep([]time.Duration{100 * time.Millisecond, time.Minute}[round%2])
		}
	})
}

func TestRetryEndsThePause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("n1", func(o *Options) { o.RetryFirst, o.RetryMost = time.Hour, time.Hour })
		require.NoError(t, a.Keep([]base.NodeID{"n2"}))
		synctest.Wait()
		w.start("n2")
		a.Retry("n2")
		synctest.Wait()
		require.Equal(t, Reachable, a.status("n2"))
	})
}

// A reset that the peer survives is mended at once, and nobody is told.
func TestReset(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		time.Sleep(time.Minute)
		changed, unsubscribe := nodes[0].Subscribe()
		defer unsubscribe()
		w.network.Reset("n1", "n2")
		time.Sleep(60 * time.Millisecond)
		_, err := nodes[0].Call(t.Context(), "n2", kindEcho, nil)
		require.NoError(t, err)
		require.Empty(t, changed)
		require.Equal(t, 1, w.network.Links())
	})
}

// A process that wakes from a stall has heard nobody for as long; that is not the others' fault.
func TestOwnStallIsForgiven(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		w.network.Split("n1", "n2")
		time.Sleep(450 * time.Millisecond)
		nodes[0].Host.mu.Lock()
		nodes[0].watched -= int64(10 * time.Second) // as if the watch had not run since
		nodes[0].Host.mu.Unlock()
		require.InDelta(t, 500, nodes[0].waitStatus("n2", Unreachable).Milliseconds(), 60, "it gets the whole time again")
	})
}

func TestForget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.mesh(2)
		require.NoError(t, nodes[0].Keep(nil))
		require.Equal(t, Reachable, nodes[0].status("n2"), "the connection goes on")
		require.NoError(t, nodes[1].Keep(nil))
		w.network.Reset("n1", "n2")
		time.Sleep(5 * time.Second)
		require.Empty(t, nodes[0].Liveness())
		require.Empty(t, nodes[1].Liveness())
		require.Zero(t, w.network.Links())
	})
}
