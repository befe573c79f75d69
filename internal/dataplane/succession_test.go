package dataplane

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// The segment led here was sealed, another node led the next one, and the one after that is ours again. Its base says nothing
// of where ours ended: batches in between are the other node's, and none of ours may be acked by it.
func TestSuccessorOfAnothersSegment(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.coord.silent = true
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.log.hold()
		pending := r.append(plain(10), 0)
		third := assignment(3, 3, 6, 2, roomy)
		require.Equal(t, meta.StatusFailed, r.assign(third).Status, "before it is known where ours ended")
		require.Empty(t, pending)

		ended := assignment(1, 1, 0, 0, roomy)
		ended.State, ended.End, ended.Version = base.StateSealed, 1, 2
		confirmed := make(chan meta.Confirmation, 2)
		go func() { confirmed <- r.assign(ended) }()
		synctest.Wait()
		go func() { confirmed <- r.assign(third) }()
		out := <-pending
		require.ErrorIs(t, out.err, base.CodeSegmentMoved)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		r.log.release(-1)
		<-confirmed
		<-confirmed
		require.Empty(t, r.fatal)
	})
}
