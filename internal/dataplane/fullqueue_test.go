package dataplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFullQueueHoldsBatchesBack(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.edit("n2", func(f *scriptedFollower) { f.full = true })
		var acks []<-chan outcome
		for range 5 {
			acks = append(acks, r.append(plain(1), 0))
		}
		time.Sleep(300 * time.Millisecond)
		r.links.edit("n2", func(f *scriptedFollower) { f.full = false })
		for _, ack := range acks {
			require.NoError(t, (<-ack).err)
		}
		batches := r.links.followers["n2"].batches()
		require.Len(t, batches, 6)
		for i, m := range batches {
			require.EqualValues(t, i, m.first, "in order, each once")
		}
		require.Empty(t, r.coord.requests())
	})
}

// What does not fit comes again from its first batch on, however many were to be sent at once.
func TestFullQueueOfANewSession(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.relink("n2", down)
		var acks []<-chan outcome
		for range 4 {
			acks = append(acks, r.append(plain(1), 0))
		}
		r.links.edit("n2", func(f *scriptedFollower) { f.full = true })
		r.links.relink("n2", up)
		time.Sleep(100 * time.Millisecond)
		r.links.edit("n2", func(f *scriptedFollower) { f.full = false })
		for _, ack := range acks {
			require.NoError(t, (<-ack).err)
		}
		batches := r.links.followers["n2"].batches()
		require.Len(t, batches, 5)
		for i, m := range batches {
			require.EqualValues(t, i, m.first, "in order, each once")
		}
		require.Empty(t, r.coord.requests())
	})
}
