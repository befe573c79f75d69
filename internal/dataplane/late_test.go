package dataplane

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/replica"
)

func TestReplicaThatStandsStillEndsTheSegment(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		began := time.Now()
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		waited := time.Since(began)
		require.InDelta(t, 0.85, waited.Seconds(), 0.15)
		req := r.coord.requests()[0]
		require.Greater(t, req.WaitedMs, int64(700), "the writer waited for the replica before anybody knew that it was late")
		require.Equal(t, base.CauseReplicaFailure, req.Cause)
		require.Equal(t, []base.NodeID{"n3"}, req.Late)
		require.Empty(t, req.Lost)
		require.Equal(t, []base.NodeID{"n3"}, r.plane.LateNodes(time.Now()))
		time.Sleep(lateRecalls)
		require.Empty(t, r.plane.LateNodes(time.Now()))
		require.InDelta(t, waited.Seconds(), r.rolls[0].Gap.Seconds(), 0.01, "from the last ack to the next")
	})
}

// What was to be a planned roll, and meets followers that are silent, is no planned roll: its cause is theirs, and with
// all of them silent the leader may be the one that is cut off.
func TestAPlannedRollThatMeetsSilenceIsAReplicaFailure(t *testing.T) {
	for _, silent := range [][]base.NodeID{{"n3"}, {"n2", "n3"}} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			trioBubble(t, nil, func(t *testing.T, r *trio) {
				require.NoError(t, (<-r.append(plain(1), 0)).err)
				r.plane.late.name(silent, nil, time.Now()) // rolls on their account are damped: the drain ends by itself
				if len(silent) == 2 {
					r.coord.replicas = []base.Replica{here, {Node: "n4"}}
				}
				for _, node := range silent {
					r.plane.late.nodes[node].tokens = -1000
					r.links.edit(node, func(f *scriptedFollower) { f.willing = false })
				}
				time.Sleep(r.plane.o.ReplicaTimeout)
				ack := r.append(plain(1), time.Minute)
				began := time.Now()
				confirmed, err := r.plane.Tell(t.Context(), meta.Orders{Rolls: []meta.RollOrder{{Ref: testRef, Segment: 1, Epoch: 1, Cause: base.CauseDrain}}})
				require.NoError(t, err)
				require.Equal(t, meta.StatusHeld, confirmed[0].Status)
				out := <-ack
				require.InDelta(t, r.plane.o.ReplicaTimeout.Seconds(), time.Since(began).Seconds(), 0.15)
				req := r.coord.requests()[0]
				require.Equal(t, base.CauseReplicaFailure, req.Cause)
				require.EqualValues(t, 1, req.End)
				if len(silent) == 2 {
					require.Equal(t, []base.NodeID{"n2", "n3", "n1"}, req.Late)
					require.ErrorIs(t, out.err, base.CodeSegmentMoved)
					return
				}
				require.Equal(t, silent, req.Late)
				require.NoError(t, out.err)
				synctest.Wait()
				require.Equal(t, base.CauseReplicaFailure, r.rolls[0].Cause)
			})
		})
	}
}

func TestLeaderNamesItsOwnDisk(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.coord.silent = true
		r.log.hold()
		ack := r.append(plain(1), time.Minute)
		time.Sleep(2 * time.Second)
		require.Equal(t, []base.NodeID{"n1"}, r.coord.requests()[0].Late)
		require.Empty(t, ack)
	})
}

func TestLateReplicaIsWaitedForWhereNobodyCouldTakeItsPlace(t *testing.T) {
	var replaceable atomic.Bool
	trioBubble(t, func(_ *scripted, o *Options) {
		o.Replaceable = func(asg meta.Assignment, late []base.NodeID) bool {
			require.Equal(t, base.SegmentID(1), asg.Segment)
			require.Equal(t, []base.NodeID{"n3"}, late)
			return replaceable.Load()
		}
	}, func(t *testing.T, r *trio) {
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		ack := r.append(plain(1), time.Minute)
		time.Sleep(10 * time.Second)
		require.Empty(t, ack)
		require.Equal(t, replica.Leading, r.lead().replica.State())
		require.Equal(t, []base.NodeID{"n3"}, r.plane.LateNodes(time.Now()), "it is named all the same")
		replaceable.Store(true)
		require.NoError(t, (<-ack).err)
	})
}

// A node that has fallen silent is given up like a slow one, but not called slow: that would keep it from new segments for
// a minute or more once it is back.
func TestASilentReplicaIsLateAndNotSlow(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n3", func(f *scriptedFollower) { f.willing, f.link.Heard = false, time.Now() })
		require.NoError(t, (<-r.append(plain(1), time.Minute)).err)
		require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Late)
		require.Empty(t, r.plane.LateNodes(time.Now()))
	})
}

// A segment whose late replica has cost enough of them already waits for its turn.
func TestALateReplicaIsWaitedForWhileRollsOnItsAccountAreDamped(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		const turn = 10 * time.Second
		r.plane.late.name([]base.NodeID{"n3"}, nil, time.Now())
		r.plane.late.nodes["n3"].tokens = 1 - lateRolls*turn.Seconds()
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		began := time.Now()
		require.NoError(t, (<-r.append(plain(1), time.Minute)).err)
		require.InDelta(t, turn.Seconds(), time.Since(began).Seconds(), 0.2)
		require.Len(t, r.coord.requests(), 1)
	})
}

func TestRollsOnAccountOfOneLateNodeAreDamped(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var b lateBook
		now := time.Now()
		ended := 0
		for range 1000 { // segments that stand still, each asking at every tick for a second
			for range 20 {
				b.name([]base.NodeID{"slow"}, nil, now)
				if b.allows([]base.NodeID{"slow"}, now) {
					ended++
				}
			}
			now = now.Add(time.Millisecond)
		}
		require.InDelta(t, 2*lateRolls, ended, 1, "a burst, then so many a second")
		b.name([]base.NodeID{"slow", "other"}, nil, now)
		for b.allows([]base.NodeID{"slow"}, now) {
			ended++
		}
		require.True(t, b.allows([]base.NodeID{"other"}, now), "each node has its own")
		require.False(t, b.allows([]base.NodeID{"other", "slow"}, now))
	})
}
