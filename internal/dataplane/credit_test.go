package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
)

// crowd is a plane with many ranges and little credit.
func crowdBubble(t *testing.T, ranges int, test func(t *testing.T, r *rig, send func(i int) <-chan outcome)) {
	bubble(t, func(o *Options) {
		o.CreditBytes, o.NodeCreditBytes, o.WaitingBytes = 1000, 3000, 4000
	}, func(t *testing.T, r *rig) {
		for i := range ranges {
			a := assignment(base.SegmentID(i+1), 1, 0, 0, roomy)
			a.Ref.Range = base.RangeID(i + 1)
			r.assign(a)
		}
		test(t, r, func(i int) <-chan outcome {
			answer := make(chan outcome, 2)
			r.plane.Append(AppendRequest{
				Ref: base.RangeRef{Topic: testTopic, Range: base.RangeID(i + 1)}, Deadline: time.Now().Add(5 * time.Second),
				Bytes: makeBatch(1, header.NoProducer, -1, 500-header.Size),
			}, func(res AppendResult, err error) { answer <- outcome{res, err} })
			return answer
		})
	})
}

func TestNodeCreditHoldsBackWhatTheSegmentsAllow(t *testing.T) {
	crowdBubble(t, 5, func(t *testing.T, r *rig, send func(int) <-chan outcome) {
		r.log.hold()
		var acks []<-chan outcome
		for i := range 5 {
			acks = append(acks, send(i), send(i)) // two for each segment's credit, six for the node's
		}
		synctest.Wait()
		require.EqualValues(t, 4000, r.plane.credit.used.Load(), "a segment with nothing in flight gets one in")
		require.EqualValues(t, 1000, r.plane.waiting.Load())
		r.log.release(-1)
		for _, ack := range acks {
			require.NoError(t, (<-ack).err)
		}
		require.Zero(t, r.plane.credit.used.Load())
		require.Zero(t, r.plane.waiting.Load())
	})
}

// Whoever waits for credit goes on as soon as there is some, not when somebody looks.
func TestCreditThatComesBackIsUsedAtOnce(t *testing.T) {
	crowdBubble(t, 4, func(t *testing.T, r *rig, send func(int) <-chan outcome) {
		r.log.hold()
		for i := range 3 {
			send(i)
			send(i)
		}
		last := send(3)
		waits := send(3)
		synctest.Wait()
		require.Empty(t, last)
		began := time.Now()
		r.log.release(3)
		synctest.Wait()
		r.log.release(-1)
		require.NoError(t, (<-waits).err)
		require.Zero(t, time.Since(began))
	})
}

// Above all limits the answer is an error that may be tried again, not silence.
func TestMoreThanAllLimits(t *testing.T) {
	crowdBubble(t, 1, func(t *testing.T, r *rig, send func(int) <-chan outcome) {
		r.log.hold()
		busy := 0
		var acks []<-chan outcome
		for range 20 {
			acks = append(acks, send(0))
		}
		synctest.Wait()
		for _, ack := range acks[10:] {
			require.ErrorIs(t, (<-ack).err, base.CodeBusy)
			busy++
		}
		require.Equal(t, 10, busy)
		time.Sleep(6 * time.Second)
		for _, ack := range acks[2:10] {
			out := <-ack
			require.ErrorIs(t, out.err, base.CodeBusy)
			require.Equal(t, base.NotApplied, base.OutcomeOf(out.err))
		}
		require.Equal(t, base.Unknown, base.OutcomeOf((<-acks[0]).err))
		r.log.release(-1)
	})
}

// A segment that waits for its seal keeps its credit, and no other segment waits for that.
func TestSegmentsThatWaitForTheirSealStarveNobody(t *testing.T) {
	crowdBubble(t, 8, func(t *testing.T, r *rig, send func(int) <-chan outcome) {
		r.coord.silent = true
		for i := range 7 {
			r.log.mu.Lock()
			r.log.lose = base.Errorf(base.CodeDiskFull, "append", "no space")
			r.log.mu.Unlock()
			send(i)
			send(i)
		}
		synctest.Wait()
		r.log.mu.Lock()
		r.log.lose = nil
		r.log.mu.Unlock()
		for range 3 {
			require.NoError(t, (<-send(7)).err)
		}
	})
}

// What was in flight in a segment that has ended elsewhere is in flight no more, and its disk's answer changes nothing.
func TestASegmentThatHasGoneElsewhereGivesItsCreditBack(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		r.log.hold()
		ack := r.append(plain(1), 0)
		synctest.Wait()
		require.NotZero(t, r.plane.credit.used.Load())
		next := assignment(2, 2, 0, 1, roomy)
		next.Replicas = []base.Replica{{Node: "n2"}}
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		require.ErrorIs(t, (<-ack).err, base.CodeSegmentMoved)
		require.Zero(t, r.plane.credit.used.Load())
		r.log.release(-1)
		synctest.Wait()
		require.Zero(t, r.plane.credit.used.Load())
	})
}
