package dataplane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

func TestASuccessorEndsWhatIsFollowed(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		for i := range int64(3) {
			r.send(source, a, i, 0, makeBatch(1, 77, int32(i), 10))
		}
		r.acks()
		next := followedBy(2, 2, 2, 1)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		r.send(source, a, 3, 2, makeBatch(1, 77, 3, 10))
		r.expect(lostBy(replica.ReasonFenced))
		want := rangestate.New()
		for i := range int64(2) {
			b := makeBatch(1, 77, int32(i), 10)
			h, err := header.Check(b, 0)
			require.NoError(t, err)
			want.Append(h, i, 1000+i)
		}
		want.Commit(2)
		r.open(source, next, want, false)
		r.expect(durableTo(2))
		info, _ := r.log.Info(1)
		require.EqualValues(t, 2, info.SealedEnd)
		require.Equal(t, want.Checksum(), r.log.segments[2].state.Checksum())
	})
}

func TestAFollowerThatDoesNotKnowTheStateAsksForIt(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(2, 2, 2, 1)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		h, err := header.Check(makeBatch(1, 77, 0, 10), 0)
		require.NoError(t, err)
		s := rangestate.New()
		s.Append(h, 1, 1000)
		s.Commit(2)
		r.open(source, a, s, false)
		r.send(source, a, 2, 0, plain(1))
		r.expect(ackMessage{status: ackState, end: 2})
		r.open(source, a, s, true)
		r.expect(durableTo(2), durableTo(3))
		require.Equal(t, s.Checksum(), r.log.segments[2].state.Checksum())
	})
}

// What a follower remembers is its own only if it is what the leader remembers.
func TestAFollowerWhoseStateIsAnotherAsksForTheLeaders(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, makeBatch(2, 77, 0, 10))
		r.expect(durableTo(2))
		next := followedBy(2, 2, 2, 1)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		h, err := header.Check(makeBatch(2, 78, 0, 10), 0)
		require.NoError(t, err)
		leaders := rangestate.New()
		leaders.Append(h, 0, 1000)
		leaders.Commit(2)
		r.open(source, next, leaders, false)
		r.expect(ackMessage{status: ackState, end: 2})
		r.open(source, next, leaders, true)
		r.expect(durableTo(2))
		require.Equal(t, leaders.Checksum(), r.log.segments[2].state.Checksum())
	})
}

// A state that did not arrive as it was sent is not what the range remembers.
func TestAStateThatIsNotWhatWasSaidIsRefused(t *testing.T) {
	h, err := header.Check(makeBatch(2, 77, 0, 10), 0)
	require.NoError(t, err)
	s := rangestate.New()
	s.Append(h, 0, 1000)
	s.Commit(2)
	for name, sent := range map[string][]byte{"another": rangestate.NewForgetful().Encode(), "none": []byte("nonsense"), "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			followBubble(t, nil, func(t *testing.T, r *followRig) {
				a := followedBy(2, 2, 2, 1)
				require.Equal(t, meta.StatusHeld, r.assign(a).Status)
				m := openMessage{segmentHead: headOf(a), base: a.Base, openedMs: a.OpenedMs, checksum: s.Checksum(), hasState: true}
				r.plane.receive(kindOpen, append(m.encode(), sent...), arrival{from: source})
				r.expect(lostBy(replica.ReasonFailed))
				require.Empty(t, r.log.segments)
			})
		})
	}
}
