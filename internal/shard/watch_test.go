package shard

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/peer"
)

// TestTheSilenceOfAStalledProcessIsItsOwnFault: after it has stood still, nobody counts as silent for what it missed; a
// port that refuses is another matter.
func TestTheSilenceOfAStalledProcessIsItsOwnFault(t *testing.T) {
	inPlant(t, 3, 1, func(t *testing.T, p *plant) {
		p.seatAll()
		w := p.nodes["n2"].host.watch
		p.network.Split("n1", "n2")
		time.Sleep(400 * time.Millisecond)
		now := time.Now()
		require.True(t, w.world(now).Lost("n1"))
		require.False(t, w.world(now).Lost("n3"))
		w.mu.Lock()
		w.resumed = now
		w.mu.Unlock()
		require.False(t, w.world(now).Lost("n1"))
		require.True(t, w.world(now.Add(silentFor)).Lost("n1"))
		p.network.Heal()
		p.kill("n3", nil)
		p.eventually(5*time.Second, "n3 refuses", func() bool { return p.nodes["n2"].peers.Liveness()["n3"].Status == peer.Refused })
		w.mu.Lock()
		w.resumed = time.Now()
		w.mu.Unlock()
		require.True(t, w.world(time.Now()).Lost("n3"))
		require.True(t, w.world(time.Now()).Down("nobody"))
	})
}

// TestAQuestionMayComeBeforeTheStart: other nodes are answered before the replicas run.
func TestAQuestionMayComeBeforeTheStart(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		w := newWatch(p.nodes["n1"].host)
		ctx, cancel := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		asked.Go(func() { w.world(time.Now()) })
		w.start(ctx)
		asked.Wait()
		cancel()
		w.wait()
	})
}
