package dataplane

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// The segment led here was sealed, another node led the next one, and the one after that is ours again. Its base says nothing
// of where ours ended: the records in between are the other node's, and none of ours may be acked by them.
func TestSuccessorOfAnothersSegment(t *testing.T) {
	for _, want := range []base.Outcome{base.NotApplied, base.Unknown} {
		leadingBubble(t, roomy, func(t *testing.T, r *rig) {
			r.coord.silent = true
			require.NoError(t, (<-r.append(plain(1), 0)).err)
			r.log.hold()
			pending := r.append(plain(5), 0)
			if want == base.NotApplied { // we were told in between
				ended := assignment(1, 1, 0, 0, roomy)
				ended.State, ended.End, ended.Version = base.StateSealed, 1, 2
				go r.assign(ended)
				synctest.Wait()
			}
			confirmed := make(chan meta.Confirmation, 1)
			go func() { confirmed <- r.assign(assignment(3, 3, 6, 2, roomy)) }()
			out := <-pending
			require.ErrorIs(t, out.err, base.CodeSegmentMoved)
			require.Equal(t, want, base.OutcomeOf(out.err))
			r.log.release(-1)
			require.Equal(t, meta.StatusHeld, (<-confirmed).Status)
			require.EqualValues(t, 6, (<-r.append(plain(1), 0)).Base)
			require.Empty(t, r.fatal)
		})
	}
}
