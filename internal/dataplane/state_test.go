package dataplane

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
)

var there = base.Replica{Node: "n2", Disk: base.DiskID{8}}

// two are the planes of two nodes: n1's rolls go to n2, which asks n1 for states.
type two struct {
	n1, n2 *rig
	loads  atomic.Int64
	cut    atomic.Bool // n2 does not reach n1
}

func twoBubble(t *testing.T, run func(t *testing.T, w *two)) {
	synctest.Test(t, func(t *testing.T) {
		w := &two{n1: newRig(t, nil)}
		w.n2 = newRig(t, func(o *Options) {
			o.Node, o.Disk = there.Node, there.Disk
			o.LoadState = func(ctx context.Context, from base.Replica, ref base.RangeRef, seg base.SegmentID, end int64) ([]byte, error) {
				w.loads.Add(1)
				if w.cut.Load() {
					<-ctx.Done()
					return nil, base.Wrap(base.CodeTimeout, "load", ctx.Err())
				}
				require.Equal(t, here, from)
				return w.n1.plane.StateAt(ref, seg, end)
			}
		})
		w.n1.coord.replica = there
		defer w.n2.close()
		defer w.n1.close()
		require.Equal(t, meta.StatusHeld, w.n1.assign(assignment(1, 1, 0, 0, roomy)).Status)
		run(t, w)
	})
}

// successor is segment 101 at n2, behind segment 1 of n1.
func successor(at int64) meta.Assignment {
	a := assignment(101, 2, at, 1, roomy)
	a.Replicas = []base.Replica{there}
	a.From = &meta.Source{Segment: 1, Replicas: []base.Replica{here}}
	return a
}

// sealedAt is segment 1 as its holder is told of its end.
func sealedAt(end int64) meta.Assignment {
	a := assignment(1, 1, 0, 0, roomy)
	a.State, a.End, a.Version, a.Active = base.StateSealed, end, 2, there.Node
	return a
}

func TestIdempotenceHoldsAcrossARollToAnotherNode(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		first, second := makeBatch(2, 42, 0, 20), makeBatch(3, 42, 2, 30)
		require.NoError(t, (<-w.n1.append(first, 0)).err)
		w.n1.log.hold()
		tail := w.n1.append(second, 0) // on its way to the disk when the segment is sealed below it
		require.Equal(t, meta.StatusHeld, w.n2.assign(successor(2)).Status)
		confirmed := make(chan meta.Confirmation, 1)
		go func() { confirmed <- w.n1.assign(sealedAt(2)) }()
		out := <-tail
		require.ErrorIs(t, out.err, base.CodeSegmentMoved)
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		w.n1.log.release(-1)
		require.Equal(t, meta.StatusHeld, (<-confirmed).Status)

		again := <-w.n2.append(makeBatch(2, 42, 0, 20), 0)
		require.NoError(t, again.err)
		require.True(t, again.Duplicate, "acked by n1")
		require.Zero(t, again.Base)
		next := <-w.n2.append(makeBatch(3, 42, 2, 30), 0)
		require.NoError(t, next.err)
		require.False(t, next.Duplicate, "never acked")
		require.EqualValues(t, 2, next.Base)
		require.ErrorIs(t, (<-w.n2.append(makeBatch(1, 42, 9, 20), 0)).err, base.CodeOutOfOrder)

		late := <-w.n1.append(makeBatch(1, 42, 5, 20), 0)
		require.ErrorIs(t, late.err, base.CodeSegmentMoved)
		var e *base.Error
		require.ErrorAs(t, late.err, &e)
		require.Equal(t, there.Node, e.Redirect.Node)
		require.False(t, w.n1.plane.LedHere(testRef))
		require.True(t, w.n2.plane.LedHere(testRef))
	})
}

// The answer to the leader's own request names the successor on another node before anybody is told anything.
func TestARollsAnswerSendsProducersOn(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		w.n1.coord.config = base.TopicConfig{SegmentBytes: 300, SegmentAge: time.Hour}
		small := assignment(1, 1, 0, 0, w.n1.coord.config)
		small.Version = 2
		require.Equal(t, meta.StatusHeld, w.n1.assign(small).Status)
		require.NoError(t, (<-w.n1.append(makeBatch(1, 42, 0, 200), 0)).err)
		out := <-w.n1.append(makeBatch(1, 42, 1, 200), 0)
		require.ErrorIs(t, out.err, base.CodeSegmentMoved)
		require.Len(t, w.n1.coord.requests(), 1)
		require.Equal(t, "t", w.n1.coord.requests()[0].Topic)
		require.Zero(t, w.n1.plane.waiting.Load())
	})
}

func TestASegmentWithoutItsStateIsNotOpened(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		require.NoError(t, (<-w.n1.append(makeBatch(2, 42, 0, 20), 0)).err)
		w.cut.Store(true)
		began := time.Now()
		waiting := w.n2.append(makeBatch(2, 42, 0, 20), 4*time.Second)
		require.Equal(t, meta.StatusFailed, w.n2.assign(successor(2)).Status)
		require.LessOrEqual(t, time.Since(began), loadHolds, "other orders do not wait for it")
		require.Equal(t, meta.StatusStateless, w.n2.assign(successor(2)).Status, "told again, it waits")
		require.LessOrEqual(t, time.Since(began), loadWithin+time.Second)
		out := <-waiting
		require.ErrorIs(t, out.err, base.CodeNoLeader, "a typed answer by the deadline")
		require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))

		w.cut.Store(false) // told again, it tries again
		require.Equal(t, meta.StatusHeld, w.n2.assign(successor(2)).Status)
		require.True(t, (<-w.n2.append(makeBatch(2, 42, 0, 20), 0)).Duplicate)
	})
}

// Nobody to ask is no state, and no reason to end.
func TestASegmentBehindOneWithoutReplicasIsNotOpened(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		lone := successor(2)
		lone.From = &meta.Source{Segment: lone.From.Segment}
		require.Equal(t, meta.StatusFailed, w.n2.assign(lone).Status)
		require.Equal(t, meta.StatusStateless, w.n2.assign(lone).Status)
	})
}

// A segment that was fenced before it had opened goes on elsewhere, and this node hears no more of it.
func TestASegmentThatIsFencedBeforeItOpens(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		require.NoError(t, (<-w.n1.append(makeBatch(2, 42, 0, 20), 0)).err)
		w.cut.Store(true)
		require.Equal(t, meta.StatusFailed, w.n2.assign(successor(2)).Status)
		require.True(t, w.n2.plane.LedHere(testRef))
		answers, err := w.n2.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 2, Segment: 101, Base: 2}})
		require.NoError(t, err)
		require.True(t, answers[0].Unlisted)
		require.EqualValues(t, 2, answers[0].End)
		require.False(t, w.n2.plane.LedHere(testRef))
		require.Equal(t, meta.StatusFailed, w.n2.assign(successor(2)).Status, "told again, as it was")
		began := time.Now()
		require.ErrorIs(t, (<-w.n2.append(makeBatch(2, 42, 2, 20), 0)).err, base.CodeNotReplica)
		require.Less(t, time.Since(began), 2*time.Second)

		w.cut.Store(false) // or it comes back after all
		next := successor(2)
		next.Segment, next.Epoch, next.Version, next.Prev = 102, 3, 3, 101
		require.Equal(t, meta.StatusHeld, w.n2.assign(next).Status)
		require.True(t, (<-w.n2.append(makeBatch(2, 42, 0, 20), 0)).Duplicate)
	})
}

// What a coordinator that has been replaced still sends changes nothing.
func TestLateOrdersDoNoHarm(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		require.NoError(t, (<-w.n1.append(makeBatch(2, 42, 0, 20), 0)).err)
		require.Equal(t, meta.StatusHeld, w.n2.assign(successor(2)).Status)
		require.Equal(t, meta.StatusHeld, w.n1.assign(sealedAt(2)).Status)

		require.Equal(t, meta.StatusFailed, w.n1.assign(assignment(1, 1, 0, 0, roomy)).Status, "as it was while active")
		require.ErrorIs(t, (<-w.n1.append(plain(1), 0)).err, base.CodeSegmentMoved)
		require.Equal(t, meta.StatusHeld, w.n1.assign(sealedAt(2)).Status, "what is known is confirmed again")

		// A late fence of the old segment does nothing to its successor.
		_, err := w.n2.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1}})
		require.NoError(t, err)
		require.NoError(t, (<-w.n2.append(makeBatch(3, 42, 2, 20), 0)).err)
	})
}

func TestWhereNothingWasWrittenNobodyIsAsked(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		w.cut.Store(true)
		empty := successor(0)
		require.Equal(t, meta.StatusHeld, w.n2.assign(empty).Status)
		require.Zero(t, w.loads.Load())
	})
}

// Metadata names no segment to ask although there were records: what the range remembered is lost, and the next to open
// behind this segment is to know that.
func TestAStateThatNobodyHasIsKnownToBeLost(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		orphan := successor(5)
		orphan.From, orphan.Prev = nil, 0
		require.Equal(t, meta.StatusHeld, w.n2.assign(orphan).Status)
		require.Zero(t, w.loads.Load())
		b, err := w.n2.plane.StateAt(testRef, orphan.Segment, 5)
		require.NoError(t, err)
		state, err := rangestate.Decode(b)
		require.NoError(t, err)
		require.True(t, state.ForgotAny())
	})
}

func TestStateAtAnswersOnlyWhatIsHeld(t *testing.T) {
	twoBubble(t, func(t *testing.T, w *two) {
		require.NoError(t, (<-w.n1.append(plain(2), 0)).err)
		_, err := w.n1.plane.StateAt(testRef, 1, 3)
		require.ErrorIs(t, err, base.CodeBehind)
		_, err = w.n1.plane.StateAt(testRef, 9, 1)
		require.ErrorIs(t, err, base.CodeNotReplica)
		_, err = w.n1.plane.StateAt(base.RangeRef{Topic: testTopic, Range: 7}, 1, 1)
		require.ErrorIs(t, err, base.CodeNotReplica)
		b, err := w.n1.plane.StateAt(testRef, 1, 2)
		require.NoError(t, err)
		require.NotEmpty(t, b)
	})
}

// A restarted node that is told only of sealed segments knows where to send producers.
func TestAHolderOfSealedSegmentsKnowsTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		old := assignment(1, 1, 0, 0, roomy)
		require.NoError(t, r.log.OpenSegment(specOf(old), func(error) {}))
		r.log.segments[1].info.Boot = boot - 1
		r.log.segments[1].info.DurableEnd = 4
		waiting := r.append(plain(1), 0)
		require.Equal(t, meta.StatusHeld, r.assign(sealedAt(4)).Status)
		var e *base.Error
		require.ErrorAs(t, (<-waiting).err, &e)
		require.Equal(t, there.Node, e.Redirect.Node)
	})
}
