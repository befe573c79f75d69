package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

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

// A batch that the disk lost leaves a hole: its segment ends below it, and the batch goes on in the successor, with
// what came behind it, in order.
func TestLostBatchEndsTheSegment(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		<-r.append(plain(1), 0)
		r.log.mu.Lock()
		r.log.lose = base.Errorf(base.CodeDiskFull, "append", "no space")
		r.log.mu.Unlock()
		r.log.hold()
		lost, behind := r.append(makeBatch(1, 42, 0, 10), 0), r.append(makeBatch(1, 42, 1, 10), 0)
		synctest.Wait() // both are with the log
		r.log.mu.Lock()
		r.log.lose = nil
		r.log.mu.Unlock()
		r.log.release(-1)
		for i, ack := range []<-chan outcome{lost, behind} {
			out := <-ack
			require.NoError(t, out.err)
			require.EqualValues(t, 1+i, out.Base)
			require.EqualValues(t, 101, out.Segment)
		}
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
