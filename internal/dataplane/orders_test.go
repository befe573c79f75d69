package dataplane

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

func TestSealByTheCoordinatorMayKeepWhatWasNotAcked(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		a, b := r.append(plain(1), 0), r.append(plain(1), 0)
		answers, err := r.plane.Fence(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, answers)
		// The coordinator found one of the two on the fenced disk.
		go func() {
			_, _ = r.plane.Tell(t.Context(), meta.Orders{Assignments: []meta.Assignment{assignment(2, 2, 1, 1, roomy)}})
		}()
		require.NoError(t, (<-a).err)
		r.log.release(-1)
		out := <-b
		require.NoError(t, out.err)
		require.EqualValues(t, 1, out.Base)
		require.EqualValues(t, 2, out.Segment)
	})
}

func TestEndBelowWhatWasAckedIsFatal(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		<-r.append(plain(2), 0)
		c := r.assign(assignment(2, 2, 1, 1, roomy))
		require.Equal(t, meta.StatusFailed, c.Status)
		require.Len(t, r.fatal, 1)
	})
}

func TestFenceFreezesTheLeader(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.coord.silent = true
		<-r.append(plain(2), 0)
		r.log.hold()
		late := r.append(plain(1), 0)
		done := make(chan []meta.FenceAnswer)
		go func() {
			answers, _ := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1}})
			done <- answers
		}()
		synctest.Wait()
		r.log.release(-1)
		a := (<-done)[0]
		require.Equal(t, meta.Extent, a.Kind)
		require.EqualValues(t, 3, a.End)
		require.True(t, a.Unbroken)
		require.Equal(t, here, a.Replica)
		synctest.Wait()
		require.Empty(t, late, "nothing is acked behind a fence")
		r.assign(assignment(2, 2, 3, 1, roomy))
		require.NoError(t, (<-late).err, "the committed end covers it")
	})
}

// A segment from an earlier boot is never led again.
func TestRestartedLeaderDoesNotResume(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		require.NoError(t, r.log.OpenSegment(specOf(assignment(1, 1, 0, 0, roomy)), func(error) {}))
		synctest.Wait()
		s := r.log.segments[1]
		s.info.Boot, s.end, s.info.DurableEnd = boot-1, 5, 5
		c := r.assign(assignment(1, 1, 0, 0, roomy))
		require.Equal(t, meta.StatusFenced, c.Status)
		require.False(t, c.Empty)
		require.Empty(t, r.coord.requests(), "nobody is in a hurry")
		require.Zero(t, r.plane.Leads())

		r.coord.recovered = 5
		out := <-r.append(plain(1), 0)
		require.NoError(t, out.err)
		require.EqualValues(t, 5, out.Base)
		require.EqualValues(t, 101, out.Segment)
		require.Equal(t, base.CauseRecovery, r.coord.requests()[0].Cause)
		require.EqualValues(t, 5, s.info.SealedEnd)
		require.Equal(t, base.CauseRecovery, s.info.SealedCause)
	})
}

// A node that is about to stop goes on with what it leads, and takes nothing new.
func TestALeavingNodeOpensNothing(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.plane.Leave()
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Equal(t, meta.StatusHeld, r.assign(assignment(1, 1, 0, 0, roomy)).Status)

		c := r.assign(assignment(2, 2, 1, 1, roomy))
		require.Equal(t, meta.StatusFenced, c.Status)
		require.True(t, c.Empty)
		answers, err := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 2, Segment: 2, Base: 1}})
		require.NoError(t, err)
		require.True(t, answers[0].Unlisted)
		require.EqualValues(t, 1, answers[0].End)
	})
}

func TestAssignmentsAreIdempotentAndVersioned(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		again := assignment(1, 1, 0, 0, roomy)
		require.Equal(t, meta.StatusHeld, r.assign(again).Status)
		newer := assignment(1, 1, 0, 0, base.TopicConfig{SegmentBytes: 100, SegmentAge: time.Hour})
		newer.Version = 9
		require.Equal(t, meta.StatusHeld, r.assign(newer).Status)
		require.Equal(t, meta.StatusFailed, r.assign(again).Status, "an older version is ignored")
		<-r.append(plain(1), 0)
		out := <-r.append(plain(1), 0)
		require.EqualValues(t, 101, out.Segment, "the altered limit holds for the active segment")
		require.Equal(t, meta.StatusFailed, r.assign(newer).Status, "an older epoch too")
	})
}

func TestFailedOpenIsTriedAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.log.openErr = base.Errorf(base.CodeDiskFull, "open", "full")
		require.Equal(t, meta.StatusFailed, r.assign(assignment(1, 1, 0, 0, roomy)).Status)
		waits := r.append(plain(1), 0)
		r.log.mu.Lock()
		r.log.openErr = nil
		r.log.mu.Unlock()
		require.Equal(t, meta.StatusHeld, r.assign(assignment(1, 1, 0, 0, roomy)).Status)
		require.NoError(t, (<-waits).err)
	})
}

func TestTrimAndDelete(t *testing.T) {
	small := base.TopicConfig{SegmentBytes: 100, SegmentAge: time.Hour}
	leadingBubble(t, small, func(t *testing.T, r *rig) {
		for range 3 {
			<-r.append(plain(1), 0)
		}
		synctest.Wait()
		require.Len(t, r.log.Segments(testRef), 3)
		c, err := r.plane.Tell(t.Context(), meta.Orders{Trims: []meta.Trim{{Ref: testRef, Earliest: 2, Version: 5}}})
		require.NoError(t, err)
		require.Equal(t, meta.Confirmation{Kind: meta.ConfirmTrim, Status: meta.StatusHeld, Ref: testRef, Version: 5, Offset: 2}, c[0])
		require.Len(t, r.log.Segments(testRef), 1)

		r.log.hold()
		inFlight := r.append(plain(1), 0)
		waits := r.append(plain(1), 0)
		deleted := make(chan []meta.Confirmation)
		go func() {
			c, _ := r.plane.Tell(t.Context(), meta.Orders{Deletes: []base.TopicID{testTopic}})
			deleted <- c
		}()
		require.ErrorIs(t, (<-waits).err, base.CodeTopicNotFound)
		require.ErrorIs(t, (<-inFlight).err, base.CodeTopicNotFound)
		r.log.release(-1)
		require.Equal(t, meta.StatusHeld, (<-deleted)[0].Status)
		require.ErrorIs(t, (<-r.append(plain(1), 0)).err, base.CodeTopicNotFound)
		require.True(t, r.plane.Deleted(testTopic))
		require.Zero(t, r.plane.Leads())
	})
}

func TestCloseFinishesWhatIsOnItsWay(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		inFlight := r.append(plain(1), 0)
		synctest.Wait() // the range's turn may still be somebody else's
		closed := make(chan struct{})
		go func() { _ = r.plane.Close(); close(closed) }()
		synctest.Wait()
		late := r.append(plain(1), 0)
		require.ErrorIs(t, (<-late).err, base.CodeShuttingDown)
		require.Empty(t, inFlight)
		r.log.release(-1)
		<-closed
		require.NoError(t, (<-inFlight).err, "acked, not dropped")
	})
}

func TestCloseDoesNotWaitForAHungDisk(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		r.append(plain(1), 0)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, r.plane.Close())
		require.Equal(t, closeWithin, time.Since(began))
	})
}

// A segment that was sealed before it ever opened here leaves no gap in what the range remembers.
func TestStateComesFromTheNearestSegmentThatOpened(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		require.NoError(t, (<-r.append(makeBatch(2, 42, 0, 10), 0)).err)
		r.log.mu.Lock()
		r.log.openErr = base.Errorf(base.CodeDiskFull, "open", "full")
		r.log.mu.Unlock()
		require.Equal(t, meta.StatusFailed, r.assign(assignment(2, 2, 2, 1, roomy)).Status)
		r.log.mu.Lock()
		r.log.openErr = nil
		r.log.mu.Unlock()
		r.plane.all()[0].do(func(time.Time) { r.plane.all()[0].rest.state = nil }) // as after a restart
		require.Equal(t, meta.StatusHeld, r.assign(assignment(3, 3, 2, 2, roomy)).Status)
		require.True(t, (<-r.append(makeBatch(2, 42, 0, 10), 0)).Duplicate)
	})
}

// A frozen segment's batches are acked by nothing that still runs, so Close has to answer them itself.
func TestCloseAnswersWhatAFrozenSegmentHolds(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.coord.silent = true
		r.log.hold()
		frozen := r.append(plain(1), time.Hour)
		_, err := r.plane.Fence(canceled(t), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1}})
		require.ErrorIs(t, err, context.Canceled)
		r.log.release(-1)
		synctest.Wait()
		require.Empty(t, frozen, "acks no longer count")

		began := time.Now()
		require.NoError(t, r.plane.Close())
		require.Less(t, time.Since(began), closeWithin)
		out := <-frozen
		require.ErrorIs(t, out.err, base.CodeShuttingDown)
		require.Equal(t, base.Unknown, base.OutcomeOf(out.err))
	})
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A copy that is shorter than its committed end keeps the end, says that it is short, and goes when its range is trimmed.
func TestAShortCopySaysSoAndIsTrimmed(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		<-r.append(plain(3), 0)
		short := assignment(1, 1, 0, 0, roomy)
		short.State, short.End, short.Version = base.StateSealed, 3, 2
		next := assignment(2, 2, 3, 1, roomy)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		r.log.mu.Lock()
		s := r.log.segments[1]
		s.info.SealedEnd, s.info.State, s.info.DurableEnd = -1, base.StateActive, 2
		r.log.mu.Unlock()
		require.Equal(t, meta.StatusShort, r.assign(short).Status)
		c, err := r.plane.Tell(t.Context(), meta.Orders{Trims: []meta.Trim{{Ref: testRef, Earliest: 3, Version: 3}}})
		require.NoError(t, err)
		require.Equal(t, meta.StatusHeld, c[0].Status)
		require.Len(t, r.log.Segments(testRef), 1)
	})
}
