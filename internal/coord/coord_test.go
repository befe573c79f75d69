package coord

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// in runs a test in a bubble with a world that leads its shard.
func in(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() { require.NoError(t, w.coord.Close()) }()
		w.lead()
		settle()
		f(t, w)
	})
}

// settle lets everything that is under way come to rest: proposals and messages take virtual milliseconds.
func settle() {
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
}

func TestANewTopicIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{Retention: 100 * time.Hour}, 2)
		settle()
		for _, r := range topic.Ranges {
			a, ok := w.holds(r.Segments[0].ID)
			require.True(t, ok)
			require.Equal(t, topic.Name, a.Name)
			require.EqualValues(t, 1<<30, a.Config.SegmentBytes, "limits are resolved")
			require.Equal(t, 5*time.Hour, a.Config.SegmentAge, "max(segment age, retention/20)")
			require.Equal(t, w.self, a.Leader())
		}
		require.Equal(t, 0, w.coord.Status()[0].Untold)
	})
}

func TestARollIsCommittedAnsweredAndTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		old := topic.Ranges[0].Active()
		req := w.rollRequest(topic, 42)
		a, err := w.coord.RequestRoll(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 42, a.Base)
		require.Equal(t, old.ID, a.Prev)
		require.Equal(t, base.Epoch(2), a.Epoch)
		settle()
		sealed, _ := w.holds(old.ID)
		require.Equal(t, base.StateSealed, sealed.State)
		require.EqualValues(t, 42, sealed.End)
		_, ok := w.holds(a.Segment)
		require.True(t, ok)

		// The same request again, as after a lost answer: the same successor, and nothing new.
		again, err := w.coord.RequestRoll(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}

func TestManyRollsShareAnEntry(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 300
		var reqs []RollRequest
		for i := range n {
			reqs = append(reqs, w.rollRequest(w.create(topicName(i), base.TopicConfig{}, 1), 5))
		}
		settle()
		var wg sync.WaitGroup
		for _, req := range reqs {
			wg.Go(func() {
				for range 2 { // asked twice at once, answered alike
					wg.Go(func() {
						a, err := w.coord.RequestRoll(t.Context(), req)
						require.NoError(t, err)
						require.EqualValues(t, 5, a.Base)
					})
				}
			})
		}
		wg.Wait()
		require.Less(t, w.commands(func(c *meta.Command) bool { return c.RollSegments != nil }), n/2)
	})
}

func TestRequestsThatCannotBeServed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		req := w.rollRequest(topic, 1)

		unknown := req
		unknown.Ref.Topic = base.TopicID{77}
		_, err := w.coord.RequestRoll(t.Context(), unknown)
		require.ErrorIs(t, err, base.CodeNoLeader)

		w.mu.Lock()
		good := w.view
		w.view.Nodes = nil
		w.mu.Unlock()
		_, err = w.coord.RequestRoll(t.Context(), req)
		require.Equal(t, base.CodeBusy, base.CodeOf(err))
		require.ErrorIs(t, err, base.CodeNotEnoughNodes, "which says why")
		w.mu.Lock()
		w.view = good
		w.refuse = base.Errorf(base.CodeNoLeader, "propose", "no leader").WithOutcome(base.Unknown)
		w.mu.Unlock()
		_, err = w.coord.RequestRoll(t.Context(), req)
		require.ErrorIs(t, err, base.CodeNoLeader)
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		a, err := w.coord.RequestRoll(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 1, a.Base)

		w.coord.Lead(base.RootShard, false)
		settle()
		_, err = w.coord.RequestRoll(t.Context(), req)
		require.ErrorIs(t, err, base.CodeNoLeader)
	})
}

func TestARequestEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		req := w.rollRequest(topic, -1)
		w.node.mu.Lock()
		w.node.previous[req.Segment] = -5 // an impossible extent: nothing can be decided
		w.node.mu.Unlock()
		_, err := w.coord.RequestRoll(t.Context(), req)
		require.ErrorIs(t, err, base.CodeBusy)
		w.mu.Lock()
		w.refuse = base.CodeNoLeader
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = w.coord.RequestRoll(ctx, req)
		require.ErrorIs(t, err, base.CodeTimeout)
	})
}

func TestSettingsReachTheActiveSegments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		settle()
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{AlterTopic: &meta.AlterTopic{Name: "orders", Set: map[string]string{"segment_bytes": "1MiB"}}})
		require.NoError(t, err)
		settle()
		a, _ := w.holds(topic.Ranges[0].Segments[0].ID)
		require.EqualValues(t, 1<<20, a.Config.SegmentBytes)
		require.Equal(t, base.Version(2), a.Version)
	})
}

func TestRetentionTrimsWhenItIsDue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{Retention: time.Hour}, 1)
		ref := base.RangeRef{Topic: topic.ID, Range: 1}
		for i := range 3 {
			_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, int64(10*(i+1))))
			require.NoError(t, err)
			time.Sleep(20 * time.Minute)
		}
		// The first segment's last record was appended an hour ago, the second's will have been in 20 minutes.
		settle()
		require.EqualValues(t, 10, w.topic("orders").Ranges[0].TrimmedTo)
		time.Sleep(20*time.Minute + time.Second)
		settle()
		require.EqualValues(t, 20, w.topic("orders").Ranges[0].TrimmedTo)
		w.node.mu.Lock()
		require.EqualValues(t, 20, w.node.trims[ref])
		w.node.mu.Unlock()
		// Shortened, it is due at once.
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{AlterTopic: &meta.AlterTopic{Name: "orders", Set: map[string]string{"retention": "1m"}}})
		require.NoError(t, err)
		settle()
		require.EqualValues(t, 30, w.topic("orders").Ranges[0].TrimmedTo)
		require.Equal(t, 0, w.coord.Status()[0].Due)
	})
}

func TestNothingIsTrimmedBeforeTheSuccessorHasOpened(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{RetentionBytes: 1}, 1)
		settle()
		w.node.mu.Lock()
		w.node.refuse[2] = true // the successor's id
		w.node.mu.Unlock()
		_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 10))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Len(t, w.topic("orders").Ranges[0].Segments, 2)
		w.node.mu.Lock()
		clear(w.node.refuse)
		w.node.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.Len(t, w.topic("orders").Ranges[0].Segments, 2, "what is left is not more than its limit")
		_, err = w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 20))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Len(t, w.topic("orders").Ranges[0].Segments, 2)
		require.EqualValues(t, 10, w.topic("orders").Ranges[0].TrimmedTo)
	})
}

func TestADeletedTopicsTombstoneGoesWhenItsNodesHaveConfirmed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		w.node.mu.Lock()
		w.node.fail = base.Errorf(base.CodeUnreachable, "tell", "the node is away")
		w.node.mu.Unlock()
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{DeleteTopic: &meta.DeleteTopic{Name: "orders"}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, w.ViewStale(base.RootShard, func(s *meta.State) error {
			require.NotNil(t, s.Tombstone(topic.ID))
			return nil
		}))
		w.node.mu.Lock()
		w.node.fail = nil
		w.node.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.NoError(t, w.ViewStale(base.RootShard, func(s *meta.State) error {
			require.Nil(t, s.Tombstone(topic.ID))
			return nil
		}))
		require.True(t, w.node.deleted[topic.ID])
		require.Equal(t, 0, w.coord.Status()[0].Untold)
	})
}

func TestANewLeaderTellsEverythingAndRecovers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 1200
		topics := make([]*meta.Topic, n)
		for i := range topics {
			topics[i] = w.create(topicName(i), base.TopicConfig{}, 1)
		}
		settle()

		// The node restarts: it led everything before; every tenth segment holds records.
		require.NoError(t, w.coord.Close())
		w.node.mu.Lock()
		clear(w.node.held)
		w.node.tells, w.node.largest = 0, 0
		for i, topic := range topics {
			end := int64(0)
			if i%10 == 0 {
				end = 7
			}
			w.node.previous[topic.Ranges[0].Active().ID] = end
		}
		w.node.mu.Unlock()
		w.coord = w.newCoord()
		w.lead()

		// Somebody waits for an empty one: it goes first.
		settle()
		asked := topics[n-1]
		a, err := w.coord.RequestRoll(t.Context(), RollRequest{
			Ref: base.RangeRef{Topic: asked.ID, Range: 1}, Segment: asked.Ranges[0].Active().ID, Epoch: 1, End: -1, Cause: base.CauseRecovery,
		})
		require.NoError(t, err)
		require.Zero(t, a.Base)
		settle()
		for i := 0; i < n; i += 10 {
			r := w.topic(topics[i].Name).Ranges[0]
			require.EqualValues(t, 7, r.Active().Base, "those with records are sealed at once")
			require.Equal(t, base.CauseRecovery, r.Segments[0].Cause)
			require.EqualValues(t, 70, r.Segments[0].Bytes)
		}
		// The rest follows in the background.
		time.Sleep(time.Minute)
		for i := range topics {
			id := w.topic(topics[i].Name).Ranges[0].Active().ID
			_, ok := w.holds(id)
			require.True(t, ok)
			require.True(t, w.node.fenced[topics[i].Ranges[0].Active().ID], "no extent without its fence")
		}
		s := w.coord.Status()[0]
		require.Equal(t, Status{}, s)
		require.LessOrEqual(t, w.node.largest, maxOrders)
	})
}

func TestIdleTopicsCostNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 2000 {
			w.create(topicName(i), base.TopicConfig{Retention: time.Hour}, 1)
		}
		settle()
		w.mu.Lock()
		views, log := w.views, len(w.log)
		w.mu.Unlock()
		time.Sleep(24 * time.Hour)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, log, len(w.log))
		require.LessOrEqual(t, w.views, views+1)
	})
}

func TestANodeThatFailsIsAskedAgainAndNotHammered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.node.mu.Lock()
		w.node.fail = base.Errorf(base.CodeUnreachable, "tell", "the node is away")
		w.node.mu.Unlock()
		topic := w.create("orders", base.TopicConfig{}, 1)
		time.Sleep(time.Minute)
		w.node.mu.Lock()
		require.Less(t, w.node.tells, 30)
		require.Greater(t, w.node.tells, 10)
		w.node.fail = nil
		w.node.mu.Unlock()
		time.Sleep(4 * time.Second)
		_, ok := w.holds(topic.Ranges[0].Active().ID)
		require.True(t, ok)
	})
}

func TestWhatJustHappenedDoesNotQueueBehindTheRest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 3000 {
			w.create(topicName(i), base.TopicConfig{}, 1)
		}
		settle()
		require.NoError(t, w.coord.Close())
		w.node.mu.Lock()
		w.node.slow = time.Second // a message takes a second, all of them six
		w.node.mu.Unlock()
		w.coord = w.newCoord()
		w.lead()
		settle()
		topic := w.create("orders", base.TopicConfig{}, 1)
		time.Sleep(1500 * time.Millisecond)
		_, ok := w.holds(topic.Ranges[0].Active().ID)
		require.True(t, ok)
	})
}

func TestLeadershipThatComesAndGoes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		topic := w.create("orders", base.TopicConfig{}, 1)
		for range 20 {
			w.coord.Lead(base.RootShard, false)
			w.coord.Lead(base.RootShard, true)
		}
		settle()
		_, err := w.coord.RequestRoll(t.Context(), w.rollRequest(topic, 3))
		require.NoError(t, err)
	})
}

func TestAnOrderThatFailsHoldsNothingUp(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		stuck := w.create("stuck", base.TopicConfig{}, 1).Ranges[0].Active().ID
		settle()
		w.node.mu.Lock()
		w.node.refuse[stuck] = true
		w.node.mu.Unlock()
		_, err := w.Propose(t.Context(), base.RootShard, meta.Command{AlterTopic: &meta.AlterTopic{Name: "stuck", Set: map[string]string{"label.a": "b"}}})
		require.NoError(t, err)
		time.Sleep(time.Minute) // its repeats are 3.2 s apart by now
		topic := w.create("orders", base.TopicConfig{}, 1)
		settle()
		_, ok := w.holds(topic.Ranges[0].Active().ID)
		require.True(t, ok)
		require.Equal(t, 1, w.coord.Status()[0].Untold)
		w.node.mu.Lock()
		clear(w.node.refuse)
		w.node.mu.Unlock()
		time.Sleep(4 * time.Second)
		require.Equal(t, 0, w.coord.Status()[0].Untold)
	})
}
