package dataplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/replica"
	"github.com/eastguard/eastguard/internal/wire"
)

var headOne = segmentHead{ref: testRef, epoch: 1, segment: 1}

func TestEveryReplicaHoldsWhatIsAcked(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		ack := r.append(plain(3), 0)
		synctest.Wait()
		require.Empty(t, ack, "n3 has not answered")
		require.Zero(t, r.log.published[1])

		r.links.ack("n3", 2, ackMessage{segmentHead: headOne, status: ackDurable, end: 3})
		require.NoError(t, (<-ack).err)
		require.EqualValues(t, 3, r.log.published[1])
		synctest.Wait()
		require.EqualValues(t, 3, r.links.followers["n2"].commit, "the commit travels alone when nothing else does")
	})
}

func TestFollowersAreSentBatchesWhileTheLeadersDiskIsAtIt(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.log.hold()
		ack := r.append(plain(1), 0)
		synctest.Wait()
		require.EqualValues(t, 1, r.links.followers["n2"].end)
		require.Empty(t, ack, "the leader's own fsync counts")
		r.log.release(-1)
		require.NoError(t, (<-ack).err)
	})
}

func TestLinkThatIsBackInTimeIsResumed(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.relink("n2", down)
		one, two := r.append(plain(1), 0), r.append(plain(1), 0)
		time.Sleep(30 * time.Millisecond)
		require.Empty(t, one)
		r.links.relink("n2", up)
		require.NoError(t, (<-one).err)
		require.NoError(t, (<-two).err)
		f := r.links.followers["n2"]
		require.Len(t, f.opens, 2, "once a session")
		require.EqualValues(t, 3, f.end)
		require.Empty(t, r.coord.requests())
		require.EqualValues(t, 1, r.plane.metrics.resumes.Value())
	})
}

func TestLinkThatStaysDownIsALostFollower(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.relink("n2", down)
		began := time.Now()
		ack := r.append(plain(1), 0)
		out := <-ack
		require.NoError(t, out.err, "the tail goes on in the successor")
		require.EqualValues(t, 1, out.Base)
		require.Less(t, time.Since(began), 200*time.Millisecond)
		req := r.coord.requests()[0]
		require.Equal(t, base.CauseReplicaFailure, req.Cause)
		require.Equal(t, []base.NodeID{"n2"}, req.Lost)
		require.EqualValues(t, 1, req.End)
		require.EqualValues(t, 1, r.plane.metrics.lost.Value())
	})
}

func TestIdleSegmentWithALostFollowerStaysUntilSomebodyAppends(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.relink("n3", func(l *peer.Link) { l.Up, l.Refused = false, true })
		time.Sleep(time.Second)
		require.Empty(t, r.coord.requests())
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Lost)
		require.Equal(t, base.SegmentID(101), r.lead().seg)
	})
}

func TestRestedLeaderRemembersWhoIsLost(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.ack("n3", 2, ackMessage{segmentHead: headOne, status: ackLost, reason: replica.ReasonFailed})
		time.Sleep(5 * time.Minute)
		require.Nil(t, r.lead())
		began := time.Now()
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Zero(t, time.Since(began))
		require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Lost)
	})
}

// What acks promise stays so to the end of a segment: its followers were told once.
func TestDurabilityChangesWithTheNextSegment(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		changed := trioAssignment(1, 1, 0, 0, roomy)
		changed.Config.Durability, changed.Version = base.DurabilityReplicated, 2
		r.assign(changed)
		time.Sleep(5 * time.Minute)
		r.log.hold()
		ack := r.append(plain(1), 0)
		synctest.Wait()
		require.Empty(t, ack)
		r.log.release(-1)
		require.NoError(t, (<-ack).err)
	})
}

func TestRefusedFollowerIsLostAtOnce(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n2", func(f *scriptedFollower) { f.willing = false })
		ack := r.append(plain(1), 0)
		synctest.Wait()
		began := time.Now()
		r.links.relink("n2", func(l *peer.Link) { l.Up, l.Refused = false, true })
		require.NoError(t, (<-ack).err)
		require.Zero(t, time.Since(began))
	})
}

func TestFollowerThatStartedAnewIsLost(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.relink("n2", down)
		r.links.relink("n2", func(l *peer.Link) { l.Up, l.Boot = true, boot+1 })
		synctest.Wait()
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Equal(t, []base.NodeID{"n2"}, r.coord.requests()[0].Lost)
		require.Len(t, r.links.followers["n2"].opens, 1, "it is told nothing of the segment")
	})
}

func TestFollowerThatSaysItIsLost(t *testing.T) {
	for _, why := range []replica.Reason{replica.ReasonFenced, replica.ReasonRestarted, replica.ReasonFailed, replica.ReasonUnassigned} {
		t.Run(why.String(), func(t *testing.T) {
			trioBubble(t, nil, func(t *testing.T, r *trio) {
				r.links.edit("n2", func(f *scriptedFollower) { f.willing = false })
				r.coord.silent = true
				ack := r.append(plain(1), 0)
				r.links.ack("n2", 1, ackMessage{segmentHead: headOne, status: ackLost, reason: why})
				synctest.Wait()
				require.Equal(t, replica.Frozen, r.lead().replica.State())
				r.links.ack("n2", 1, ackMessage{segmentHead: headOne, status: ackDurable, end: 1})
				synctest.Wait()
				require.Empty(t, ack, "nothing is answered before the committed end is known")
				require.Zero(t, r.coord.requests()[0].End)

				next := trioAssignment(2, 2, 1, 1, roomy) // the coordinator found the batch on a fenced survivor
				r.links.edit("n2", func(f *scriptedFollower) { f.willing = true })
				r.assign(next)
				out := <-ack
				require.NoError(t, out.err)
				require.Equal(t, base.SegmentID(1), out.Segment)
			})
		})
	}
}

func TestZombieSendsItsTailElsewhere(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		r.links.edit("n3", func(f *scriptedFollower) { f.willing = false })
		r.coord.silent = true
		ack := r.append(plain(1), 0)
		r.links.ack("n3", 2, ackMessage{segmentHead: headOne, status: ackLost, reason: replica.ReasonFenced})
		synctest.Wait()
		require.Empty(t, ack)
		next := trioAssignment(2, 2, 1, 1, roomy)
		next.Replicas = []base.Replica{trioReplicas[1], trioReplicas[2]}
		next.Boots = []uint64{boot, boot}
		sealed := trioAssignment(1, 1, 0, 0, roomy)
		sealed.State, sealed.End, sealed.Version, sealed.Active = base.StateSealed, 1, 2, "n2"
		r.assign(sealed)
		out := <-ack
		require.ErrorIs(t, out.err, base.CodeSegmentMoved)
		e := new(base.Error)
		require.ErrorAs(t, out.err, &e)
		require.Equal(t, base.NotApplied, e.Outcome)
		require.Empty(t, r.fatal)
	})
}

func TestWhatOnlyAStrangerOrAnOldSessionSays(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n2", func(f *scriptedFollower) { f.willing = false })
		ack := r.append(plain(1), 0)
		synctest.Wait()
		say := func(from replica.Source, session uint64, m ackMessage) {
			m.segmentHead = headOne
			r.plane.receive(kindAck, m.encode(), arrival{from: from, session: session})
			synctest.Wait()
		}
		n2 := replica.Source{Node: "n2", Boot: boot}
		sent := len(r.links.followers["n2"].appends)
		say(replica.Source{Node: "n9", Boot: boot}, 9, ackMessage{status: ackDurable, end: 1})
		say(replica.Source{Node: "n2", Boot: boot + 1}, 9, ackMessage{status: ackDurable, end: 1})
		say(replica.Source{Node: "n2", Boot: boot - 1}, 1, ackMessage{status: ackLost, reason: replica.ReasonFailed})
		say(n2, 1, ackMessage{status: ackDurable, end: 2}) // more than was sent
		say(n2, 77, ackMessage{status: ackWant, end: 0})   // of a connection that is gone
		say(n2, 77, ackMessage{status: ackState})
		require.Empty(t, ack)
		require.Len(t, r.links.followers["n2"].appends, sent)
		require.Len(t, r.links.followers["n2"].opens, 1)

		say(n2, 77, ackMessage{status: ackDurable, end: 1}) // what is on its disk is, whoever says so
		require.NoError(t, (<-ack).err)
		say(n2, 1, ackMessage{status: ackDurable, end: 1})
		say(n2, 1, ackMessage{status: ackDurable, end: 0})
		require.EqualValues(t, 1, r.lead().replica.Commit())
	})
}

// batches are what a follower was sent with a batch.
func (f *scriptedFollower) batches() (list []appendMessage) {
	for _, m := range f.appends {
		if len(m.batch) > 0 {
			list = append(list, m)
		}
	}
	return list
}

func TestFollowerIsSentWhatItMissed(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		lose := func() <-chan outcome {
			r.links.edit("n2", func(f *scriptedFollower) { f.deaf = true })
			lost := r.append(plain(1), 0)
			synctest.Wait()
			r.links.edit("n2", func(f *scriptedFollower) { f.deaf = false })
			return lost
		}
		require.NoError(t, (<-r.append(plain(2), 0)).err)
		lost := lose()
		next := r.append(plain(1), 0) // shows the gap
		require.NoError(t, (<-lost).err)
		require.NoError(t, (<-next).err)

		lost, began := lose(), time.Now() // nothing shows it: the follower is asked
		require.NoError(t, (<-lost).err)
		require.Less(t, time.Since(began), r.plane.o.ReplicaTimeout/2)
		require.Empty(t, r.coord.requests())
	})
}

func TestOpenThatWasLostIsRepeated(t *testing.T) {
	trioBubble(t, func(s *scripted, _ *Options) { s.followers["n3"].deaf = true }, func(t *testing.T, r *trio) {
		ack := r.append(plain(1), 0)
		synctest.Wait()
		require.Empty(t, r.links.followers["n3"].opens)
		r.links.edit("n3", func(f *scriptedFollower) { f.deaf = false })
		require.NoError(t, (<-ack).err)
		require.Len(t, r.links.followers["n3"].opens, 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, r.links.followers["n3"].opens, 1, "no longer than until it is answered")
	})
}

func TestFollowerThatDoesNotAnswerIsToldLessAndLess(t *testing.T) {
	trioBubble(t, func(s *scripted, _ *Options) { s.followers["n3"].willing = false }, func(t *testing.T, r *trio) {
		time.Sleep(time.Minute)
		synctest.Wait()
		require.InDelta(t, 13, len(r.links.followers["n3"].opens), 3)
		require.Len(t, r.links.followers["n2"].opens, 1)
	})
}

func TestFollowerThatIsNotConnectedYet(t *testing.T) {
	absent := func(s *scripted, _ *Options) { s.followers["n3"].link.Up = false }
	t.Run("comes in time", func(t *testing.T) {
		trioBubble(t, absent, func(t *testing.T, r *trio) {
			ack := r.append(plain(1), 0)
			time.Sleep(500 * time.Millisecond)
			require.Empty(t, ack)
			r.links.relink("n3", up)
			require.NoError(t, (<-ack).err)
			require.Empty(t, r.coord.requests())
		})
	})
	t.Run("never comes", func(t *testing.T) {
		trioBubble(t, absent, func(t *testing.T, r *trio) {
			require.NoError(t, (<-r.append(plain(1), 0)).err)
			require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Lost)
		})
	})
	t.Run("refuses", func(t *testing.T) {
		gone := func(s *scripted, _ *Options) { s.followers["n3"].link.Up, s.followers["n3"].link.Refused = false, true }
		trioBubble(t, gone, func(t *testing.T, r *trio) {
			began := time.Now()
			require.NoError(t, (<-r.append(plain(1), 0)).err)
			require.InDelta(t, r.plane.askAgain().Seconds(), time.Since(began).Seconds(), 2*tickEvery.Seconds(), "a moment, not as long as for one that is on its way")
			require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Lost)
		})
	})
	t.Run("is the process before the one that was placed", func(t *testing.T) {
		older := func(s *scripted, _ *Options) { s.followers["n3"].link.Boot = boot - 1 }
		trioBubble(t, older, func(t *testing.T, r *trio) {
			ack := r.append(plain(1), 0)
			time.Sleep(100 * time.Millisecond)
			require.Empty(t, r.links.followers["n3"].opens)
			r.links.relink("n3", down)
			r.links.relink("n3", func(l *peer.Link) { l.Up, l.Boot = true, boot })
			require.NoError(t, (<-ack).err)
			require.Empty(t, r.coord.requests())
		})
	})
}

func TestFollowerThatCannotComputeTheStateIsSentIt(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(makeBatch(1, 42, 0, 10), 0)).err)
		r.links.edit("n2", func(f *scriptedFollower) { f.willing, f.open = false, false })
		c, err := r.plane.Tell(r.t.Context(), meta.Orders{Rolls: []meta.RollOrder{{Ref: testRef, Segment: 1, Epoch: 1, Cause: base.CauseRecovery}}})
		require.NoError(t, err)
		require.Equal(t, meta.StatusHeld, c[0].Status)
		synctest.Wait()
		require.Equal(t, base.CauseRecovery, r.coord.requests()[0].Cause)
		opens := r.links.followers["n2"].opens
		first := opens[len(opens)-1]
		require.Equal(t, base.SegmentID(101), first.segment)
		require.False(t, first.hasState)

		r.links.ack("n2", 1, ackMessage{segmentHead: first.segmentHead, status: ackState})
		synctest.Wait()
		opens = r.links.followers["n2"].opens
		second := opens[len(opens)-1]
		require.True(t, second.hasState)
		state, err := rangestate.Decode(second.state)
		require.NoError(t, err)
		require.Equal(t, first.checksum, state.Checksum())

		ack := r.append(makeBatch(1, 42, 1, 10), 0)
		r.links.edit("n2", func(f *scriptedFollower) { f.willing = true })
		r.links.ack("n2", 1, ackMessage{segmentHead: first.segmentHead, status: ackDurable, end: 1})
		synctest.Wait()
		r.links.ack("n2", 1, ackMessage{segmentHead: first.segmentHead, status: ackDurable, end: 2})
		require.NoError(t, (<-ack).err)
		require.Nil(t, r.lead().beginning.state, "nobody can ask for it any more")
	})
}

func TestRollsThatAreOrdered(t *testing.T) {
	order := func(r *trio, seg base.SegmentID, epoch base.Epoch) meta.ConfirmStatus {
		c, err := r.plane.Tell(r.t.Context(), meta.Orders{Rolls: []meta.RollOrder{{Ref: testRef, Segment: seg, Epoch: epoch, Cause: base.CauseRecovery}}})
		require.NoError(t, err)
		require.Equal(t, meta.ConfirmRoll, c[0].Kind)
		require.Equal(t, seg, c[0].Segment)
		return c[0].Status
	}
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.Equal(t, meta.StatusFailed, order(r, 2, 2), "not led here")
		ack := r.append(plain(1), 0)
		require.Equal(t, meta.StatusHeld, order(r, 1, 1))
		require.NoError(t, (<-ack).err)
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Len(t, r.coord.requests(), 1)
		require.Equal(t, meta.StatusHeld, order(r, 1, 1), "it has ended")
		synctest.Wait()
		require.Len(t, r.coord.requests(), 1)
	})
}

func TestLeaderOfAnotherStartNeverBegins(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		a := assignment(1, 1, 0, 0, roomy)
		a.Boots = []uint64{boot - 1}
		c := r.assign(a)
		require.Equal(t, meta.StatusFenced, c.Status)
		require.False(t, c.Empty, "what that start acked is not known here")
		require.Empty(t, r.log.segments)
	})
}

func TestRestedLeaderFindsItsFollowersAgain(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		time.Sleep(5 * time.Minute)
		require.Nil(t, r.lead())
		require.Empty(t, r.plane.FollowerNodes())
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Len(t, r.links.followers["n2"].opens, 1, "the same connection")
		require.Equal(t, []base.NodeID{"n2", "n3"}, r.plane.FollowerNodes())

		time.Sleep(5 * time.Minute)
		r.links.relink("n2", down)
		time.Sleep(time.Minute)
		r.links.relink("n2", up)
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Len(t, r.links.followers["n2"].opens, 2, "another connection")
		require.Empty(t, r.coord.requests())

		time.Sleep(5 * time.Minute)
		r.links.relink("n3", down)
		r.links.relink("n3", func(l *peer.Link) { l.Up, l.Boot = true, boot+1 })
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.Equal(t, []base.NodeID{"n3"}, r.coord.requests()[0].Lost)
	})
}

func TestMemoryOnEveryReplicaIsEnoughWhereTheTopicSaysSo(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		loose := trioAssignment(2, 2, 0, 1, roomy)
		loose.Config.Durability = base.DurabilityReplicated
		r.assign(loose)
		r.log.hold()
		require.NoError(t, (<-r.append(plain(1), 0)).err)
		require.True(t, r.links.followers["n2"].opens[1].memory)
		require.EqualValues(t, 1, r.log.published[2])
		r.log.release(-1)
	})
}

func TestTraceSaysWhereTheTimeWent(t *testing.T) {
	trioBubble(t, nil, func(t *testing.T, r *trio) {
		r.links.edit("n2", func(f *scriptedFollower) { f.willing = false })
		r.log.hold()
		answer := make(chan outcome, 1)
		r.plane.Append(AppendRequest{Ref: testRef, Bytes: plain(1), Trace: true}, func(res AppendResult, err error) { answer <- outcome{res, err} })
		synctest.Wait()
		require.True(t, r.links.followers["n3"].batches()[0].traced)
		time.Sleep(2 * time.Millisecond)
		r.log.release(-1)
		time.Sleep(3 * time.Millisecond)
		r.links.ack("n2", 1, ackMessage{segmentHead: headOne, status: ackDurable, end: 1, fsync: 4 * time.Millisecond})
		require.Equal(t, &wire.ProduceTrace{Node: "n1", FsyncUs: 2000, CommitUs: 5000, Replicas: []wire.ReplicaTrace{
			{Node: "n2", AckUs: 5000, FsyncUs: 4000}, {Node: "n3", FsyncUs: 1000},
		}}, (<-answer).Trace)
		require.Empty(t, r.lead().traced)
		require.Nil(t, (<-r.append(plain(1), 0)).Trace)
	})
}

func TestMessagesThatAreNoneAreDroppedAndReportedNowAndThen(t *testing.T) {
	var log bytes.Buffer
	trioBubble(t, func(_ *scripted, o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, func(t *testing.T, r *trio) {
		for range 20 {
			for _, kind := range []peer.Kind{kindOpen, kindAppend, kindAck, kindAck + 1} {
				r.plane.receive(kind, []byte("no message"), arrival{from: replica.Source{Node: "n2", Boot: boot}})
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 2, strings.Count(log.String(), "message of a replica not understood"))
		require.NoError(t, (<-r.append(plain(1), 0)).err)
	})
}
