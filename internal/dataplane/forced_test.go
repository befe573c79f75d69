package dataplane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// An end below what was acked is a bug that ends the process, unless somebody has accepted the loss: then both the leader
// and a follower go on from there.
func TestAForcedEnd(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		for range 3 {
			require.NoError(t, (<-r.append(plain(1), 0)).err)
		}
		end := assignment(1, 1, 0, 0, roomy)
		end.State, end.End, end.Version, end.Forced, end.Active = base.StateSealed, 2, 2, true, here.Node
		require.Equal(t, meta.StatusHeld, r.assign(end).Status)
		require.Empty(t, r.fatal)
		next := assignment(2, 2, 2, 1, roomy)
		next.Forced = true
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		o := <-r.append(plain(1), 0)
		require.NoError(t, o.err)
		require.EqualValues(t, 2, o.Base)
	})
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		for i := range int32(3) {
			require.NoError(t, (<-r.append(makeBatch(1, 42, i, 10), 0)).err)
		}
		next := assignment(2, 2, 2, 1, roomy)
		next.Forced = true
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		require.ErrorIs(t, (<-r.append(makeBatch(1, 42, 2, 10), 0)).err, base.CodeUnknownProducer, "what was lost is not taken for what is there")
	})
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		for range 3 {
			require.NoError(t, (<-r.append(plain(1), 0)).err)
		}
		next := assignment(2, 2, 2, 1, roomy)
		next.Forced = true
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		require.Empty(t, r.fatal)
		require.EqualValues(t, 2, (<-r.append(plain(1), 0)).Base)
	})
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.send(source, a, 3, 3, nil)
		r.expect(durableTo(3))
		end := a
		end.State, end.End, end.Version, end.Forced = base.StateSealed, 2, 2, true
		require.Equal(t, meta.StatusHeld, r.assign(end).Status)
	})
}
