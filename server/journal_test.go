package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// What the journal says of a seal is what an operator needs to tell whose fault it was.
func TestSealInTheJournal(t *testing.T) {
	sealed := meta.Event{
		Type: meta.EventSegmentSealed, TimeMs: 5, Name: "orders", Range: 9, Segment: 881, Next: 907, Cause: base.CauseReplicaFailure,
		Offset: 1_204_881, GapMs: 96, Bytes: 77, Replicas: replicas(1, 2, 5), Lost: []base.NodeID{"n3"},
	}
	w := wireEvent(metaEvent(base.ShardID{Root: 2}, sealed))
	require.Equal(t, "orders/r9", w.Subject)
	require.Equal(t, "REPLICA_FAILURE", w.Cause)
	require.EqualValues(t, 96, w.GapMs)
	require.Equal(t, "bytes=77 end=1204881 lost=n3 next=s907 replicas=n1,n2,n5 segment=s881 shard=2", w.Detail)

	sealed.Lost, sealed.Late, sealed.Lossy = nil, []base.NodeID{"n2", "n3"}, true
	require.Contains(t, wireEvent(metaEvent(base.ShardID{}, sealed)).Detail, "late=n2,n3 loss=possible next=s907")

	sealed.Forced, sealed.Detail = true, "forced: both disks are gone"
	require.Contains(t, wireEvent(metaEvent(base.ShardID{}, sealed)).Detail, `detail="forced: both disks are gone"`)
}

func TestWordsAreGivenOutOnce(t *testing.T) {
	var w sealWords
	w.keep(1, "")
	require.Empty(t, w.take(1))
	w.keep(1, "before the upgrade")
	require.Equal(t, "before the upgrade", w.take(1))
	require.Empty(t, w.take(1))
	for i := range maxSealWords + 1 {
		w.keep(base.SegmentID(i+1), "x")
	}
	require.LessOrEqual(t, len(w.m), maxSealWords)
}
