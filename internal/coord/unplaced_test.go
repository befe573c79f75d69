package coord

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// without runs f while the coordinator sees no node at all.
func (w *world) without(f func()) {
	w.mu.Lock()
	good := w.view
	w.view = topology.View{}
	w.mu.Unlock()
	f()
	w.mu.Lock()
	w.view = good
	w.mu.Unlock()
}

// A roll that no nodes can take the successor of is told of, for as long as it is wanted.
func TestARollThatWantsNodesIsToldOf(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, req RollRequest){
		"it is placed": func(t *testing.T, w *world, req RollRequest) {
			_, err := w.coord.RequestRoll(t.Context(), req)
			require.NoError(t, err)
		},
		"its topic is deleted": func(t *testing.T, w *world, _ RollRequest) {
			_, err := w.Propose(t.Context(), base.RootShard, meta.Command{DeleteTopic: &meta.DeleteTopic{Name: "orders"}})
			require.NoError(t, err)
		},
		"nobody asks any more": func(*testing.T, *world, RollRequest) { time.Sleep(2 * unplacedFor) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				req := w.rollRequest(w.create("orders", base.TopicConfig{}, 1), 1)
				began := time.Now()
				w.without(func() {
					for range 3 {
						_, err := w.coord.RequestRoll(t.Context(), req)
						require.ErrorIs(t, err, base.CodeNotEnoughNodes)
						time.Sleep(time.Second)
					}
				})
				stuck := w.coord.Stuck()
				require.Len(t, stuck, 1)
				require.True(t, stuck[0].Nodes)
				require.Equal(t, req.Segment, stuck[0].Segment)
				require.Equal(t, req.Ref, stuck[0].Ref)
				require.Equal(t, "0 of 0 nodes can take a segment, 1 are needed", stuck[0].Reason)
				require.Less(t, stuck[0].Since.Sub(began), time.Second, "since it was wanted first")
				end(t, w, req)
				settle()
				synctest.Wait()
				require.Empty(t, w.coord.Stuck())
			})
		})
	}
}

// A recovery whose end is known, and for whose successor there are no nodes, is no segment whose end nobody can tell.
func TestARecoveryThatWantsNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		settle()
		req := w.rollRequest(topic, -1)
		w.without(func() {
			_, err := w.coord.RequestRoll(t.Context(), req)
			require.Error(t, err)
			settle() // the answer comes before the turn's figures are published
			stuck := w.coord.Stuck()
			require.Len(t, stuck, 1)
			require.True(t, stuck[0].Nodes, stuck[0].Reason)
		})
		w.awaitSealed(t, "orders", 10*time.Second)
		settle()
		require.Empty(t, w.coord.Stuck())
	})
}
