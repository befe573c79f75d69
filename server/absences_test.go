package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

func TestWhoIsGoneForTooLongGoesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var term atomic.Uint64
		var view atomic.Pointer[topology.View]
		set := func(events ...topology.Event) {
			v := topology.View{}
			for _, e := range events {
				v = topology.Reduce(v, e)
			}
			view.Store(&v)
		}
		seen := func(id base.NodeID) topology.Event {
			return topology.Event{Seen: &topology.Seen{ID: id, Boot: 1, Admitted: true}}
		}
		dead := topology.Event{Moved: &topology.Moved{ID: "n2", Boot: 1, Liveness: topology.Dead}}
		set(seen("n1"), seen("n2"), dead)
		out := make(chan time.Duration, 10)
		a := &absences{
			after: 300 * time.Second, leading: term.Load, logger: slog.New(slog.DiscardHandler),
			known: func() []base.NodeID { return []base.NodeID{"n1", "n2"} },
			view:  func() topology.View { return *view.Load() },
			propose: func(_ context.Context, cmd meta.Command) error {
				require.Equal(t, &meta.SetNodeState{Node: "n2", State: meta.NodeOut}, cmd.SetNodeState)
				set(seen("n1"), seen("n2"), dead, topology.Event{Standing: &topology.StandingChange{ID: "n2", Standing: topology.Out}})
				out <- time.Since(start).Round(time.Second)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.run(ctx)
		}()
		time.Sleep(400 * time.Second)
		require.Empty(t, out, "it does not lead the root")
		term.Store(3)
		time.Sleep(200 * time.Second)
		term.Store(5) // led again after somebody else: nothing of before counts
		time.Sleep(299 * time.Second)
		require.Empty(t, out)
		require.InDelta(t, 901, (<-out).Seconds(), 2)
		time.Sleep(time.Hour)
		require.Empty(t, out, "once")
		cancel()
		<-done
	})
}
