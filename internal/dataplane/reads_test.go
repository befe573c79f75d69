package dataplane

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
)

// hang makes the log's states lie on a disk that does not answer before the test lets it.
func (l *fakeLog) hang() (release func()) {
	gate := make(chan struct{})
	l.mu.Lock()
	l.read = func(base.SegmentID) { <-gate }
	l.mu.Unlock()
	return func() { close(gate) }
}

// remembers is the state of a range after batches of one record each, of producer 77.
func remembers(t *testing.T, records int64) *rangestate.State {
	s := rangestate.New()
	for i := range records {
		h, err := header.Check(makeBatch(1, 77, int32(i), 10), 0)
		require.NoError(t, err)
		s.Append(h, i, 1000+i)
	}
	s.Commit(records)
	return s
}

// slowlyFollowed is a rig that has followed segment 1 to offset 2 and is told of segment 2, while its disk does not answer
// what it is asked for of segment 1.
func slowlyFollowed(t *testing.T, run func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func())) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		for i := range int64(2) {
			r.send(source, a, i, i, makeBatch(1, 77, int32(i), 10))
		}
		r.acks()
		release := r.log.hang()
		next := followedBy(2, 2, 2, 1)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		run(t, r, next, remembers(t, 2), release)
	})
}

// A disk whose reads hang delays nothing but what it was asked for: the goroutine that brought the question is the one
// that brings everything from the leader's node.
func TestADiskThatHangsDoesNotStallItsConnection(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		r.open(source, next, s, false)
		r.send(source, next, 2, 2, makeBatch(1, 77, 2, 10))
		r.expect()

		other := followedBy(9, 1, 0, 0)
		other.Ref.Range = 2
		require.Equal(t, meta.StatusHeld, r.assign(other).Status)
		r.open(source, other, nil, false)
		r.send(source, other, 0, 0, plain(3))
		r.expect(durableTo(0), durableTo(3))

		time.Sleep(time.Minute)
		release()
		r.expect(durableTo(2), durableTo(3))
		require.Equal(t, s.Encode(), r.log.segments[2].info.SegmentSpec.State)
		require.Zero(t, r.plane.held.bytes.Load())
	})
}

// Its leader asks again meanwhile; who leads by then is answered, once.
func TestAnOpenThatComesAgainWhileTheStateIsRead(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		for range 5 {
			r.open(source, next, s, false)
			time.Sleep(100 * time.Millisecond)
		}
		r.expect()
		release()
		r.expect(durableTo(2))
	})
}

// The leader's own state is as good as what the disk has, and may come first.
func TestAStateThatIsSentIsNotWaitedForFromTheDisk(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		r.open(source, next, s, false)
		r.open(source, next, s, true)
		r.expect(durableTo(2))
		release()
		r.expect()
		r.send(source, next, 2, 2, makeBatch(1, 77, 2, 10))
		r.expect(durableTo(3))
	})
}

func TestASegmentThatIsFencedWhileItsStateIsRead(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		r.open(source, next, s, false)
		_, err := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 2, Segment: 2, Base: 2}})
		require.NoError(t, err)
		release()
		r.expect(lostBy(replica.ReasonFenced))
		require.Nil(t, r.log.segments[2])
	})
}

func TestASegmentThatEndsWhileItsStateIsRead(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		r.open(source, next, s, false)
		third := followedBy(3, 3, 2, 2)
		require.Equal(t, meta.StatusHeld, r.assign(third).Status)
		release()
		r.expect()
		require.Nil(t, r.log.segments[2])
		r.open(source, third, s, true)
		r.expect(durableTo(2))
	})
}

// A state that cannot be read is asked for.
func TestAStateThatCannotBeReadIsAskedFor(t *testing.T) {
	slowlyFollowed(t, func(t *testing.T, r *followRig, next meta.Assignment, s *rangestate.State, release func()) {
		r.open(source, next, s, false)
		r.log.mu.Lock()
		r.log.readErr = errors.New("bad sector")
		r.log.mu.Unlock()
		release()
		r.expect(ackMessage{status: ackState, end: 2})
		r.open(source, next, s, true)
		r.expect(durableTo(2))
	})
}

// A leader that reads what its range remembers holds up neither other orders nor other ranges.
func TestALeaderWhoseDiskHangsHoldsUpNobodyElse(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		first := assignment(1, 1, 0, 0, roomy)
		require.Equal(t, meta.StatusHeld, r.assign(first).Status)
		require.NoError(t, (<-r.append(makeBatch(2, 77, 0, 20), 0)).err)
		first.State, first.End, first.Version, first.Active = base.StateSealed, 2, 2, "n2"
		require.Equal(t, meta.StatusHeld, r.assign(first).Status, "it goes on elsewhere, and comes back")
		release := r.log.hang()
		began := time.Now()
		next := assignment(3, 3, 2, 1, roomy)
		next.From = &meta.Source{Segment: 1, Replicas: []base.Replica{here}}
		require.Equal(t, meta.StatusFailed, r.assign(next).Status)
		require.Equal(t, loadHolds, time.Since(began))
		waiting := r.append(makeBatch(2, 77, 0, 20), 0)

		other := assignment(9, 1, 0, 0, roomy)
		other.Ref.Range = 2
		require.Equal(t, meta.StatusHeld, r.assign(other).Status)
		require.Equal(t, loadHolds, time.Since(began))

		require.Empty(t, waiting)
		release()
		require.True(t, (<-waiting).Duplicate)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
	})
}

func TestALeaderThatCannotReadAStateIsToldAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		first := assignment(1, 1, 0, 0, roomy)
		require.Equal(t, meta.StatusHeld, r.assign(first).Status)
		require.NoError(t, (<-r.append(makeBatch(2, 77, 0, 20), 0)).err)
		first.State, first.End, first.Version, first.Active = base.StateSealed, 2, 2, "n2"
		require.Equal(t, meta.StatusHeld, r.assign(first).Status)
		r.log.hang()()
		r.log.readErr = errors.New("bad sector")
		next := assignment(3, 3, 2, 1, roomy)
		require.Equal(t, meta.StatusFailed, r.assign(next).Status)
		r.log.readErr = nil
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
	})
}

func (r *reads) underWay() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// So many reads are under way at once, whoever asks for them, and all of them come to an end; those that wait when the
// plane closes do not.
func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var running, most, done atomic.Int64
		job := func() {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Millisecond)
			running.Add(-1)
			done.Add(1)
		}
		for range 100 {
			require.True(t, r.plane.read(job))
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 100, done.Load())
		require.EqualValues(t, maxReads, most.Load())
		require.Zero(t, r.plane.reads.underWay())
		for range 100 {
			require.True(t, r.plane.read(job))
		}
		synctest.Wait()
		r.close()
		require.EqualValues(t, 100+maxReads, done.Load())
		require.False(t, r.plane.read(job))
	})
}
