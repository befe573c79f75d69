package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// TestAnAgreementThatBrokeBeginsAnew: who is not the first in line waits its turn from when they agreed last.
func TestAnAgreementThatBrokeBeginsAnew(t *testing.T) {
	f := newFailover()
	r := follower(nodes(3), "n1", 5, 9)
	longer := opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 10}
	stands := func(at time.Duration, o opinion) bool {
		f.heard(at0.Add(at), "n3", r.Shard, "n1", o)
		return len(f.step(at0.Add(at), sees("n2", "n1"), []replicaView{r}).Stand) > 0
	}
	require.False(t, stands(0, longer))
	require.False(t, stands(turnEvery/2, opinion{Hosted: true}), "n3 hears the leader")
	again := turnEvery + 10*time.Millisecond
	require.False(t, stands(again, longer))
	require.False(t, stands(again+turnEvery-time.Millisecond, longer))
	require.True(t, stands(again+turnEvery, longer))
}

// TestWhoIsAwayItselfIsNotWaitedFor: everybody who can speak has spoken.
func TestWhoIsAwayItselfIsNotWaitedFor(t *testing.T) {
	for _, away := range []bool{true, false} {
		f := newFailover()
		r := follower(nodes(5), "n1", 5, 9)
		for _, other := range []base.NodeID{"n3", "n4"} {
			f.heard(at0, other, r.Shard, "n1", opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 8})
		}
		w := sees("n2", "n1")
		if away {
			w = sees("n2", "n1", "n5")
		}
		require.Equal(t, away, len(f.step(at0, w, []replicaView{r}).Stand) == 1)
		require.Equal(t, !away, len(f.step(at0.Add(graceFor), w, []replicaView{r}).Stand) == 1, "n5 had its time")
	}
}

// TestWhoHasNotLostTheLeaderDoesNotStand: its connection has broken, and may be back in a moment.
func TestWhoHasNotLostTheLeaderDoesNotStand(t *testing.T) {
	f := newFailover()
	r := follower(nodes(5), "n1", 5, 9)
	broken := sees("n2", "n1")
	broken.Lost = func(base.NodeID) bool { return false }
	say := func(at time.Time) {
		for _, other := range []base.NodeID{"n3", "n4", "n5"} {
			f.heard(at, other, r.Shard, "n1", opinion{Hosted: true, Lost: true, LastTerm: 5, LastIndex: 8})
		}
	}
	say(at0)
	require.Empty(t, f.step(at0, broken, []replicaView{r}).Stand)
	later := at0.Add(silentFor)
	say(later)
	require.Len(t, f.step(later, sees("n2", "n1"), []replicaView{r}).Stand, 1)
}
