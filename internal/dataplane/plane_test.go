package dataplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
)

// bubble runs a test in virtual time with a plane that leads segment 1 from offset 0.
func bubble(t *testing.T, edit func(*Options), test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, edit)
		defer r.close()
		test(t, r)
	})
}

func leadingBubble(t *testing.T, c base.TopicConfig, test func(t *testing.T, r *rig)) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.coord.config = c
		require.Equal(t, meta.StatusHeld, r.assign(assignment(1, 1, 0, 0, c)).Status)
		test(t, r)
	})
}

func TestAppendsGetDenseOffsetsAndAcksInOrder(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		first, second := r.append(plain(3), 0), r.append(plain(2), 0)
		a, b := <-first, <-second
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		require.EqualValues(t, 0, a.Base)
		require.EqualValues(t, 3, b.Base)
		require.EqualValues(t, 1, b.Segment)
		require.EqualValues(t, 5, r.log.published[1], "readers see what was acked")
	})
}

func TestNothingIsAckedBeforeItIsDurable(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		ack := r.append(plain(1), 0)
		synctest.Wait()
		require.Empty(t, ack)
		require.Zero(t, r.log.published[1])
		r.log.release(1)
		require.NoError(t, (<-ack).err)
	})
}

func TestAppendBeforeItsAssignmentWaitsForIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		early := r.append(plain(1), 0)
		time.Sleep(500 * time.Millisecond)
		r.assign(assignment(1, 1, 0, 0, roomy))
		require.NoError(t, (<-early).err)
	})
}

func TestAppendToARangeThatIsNotHereIsRefusedInTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		err := (<-r.append(plain(1), 0)).err
		require.ErrorIs(t, err, base.CodeNotReplica)
		require.InDelta(t, 750, time.Since(began).Milliseconds(), 60)
		synctest.Wait()
		require.Empty(t, r.plane.all(), "strangers leave nothing behind")
		require.Zero(t, r.plane.waiting.Load())
	})
}

func TestStrangersAreBounded(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		var refused, right atomic.Int64
		for i := range maxStrangers + 10 {
			ref := base.RangeRef{Topic: base.TopicID{2}, Range: base.RangeID(i + 1)}
			r.plane.Append(AppendRequest{Ref: ref, Bytes: plain(1)}, func(_ AppendResult, err error) {
				refused.Add(1)
				if errors.Is(err, base.CodeNotReplica) {
					right.Add(1)
				}
			})
		}
		require.EqualValues(t, 10, refused.Load(), "refused at once")
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, maxStrangers+10, right.Load())
		require.Empty(t, r.plane.all())
	})
}

func TestBadBatchesAreRefusedAndTakeNoOffset(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		flipped := plain(1)
		flipped[header.Size] ^= 1
		require.ErrorIs(t, (<-r.append(flipped, 0)).err, base.CodeCorruptBatch)
		require.ErrorIs(t, (<-r.append(nil, 0)).err, base.CodeCorruptBatch)
		require.ErrorIs(t, (<-r.append(makeBatch(1, -1, -1, 11<<20), 0)).err, base.CodeBatchTooLarge)
		good := <-r.append(plain(1), 0)
		require.EqualValues(t, 0, good.Base)
	})
}

func TestDuplicates(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		first := <-r.append(makeBatch(2, 42, 0, 10), 0)
		again := <-r.append(makeBatch(2, 42, 0, 10), 0)
		require.NoError(t, again.err)
		require.True(t, again.Duplicate)
		require.Equal(t, first.Base, again.Base)
		require.Equal(t, first.AppendMs, again.AppendMs)

		// One of a batch in flight waits for the original's commit.
		r.log.hold()
		orig, twin := r.append(makeBatch(1, 42, 2, 10), 0), r.append(makeBatch(1, 42, 2, 10), 0)
		synctest.Wait()
		require.Empty(t, twin)
		r.log.release(-1)
		require.Equal(t, (<-orig).Base, (<-twin).Base)

		require.ErrorIs(t, (<-r.append(makeBatch(1, 42, 9, 10), 0)).err, base.CodeOutOfOrder)
		require.ErrorIs(t, (<-r.append(makeBatch(1, 43, 9, 10), 0)).err, base.CodeUnknownProducer)

		st, err := r.plane.ProducerState(t.Context(), testRef, 42)
		require.NoError(t, err)
		require.True(t, st.Known)
		require.Len(t, st.Batches, 2)
		require.EqualValues(t, 3, st.Commit)
	})
}

func TestFullLogIsWaitedForAndKeepsTheOrder(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.refuseOnly(1, base.Errorf(base.CodeBusy, "append", "queue full"))
		expires := r.append(makeBatch(1, 41, 0, 10), 200*time.Millisecond)
		first, second := r.append(makeBatch(1, 42, 0, 10), 0), r.append(makeBatch(1, 42, 1, 10), 0)
		out := <-expires
		require.ErrorIs(t, out.err, base.CodeBusy)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		require.Empty(t, first)
		r.log.refuseOnly(0, nil)
		require.EqualValues(t, 0, (<-first).Base, "what was refused has no offset")
		require.EqualValues(t, 1, (<-second).Base)
	})
}

func TestFullDiskIsAnAnswer(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.refuseOnly(1, base.Errorf(base.CodeDiskFull, "append", "no space"))
		out := <-r.append(plain(1), 0)
		require.ErrorIs(t, out.err, base.CodeDiskFull)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
	})
}

func TestDeadlines(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		began := time.Now()
		orig := r.append(makeBatch(1, 42, 0, 10), 300*time.Millisecond)
		twin := r.append(makeBatch(1, 42, 0, 10), 600*time.Millisecond)
		out := <-orig
		require.ErrorIs(t, out.err, base.CodeTimeout)
		require.Equal(t, base.Unknown, base.OutcomeOf(out.err), "a timeout never means not applied")
		require.InDelta(t, 300, time.Since(began).Milliseconds(), 60)
		require.Empty(t, twin)
		r.log.release(-1)
		require.NoError(t, (<-twin).err, "the batch got there all the same")
		synctest.Wait()
		require.Empty(t, orig, "answered once")
	})
}

func TestCreditIsAQueueWithADeadline(t *testing.T) {
	bubble(t, func(o *Options) { o.CreditBytes, o.WaitingBytes = 2000, 3000 }, func(t *testing.T, r *rig) {
		r.assign(assignment(1, 1, 0, 0, roomy))
		r.log.hold()
		inFlight := r.append(makeBatch(1, -1, -1, 1500), 0)
		waits := r.append(makeBatch(1, -1, -1, 1500), 0)
		expires := r.append(makeBatch(1, -1, -1, 500), 200*time.Millisecond)
		refused := r.append(makeBatch(1, -1, -1, 1500), 0)
		require.ErrorIs(t, (<-refused).err, base.CodeBusy, "too much waits already")
		out := <-expires
		require.ErrorIs(t, out.err, base.CodeBusy)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		r.log.release(-1)
		require.EqualValues(t, 0, (<-inFlight).Base)
		require.EqualValues(t, 1, (<-waits).Base)
		require.Zero(t, r.plane.waiting.Load())
	})
}

func TestSizeRollKeepsOffsetsDense(t *testing.T) {
	small := base.TopicConfig{SegmentBytes: 400, SegmentAge: time.Hour}
	leadingBubble(t, small, func(t *testing.T, r *rig) {
		var acks []<-chan outcome
		for i := range 20 {
			acks = append(acks, r.append(makeBatch(1, 42, int32(i), 100), 0))
		}
		segments := map[base.SegmentID]bool{}
		for i, ack := range acks {
			out := <-ack
			require.NoError(t, out.err)
			require.EqualValues(t, i, out.Base)
			segments[out.Segment] = true
		}
		require.Len(t, segments, 10)
		synctest.Wait()
		require.Len(t, r.rolls, 9)
		require.Equal(t, base.CauseDataPressure, r.rolls[0].Cause)
		for _, req := range r.coord.requests() {
			s := r.log.segments[req.Segment]
			require.Equal(t, s.end, s.info.SealedEnd, "a planned roll has no tail")
		}
		require.True(t, (<-r.append(makeBatch(1, 42, 19, 100), 0)).Duplicate, "producers' state follows the rolls")
	})
}

func TestAgeAndIdleRolls(t *testing.T) {
	bubble(t, func(o *Options) { o.SegmentIdle = 10 * time.Minute }, func(t *testing.T, r *rig) {
		r.assign(assignment(1, 1, 0, 0, roomy))
		time.Sleep(3 * time.Hour)
		require.Empty(t, r.coord.requests(), "an empty segment has no age")

		<-r.append(plain(1), 0)
		time.Sleep(11 * time.Minute)
		require.Equal(t, base.CauseIdle, r.coord.requests()[0].Cause)

		for range 70 {
			<-r.append(plain(1), 0)
			time.Sleep(time.Minute)
		}
		require.Len(t, r.coord.requests(), 2)
		require.Equal(t, base.CauseAge, r.coord.requests()[1].Cause)
	})
}

func TestRetiredLeaderGoesOn(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		require.EqualValues(t, 0, (<-r.append(makeBatch(2, 42, 0, 10), 0)).Base)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Nil(t, r.plane.all()[0].lead)
		require.Equal(t, 1, r.plane.Leads())
		require.True(t, (<-r.append(makeBatch(2, 42, 0, 10), 0)).Duplicate)
		require.EqualValues(t, 2, (<-r.append(makeBatch(1, 42, 2, 10), 0)).Base)
		time.Sleep(59 * time.Minute)
		require.Len(t, r.coord.requests(), 1, "a retired segment ages too")
		require.EqualValues(t, 3, r.coord.requests()[0].End)
	})
}

func TestRollIsAskedAgainWithTheSameEnd(t *testing.T) {
	small := base.TopicConfig{SegmentBytes: 100, SegmentAge: time.Hour}
	leadingBubble(t, small, func(t *testing.T, r *rig) {
		r.coord.silent = true
		<-r.append(plain(1), 0)
		waits := r.append(plain(1), 0)
		expires := r.append(plain(1), 500*time.Millisecond)
		out := <-expires
		require.ErrorIs(t, out.err, base.CodeNoLeader)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		time.Sleep(500 * time.Millisecond)
		require.Greater(t, len(r.coord.requests()), 3)
		for _, req := range r.coord.requests() {
			require.EqualValues(t, 1, req.End)
		}
		r.coord.mu.Lock()
		r.coord.silent = false
		r.coord.mu.Unlock()
		out = <-waits
		require.NoError(t, out.err)
		require.EqualValues(t, 1, out.Base)
		require.EqualValues(t, 101, out.Segment)
		synctest.Wait()
		require.Greater(t, r.rolls[0].Gap, 900*time.Millisecond)
	})
}

// A disk that is slow during a drain turns it into a freeze; what lies above the committed end is taken by the
// successor, with the offsets it had.
func TestTailIsReplayedIntoTheSuccessor(t *testing.T) {
	small := base.TopicConfig{SegmentBytes: 300, SegmentAge: time.Hour}
	leadingBubble(t, small, func(t *testing.T, r *rig) {
		require.NoError(t, (<-r.append(makeBatch(1, 42, 0, 10), 0)).err)
		r.log.hold()
		a, b := r.append(makeBatch(1, 42, 1, 10), 0), r.append(makeBatch(1, 42, 2, 10), 0)
		twin := r.append(makeBatch(1, 42, 2, 10), 0)
		c := r.append(makeBatch(1, 42, 3, 200), 0) // rolls
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, r.coord.requests()[0].End, "frozen at what was acked")
		require.Empty(t, a)
		r.log.release(-1)
		for i, ack := range []<-chan outcome{a, b, c} {
			out := <-ack
			require.NoError(t, out.err)
			require.EqualValues(t, i+1, out.Base)
			require.GreaterOrEqual(t, out.Segment, base.SegmentID(101))
		}
		require.True(t, (<-twin).Duplicate)
		require.EqualValues(t, 1, r.log.segments[1].info.SealedEnd)
	})
}

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
		began := time.Now()
		require.NoError(t, r.plane.Close())
		require.Equal(t, closeWithin, time.Since(began))
	})
}

// A batch that the disk lost leaves a hole: its segment ends below it, the outcome is unknown, and the next append goes
// on in a successor.
func TestLostBatchEndsTheSegment(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		<-r.append(plain(1), 0)
		r.log.mu.Lock()
		r.log.lose = base.Errorf(base.CodeDiskFull, "append", "no space")
		r.log.mu.Unlock()
		out := <-r.append(plain(1), 0)
		require.ErrorIs(t, out.err, base.CodeDiskFull)
		require.Equal(t, base.Unknown, base.OutcomeOf(out.err))
		r.log.mu.Lock()
		r.log.lose = nil
		r.log.mu.Unlock()
		out = <-r.append(plain(1), 0)
		require.NoError(t, out.err)
		require.EqualValues(t, 1, out.Base)
		require.EqualValues(t, 101, out.Segment)
		require.EqualValues(t, 1, r.log.segments[1].info.SealedEnd)
	})
}

func TestSegmentThatTakesNoMoreGetsASuccessor(t *testing.T) {
	for _, code := range []base.Code{base.CodeBatchTooLarge, base.CodeFenced, base.CodeSegmentMoved} {
		leadingBubble(t, roomy, func(t *testing.T, r *rig) {
			<-r.append(plain(1), 0)
			r.log.refuseOnly(1, base.Errorf(code, "append", "no more"))
			out := <-r.append(plain(1), 0)
			require.NoError(t, out.err, "%s", code)
			require.EqualValues(t, 1, out.Base)
			require.EqualValues(t, 101, out.Segment)
		})
	}
}

// Random lives: appends, retries, a disk that stands still, a coordinator that does not answer, seals from above. What
// was acked is in the log at its offset, once, and offsets have no holes.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(lives()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			small := base.TopicConfig{SegmentBytes: 1000, SegmentAge: time.Hour}
			leadingBubble(t, small, func(t *testing.T, r *rig) { randomLife(t, r, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func lives() int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return 5000
	}
	return 60
}

func randomLife(t *testing.T, r *rig, rng *rand.Rand) {
	type sent struct {
		producer int64
		seq      int32
		answers  <-chan outcome
	}
	var all []sent
	next := map[int64]int32{}
	for range 150 {
		switch rng.IntN(12) {
		case 0:
			r.log.hold()
		case 1, 2:
			r.log.release(-1)
		case 3:
			r.coord.mu.Lock()
			r.coord.silent = rng.IntN(2) == 0
			r.coord.mu.Unlock()
		case 4:
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		case 5:
			if len(all) > 0 { // a retry of one of the last
				s := all[len(all)-1-rng.IntN(min(len(all), 5))]
				s.answers = r.append(makeBatch(1, s.producer, s.seq, 100), time.Minute)
				all = append(all, s)
			}
		default:
			id := rng.Int64N(3) + 1
			all = append(all, sent{id, next[id], r.append(makeBatch(1, id, next[id], 100), time.Minute)})
			next[id]++
		}
	}
	r.log.release(-1)
	r.coord.mu.Lock()
	r.coord.silent = false
	r.coord.mu.Unlock()

	type identity struct {
		producer int64
		seq      int32
	}
	at := map[int64]identity{}
	of := map[identity]int64{}
	for _, s := range all {
		out := <-s.answers
		if out.err != nil {
			require.NotErrorIs(t, out.err, base.CodeInternal)
			continue
		}
		who := identity{s.producer, s.seq}
		if old, ok := of[who]; ok {
			require.Equal(t, old, out.Base, "a retry has the original's offset")
		}
		if old, ok := at[out.Base]; ok {
			require.Equal(t, old, who, "an offset is one batch")
		}
		at[out.Base], of[who] = who, out.Base
	}
	synctest.Wait()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	stored := map[int64]identity{}
	var end int64
	for id := base.SegmentID(1); id <= r.coord.next; id++ {
		s := r.log.segments[id]
		if s == nil {
			continue
		}
		require.Equal(t, end, s.info.Base, "segment %s begins where the one before it ends", id)
		end = s.end
		if s.info.SealedEnd >= 0 {
			end = s.info.SealedEnd
		}
		for _, b := range s.batches {
			if b.Header.BaseOffset < end {
				stored[b.Header.BaseOffset] = identity{b.Header.ProducerID, b.Header.BaseSequence}
			}
		}
	}
	for off, who := range at {
		require.Equal(t, who, stored[off], "acked at %d", off)
	}
	require.Len(t, stored, int(end), "no holes")
	require.Empty(t, r.fatal)
	require.Zero(t, r.plane.waiting.Load())
}
