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

func TestFullDiskIsAnAnswerWhereNobodyElseCouldLead(t *testing.T) {
	alone := func(o *Options) { o.Replaceable = func(meta.Assignment, []base.NodeID) bool { return false } }
	bubble(t, alone, func(t *testing.T, r *rig) {
		r.assign(assignment(1, 1, 0, 0, roomy))
		r.log.refuseOnly(1, base.Errorf(base.CodeDiskFull, "append", "no space"))
		out := <-r.append(plain(1), 0)
		require.ErrorIs(t, out.err, base.CodeDiskFull)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
	})
}

func TestLeaderWhoseDiskRefusesNamesItself(t *testing.T) {
	for _, code := range []base.Code{base.CodeDiskFull, base.CodeInternal} {
		t.Run(code.String(), func(t *testing.T) {
			leadingBubble(t, roomy, func(t *testing.T, r *rig) {
				r.coord.replica = base.Replica{Node: "n2"}
				r.log.refuseOnly(1, base.Errorf(code, "append", "the disk does not take it"))
				require.ErrorIs(t, (<-r.append(plain(1), 0)).err, base.CodeSegmentMoved)
				require.Equal(t, []base.NodeID{"n1"}, r.coord.requests()[0].Late)
			})
		})
	}
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
