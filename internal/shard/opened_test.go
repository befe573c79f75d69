package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

// A node is reached as soon as it listens, long before it is admitted and its replicas run. Whatever it is asked until
// then has an answer.
func TestReplicasThatDoNotRunYetAreAsked(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		shard := base.RootShard
		p.stop("n1")
		h := p.open("n1")
		p.eventually(10*time.Second, "the nodes are connected", func() bool {
			return p.nodes["n2"].peers.Liveness()["n1"].Status == peer.Reachable
		})
		e := envelope{Shard: shard, From: p.nodes["n2"].meta, To: p.nodes["n1"].meta, Term: 1}
		order := p.orderOf(shard, "n1", 100)
		ask := func(kind peer.Kind, m any) error {
			_, err := p.nodes["n2"].peers.CallGroup(p.within(5*time.Second), "n1", kind, groupNumber(shard), encode(m))
			require.NotErrorIs(t, err, base.CodeTimeout)
			return err
		}
		require.Error(t, ask(kindAppend, &appendMessage{Envelope: e}))
		require.Error(t, ask(kindVote, &voteMessage{Envelope: e}))
		require.Error(t, ask(kindPreVote, &voteMessage{Envelope: e}))
		require.Error(t, ask(kindTimeoutNow, &timeoutMessage{Envelope: e}))
		require.Error(t, ask(kindChunk, &chunkMessage{Envelope: e, Size: 1, Data: []byte{1}}))
		require.Error(t, ask(kindSeat, &seatQuestion{Order: p.orderOf(shard, "n2", 0)}))
		require.NoError(t, ask(kindWatch, &watchMessage{Questions: []question{{Shard: shard}}}))
		require.NoError(t, ask(kindReport, &reportRequest{Cluster: cluster, Shard: shard}))
		_ = ask(kindHost, &order)

		ctx := p.within(20 * time.Second)
		require.Len(t, h.Status(), 1)
		_, err := h.Detail(shard)
		require.NoError(t, err)
		require.Empty(t, h.Voters(shard))
		_, err = h.Propose(ctx, shard, meta.Command{})
		require.Error(t, err)
		require.Error(t, h.View(ctx, shard, func(*meta.State) error { return nil }))
		require.NoError(t, h.ViewStale(shard, func(*meta.State) error { return nil }))
		_, err = h.Transfer(ctx, shard, "n2")
		require.Error(t, err)
		_, err = h.Balance(ctx, true)
		require.NoError(t, err)
		require.NoError(t, h.HandOver(ctx))

		require.NoError(t, h.Start(ctx))
		require.NotZero(t, h.Leading(shard))
	})
}
