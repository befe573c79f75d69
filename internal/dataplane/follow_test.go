package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/store"
)

func TestAFollowerAcksWhatItsDiskHolds(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		r.log.hold()
		r.send(source, a, 3, 3, plain(2))
		r.expect()
		require.EqualValues(t, 3, r.log.published[1], "the commit that came with the second batch")
		r.log.release(-1)
		r.expect(durableTo(5))
		r.send(source, a, 5, 5, nil)
		r.expect()
		require.EqualValues(t, 5, r.log.published[1], "a commit alone")
		require.Len(t, r.log.segments[1].batches, 2)
		status, ok := r.plane.Range(t.Context(), testRef)
		require.True(t, ok)
		require.Equal(t, RangeStatus{Segment: 1, Epoch: 1, Following: true, Next: 5, Commit: 5}, status)
	})
}

func TestAFollowerShowsNoMoreThanItHolds(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.log.hold()
		r.send(source, a, 0, 99, plain(3))
		synctest.Wait()
		require.Zero(t, r.log.published[1])
		r.log.release(-1)
		r.expect(durableTo(3))
		require.EqualValues(t, 3, r.log.published[1])
	})
}

func TestAnOpenWaitsForItsAssignment(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		r.open(source, a, nil, false)
		r.send(source, a, 0, 0, plain(3))
		r.send(source, a, 3, 0, plain(3))
		time.Sleep(r.plane.o.ReplicaTimeout / 2)
		r.expect()
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		r.expect(durableTo(0), durableTo(3), durableTo(6))
		require.Zero(t, r.plane.held.bytes.Load())
	})
}

func TestAnOpenWithoutAssignmentIsRefused(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		r.open(source, a, nil, false)
		r.send(source, a, 0, 0, plain(3))
		for range 3 { // its leader repeats it
			time.Sleep(r.plane.o.ReplicaTimeout)
			r.open(source, a, nil, false)
			r.expect()
		}
		time.Sleep(2 * r.plane.o.ReplicaTimeout)
		r.expect(lostBy(replica.ReasonUnassigned))
		require.Zero(t, r.plane.held.bytes.Load())
		require.Nil(t, r.plane.find(testRef), "nothing is kept of a range that nobody told of")
	})
}

// An append whose open is not here is not kept: its leader says both again.
func TestAnAppendDoesNotWaitWithoutItsOpen(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, _ meta.Assignment) {
		next := followedBy(2, 2, 0, 1)
		r.send(source, next, 0, 0, plain(3))
		r.expect()
		require.Zero(t, r.plane.held.bytes.Load())
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		r.open(source, next, nil, false)
		r.expect(durableTo(0))
	})
}

// What leaders send before it can be taken is bounded; at the bound an open is refused, and an append asked for again.
func TestWhatWaitsIsBounded(t *testing.T) {
	followBubble(t, func(o *Options) { o.HeldBytes = 4096 }, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		r.log.hold()
		r.open(source, a, nil, false)
		for i := range int64(10) {
			r.send(source, a, i, 0, makeBatch(1, header.NoProducer, -1, 1000))
		}
		r.expect()
		require.LessOrEqual(t, r.plane.held.bytes.Load(), int64(4096))
		other := a
		other.Ref.Range = 2
		r.plane.held.take(int(4096 - r.plane.held.bytes.Load()))
		r.open(source, other, nil, false)
		r.expect(lostBy(replica.ReasonUnassigned))
		r.plane.held.bytes.Add(-(4096 - 2*(1000+header.Size+earlyOverhead)))
		r.log.release(-1)
		time.Sleep(time.Second)
		acks := r.acks()
		require.NotEmpty(t, acks)
		last := acks[len(acks)-1]
		require.Equal(t, ackWant, last.status)
		require.EqualValues(t, 2, last.end)
		for i := last.end; i < 10; i++ {
			r.send(source, a, i, 0, makeBatch(1, header.NoProducer, -1, 1000))
		}
		acks = r.acks()
		require.EqualValues(t, 10, acks[len(acks)-1].end)
	})
}

func TestAGapIsAskedForOnce(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(1))
		r.expect(durableTo(1))
		r.send(source, a, 2, 0, plain(1))
		r.send(source, a, 3, 0, plain(1))
		r.expect(ackMessage{status: ackWant, end: 1})
		for i := range int64(3) {
			r.send(source, a, 1+i, 0, plain(1))
		}
		r.expect(durableTo(2), durableTo(3), durableTo(4))
		r.send(source, a, 6, 4, nil) // news of the commit, behind batches that are lost
		r.expect(ackMessage{status: ackWant, end: 4})
	})
}

// An ack that found no room in the connection's queue is given again when the leader asks.
func TestAnAckThatWasLostIsGivenAgain(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		r.send(source, a, 3, 0, nil)
		r.expect(durableTo(3))
		r.send(source, a, 3, 3, nil)
		r.expect()
	})
}

func TestABatchThatWasDamagedOnItsWayIsAskedForAgain(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		b := plain(2)
		b[len(b)-1] ^= 1
		r.send(source, a, 0, 0, b)
		r.expect()
		r.send(source, a, 2, 0, plain(1))
		r.expect(ackMessage{status: ackWant, end: 0})
		require.Empty(t, r.log.segments[1].batches)
	})
}

func TestANewSessionOfTheLeaderGoesOnFromWhatIsHere(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		r.open(source, a, nil, false)
		r.expect(durableTo(3))
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		r.send(source, a, 3, 0, plain(3))
		r.expect(durableTo(6))
		require.Len(t, r.log.segments[1].batches, 2)
	})
}

func TestOnlyTheLeaderThatWasPlacedIsFollowed(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		for _, other := range []replica.Source{{Node: leaderNode.Node, Boot: source.Boot + 1}, {Node: "n3", Boot: source.Boot}} {
			r.open(other, a, nil, false)
			r.expect(lostBy(replica.ReasonFenced))
			r.send(other, a, 0, 0, plain(1))
			r.expect(lostBy(replica.ReasonFenced))
		}
		r.send(source, a, 0, 0, plain(1))
		r.expect(durableTo(1))
	})
}

// The first to open a segment is no better than the others if it is not who was placed.
func TestNobodyElseOpensASegmentFirst(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		for _, other := range []replica.Source{{Node: leaderNode.Node, Boot: source.Boot + 1}, {Node: "n3", Boot: source.Boot}} {
			r.open(other, a, nil, false)
			r.expect(lostBy(replica.ReasonFenced))
		}
		require.Empty(t, r.log.segments)
		r.open(source, a, nil, false)
		r.expect(durableTo(0))
	})
}

// Where nobody wrote down which start was placed, what lies on the disk of an earlier one says so.
func TestACopyOfAnEarlierStartIsNotFollowedOn(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		r.log.segments[1] = &fakeSegment{info: store.SegmentInfo{
			SegmentSpec: store.SegmentSpec{Ref: testRef, Segment: 1, Epoch: 1}, State: base.StateActive, SealedEnd: -1, Boot: boot - 1,
		}}
		a.Boots = nil
		require.Equal(t, meta.StatusHeld, r.assign(a).Status, "it has heard of it")
		r.open(source, a, nil, false)
		r.expect(lostBy(replica.ReasonRestarted))
		r.send(source, a, 0, 0, plain(1))
		r.expect(lostBy(replica.ReasonRestarted))
		require.Empty(t, r.log.segments[1].batches)
		require.Zero(t, r.plane.Follows())
	})
}

// A node that is about to stop begins to follow nothing; what it follows it goes on with.
func TestANodeThatLeavesFollowsNothingNew(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.plane.Leave()
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		next := followedBy(2, 2, 3, 1)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status, "it has heard of it")
		r.open(source, next, nil, false)
		r.expect(lostBy(replica.ReasonUnassigned))
		require.NotContains(t, r.log.segments, base.SegmentID(2))
	})
}

// A batch whose offset or epoch is another than its message says is none: its own checksum covers neither.
func TestABatchIsWhereItsMessageSays(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		for _, wrong := range []struct {
			first int64
			epoch int32
		}{{3, int32(a.Epoch)}, {0, int32(a.Epoch) + 1}} {
			m := appendMessage{segmentHead: headOf(a), batch: plain(3)}
			header.Patch(m.batch, wrong.first, wrong.epoch)
			r.plane.receive(kindAppend, encodeAppend(&m), arrival{from: source})
			r.expect()
			require.Empty(t, r.log.segments[1].batches)
		}
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
	})
}

// Only who may still ack counts as one who follows.
func TestWhoFollows(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		require.Equal(t, 1, r.plane.Follows())
		require.True(t, r.plane.ComesHere(testRef, 0))
		_, err := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1, Boot: boot}})
		require.NoError(t, err)
		require.Zero(t, r.plane.Follows(), "fenced")
		require.False(t, r.plane.ComesHere(testRef, 0))

		next := followedBy(2, 2, 0, 1)
		require.Equal(t, meta.StatusHeld, r.assign(next).Status)
		require.Equal(t, 1, r.plane.Follows())
		elsewhere := followedBy(3, 3, 0, 2)
		elsewhere.Replicas, elsewhere.Boots = []base.Replica{leaderNode}, []uint64{source.Boot}
		require.Equal(t, meta.StatusHeld, r.assign(elsewhere).Status)
		require.Zero(t, r.plane.Follows(), "no replica of the newest segment")
		require.False(t, r.plane.ComesHere(testRef, 0))
	})
}

func TestAProcessThatWasNotPlacedDoesNotFollow(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		a.Boots[1] = boot - 1
		require.Equal(t, meta.StatusHeld, r.assign(a).Status, "it has heard of it")
		r.open(source, a, nil, false)
		r.expect(lostBy(replica.ReasonRestarted))
		r.send(source, a, 0, 0, plain(1))
		r.expect(lostBy(replica.ReasonRestarted))
		require.Empty(t, r.log.segments)
	})
}

func TestAFenceEndsFollowing(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		answers, err := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1, Boot: boot}})
		require.NoError(t, err)
		require.EqualValues(t, 3, answers[0].End)
		require.True(t, answers[0].Unbroken)
		r.expect(lostBy(replica.ReasonFenced).at(3))
		r.send(source, a, 3, 3, plain(3))
		r.expect(lostBy(replica.ReasonFenced))
		require.Len(t, r.log.segments[1].batches, 1)
	})
}

// Nothing that was on its way to the disk when the fence came is acked any more.
func TestNoAckLeavesBehindAFence(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.log.hold()
		r.send(source, a, 0, 0, plain(3))
		r.expect()
		go func() {
			_, _ = r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 1, Segment: 1, Boot: boot}})
		}()
		r.expect(lostBy(replica.ReasonFenced))
		r.log.release(-1)
		r.expect()
	})
}

func TestUnbrokenIsTheStartThatWasPlaced(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		fence := func(boot uint64) meta.FenceAnswer {
			answers, err := r.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: 4, Segment: 9, Base: 70, Boot: boot}})
			require.NoError(t, err)
			require.EqualValues(t, 70, answers[0].End)
			require.True(t, answers[0].Unlisted)
			return answers[0]
		}
		require.True(t, fence(boot).Unbroken, "assigned and never listed")
		require.False(t, fence(boot-1).Unbroken)
		require.False(t, fence(0).Unbroken, "nobody knows")
	})
}

func TestAFollowersDiskFailure(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.log.mu.Lock()
		r.log.lose = base.Errorf(base.CodeDiskFull, "append", "full")
		r.log.mu.Unlock()
		r.send(source, a, 0, 0, plain(1))
		r.expect(lostBy(replica.ReasonFailed))
		r.send(source, a, 1, 0, plain(1))
		r.expect(lostBy(replica.ReasonFailed))
	})
}

// A log without room is waited for, and what came meanwhile goes behind.
func TestAFollowersLogWithoutRoomIsWaitedFor(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.log.refuseOnly(1, base.Errorf(base.CodeBusy, "append", "no room"))
		for i := range int64(4) {
			r.send(source, a, i, 0, plain(1))
		}
		time.Sleep(tickEvery)
		r.expect()
		r.log.refuseOnly(1, nil)
		time.Sleep(3 * tickEvery)
		r.expect(durableTo(1), durableTo(2), durableTo(3), durableTo(4))
		require.Zero(t, r.plane.held.bytes.Load())
	})
}

func TestInMemoryTopicsAckMemory(t *testing.T) {
	followBubble(t, nil, func(t *testing.T, r *followRig) {
		a := followedBy(1, 1, 0, 0)
		a.Config.Durability = base.DurabilityReplicated
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		r.open(source, a, nil, false)
		r.expect(durableTo(0))
		require.True(t, r.log.segments[1].info.Memory)
		r.log.hold()
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
	})
}

func TestASealedCopyThatIsShortSaysSo(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		end := a
		end.State, end.End, end.Version = base.StateSealed, 5, 2
		c := r.assign(end)
		require.Equal(t, meta.StatusShort, c.Status, c.Message)
		r.open(source, a, nil, false)
		r.expect(lostBy(replica.ReasonFenced))

		never := followedBy(7, 7, 10, 1)
		never.State, never.End, never.Version = base.StateSealed, 12, 2
		c = r.assign(never)
		require.Equal(t, meta.StatusShort, c.Status, "of a copy that was never opened the end is kept, too")
		info, ok := r.log.Info(7)
		require.True(t, ok)
		require.EqualValues(t, 12, info.SealedEnd)
	})
}

// An end below what readers saw is not believed, unless it was forced.
func TestAnEndBelowWhatWasReadHereIsRefused(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.send(source, a, 3, 3, nil)
		r.expect(durableTo(3))
		r.log.mu.Lock()
		r.log.sealErr = base.Errorf(base.CodeInvalidArgument, "seal", "below the commit")
		r.log.mu.Unlock()
		end := a
		end.State, end.End, end.Version = base.StateSealed, 2, 2
		require.Equal(t, meta.StatusFailed, r.assign(end).Status)
	})
}

// A trim names what has ended; a copy of that which nobody has told so is dropped if all that it has is trimmed.
func TestATrimOfACopyWhoseEndIsNotKnownHere(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.send(source, a, 0, 0, plain(3))
		r.expect(durableTo(3))
		trim := func(earliest int64) meta.ConfirmStatus {
			c, err := r.plane.Tell(t.Context(), meta.Orders{Trims: []meta.Trim{{Ref: testRef, Earliest: earliest, Version: 1}}})
			require.NoError(t, err)
			return c[0].Status
		}
		require.Equal(t, meta.StatusFailed, trim(2), "more may be left of it")
		require.Contains(t, r.log.segments, a.Segment)
		require.Equal(t, meta.StatusHeld, trim(4))
		require.NotContains(t, r.log.segments, a.Segment)
	})
}

func TestATopicIsDeletedWhileItIsFollowed(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		r.log.hold()
		r.send(source, a, 0, 0, plain(3))
		synctest.Wait()
		r.log.release(-1)
		_, err := r.plane.Tell(t.Context(), meta.Orders{Deletes: []base.TopicID{testTopic}})
		require.NoError(t, err)
		r.acks()
		r.send(source, a, 3, 0, plain(3))
		r.open(source, a, nil, false)
		r.expect()
		require.Zero(t, r.plane.held.bytes.Load())
		require.Empty(t, r.log.segments)
	})
}

func TestHears(t *testing.T) {
	following1(t, nil, func(t *testing.T, r *followRig, a meta.Assignment) {
		link := func(l peer.Link) {
			r.heard.mu.Lock()
			defer r.heard.mu.Unlock()
			r.heard.links[leaderNode.Node] = l
		}
		require.False(t, r.plane.Hears(testRef))
		link(peer.Link{Node: leaderNode.Node, Boot: source.Boot, Up: true, Heard: time.Now()})
		require.True(t, r.plane.Hears(testRef))
		time.Sleep(2 * hearsWithin)
		require.False(t, r.plane.Hears(testRef))
		link(peer.Link{Node: leaderNode.Node, Boot: source.Boot + 1, Up: true, Heard: time.Now()})
		require.False(t, r.plane.Hears(testRef), "another process")
		require.False(t, r.plane.Hears(base.RangeRef{Range: 99}))
	})
}
