package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// An answer names who has acked the batch, from the first one of a segment on, and of a leader that has rested too.
func TestAnAckNamesItsReplicas(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		first := <-r.append(plain(1), 0)
		require.Equal(t, []base.NodeID{"n1", "n2", "n3"}, first.Replicas)

		r.links.relink("n2", down) // costs the segment; the tail goes on in the next one
		second := <-r.append(plain(1), 0)
		require.NoError(t, second.err)
		require.NotEqual(t, first.Segment, second.Segment)
		want := []base.NodeID{"n1"}
		for _, f := range r.lead().followers {
			want = append(want, f.node)
		}
		require.Equal(t, want, second.Replicas)

		time.Sleep(5 * time.Minute)
		require.Nil(t, r.lead())
		require.Equal(t, second.Replicas, (<-r.append(plain(1), 0)).Replicas)
	})
}

// Where fenced copies held more than the leader had acks for, its segment ends above those. Who has not said that it holds
// the batch is not named.
func TestAnAckByTheCommittedEndNamesWhoIsKnownToHold(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.coord.silent = true
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		ack := r.append(plain(3), 0)
		synctest.Wait()
		require.Empty(t, ack)
		ended := trioAssignment(1, 1, 0, 0, roomy)
		ended.State, ended.End, ended.Version = base.StateSealed, 3, 2
		r.assign(ended)
		out := <-ack
		require.NoError(t, out.err)
		require.Equal(t, []base.NodeID{"n1", "n2"}, out.Replicas)
	})
}

func TestADuplicateNamesWhatItsLeaderKnows(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		batch := func(seq int32) []byte { return makeBatch(1, 7, seq, 10) }
		first := <-r.append(batch(0), 0)
		again := <-r.append(batch(0), 0)
		require.NoError(t, again.err)
		require.True(t, again.Duplicate)
		require.Equal(t, first.Replicas, again.Replicas)

		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		slow, twin := r.append(batch(1), 0), r.append(batch(1), 0)
		synctest.Wait()
		require.Empty(t, twin)
		r.links.ack("n3", 2, ackMessage{segmentHead: headOne, status: ackDurable, end: 2})
		require.Equal(t, (<-slow).Replicas, (<-twin).Replicas)
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = true })

		r.links.relink("n2", down)
		require.NoError(t, (<-r.append(batch(2), 0)).err)
		require.NotEqual(t, first.Segment, r.lead().seg)
		again = <-r.append(batch(0), 0)
		require.True(t, again.Duplicate)
		require.Equal(t, first.Segment, again.Segment)
		require.Empty(t, again.Replicas, "of an earlier segment: who holds that now is for others to say")
	})
}
