package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/topology"
)

// trio adds two nodes and a topic that n2 leads, with n1 and n3 behind it; the leader has more than the others.
func (w *world) trio(name string) (*meta.Topic, *meta.Segment) {
	if w.nodeOf("n2") == nil {
		w.join("n2")
		w.join("n3")
	}
	topic := w.place(name, base.TopicConfig{MinReplicas: 1}, "n2", "n1", "n3")
	settle()
	seg := topic.Ranges[0].Active()
	for id, end := range map[base.NodeID]int64{"n1": 40, "n2": 45, "n3": 42} {
		n := w.nodeOf(id)
		n.mu.Lock()
		n.ends[seg.ID] = end
		n.mu.Unlock()
	}
	return topic, seg
}

// recovered is how a topic's first segment ended; nil while it has not.
func (w *world) recovered(name string) *meta.Segment {
	if s := w.topic(name).Ranges[0].Segments[0]; s.State == base.StateSealed {
		return s
	}
	return nil
}

// awaitSealed returns how long it took.
func (w *world) awaitSealed(t *testing.T, name string, limit time.Duration) time.Duration {
	began := time.Now()
	for w.recovered(name) == nil {
		require.Less(t, time.Since(began), limit)
		rest(time.Millisecond)
	}
	return time.Since(began)
}

func TestALeaderWhoseProcessIsGoneIsReplacedAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, seg := w.trio("orders")
		w.kill("n2")
		w.awaitSealed(t, "orders", 20*time.Millisecond)
		s := w.recovered("orders")
		require.Equal(t, base.CauseLeaderFailure, s.Cause)
		require.EqualValues(t, 40, s.End, "the shortest of those that have run all the time")
		settle()
		active := w.topic("orders").Ranges[0].Active()
		require.NotEqual(t, base.NodeID("n2"), active.Leader().Node)
		_, held := w.nodeOf(active.Leader().Node).held[active.ID]
		require.True(t, held)
		require.True(t, w.nodeOf("n1").fenced[seg.ID])
		require.True(t, w.nodeOf("n3").fenced[seg.ID])
		require.Equal(t, Status{}, w.coord.Status()[0].withoutUntold())
	})
}

// withoutUntold leaves out what a node that is away has not confirmed.
func (s Status) withoutUntold() Status {
	s.Untold = 0
	return s
}

func TestALeaderThatIsRumouredDeadIsReplacedUnlessItIsHeard(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.trio("orders")
		w.touch("n2", Contact{Kept: true})
		w.believe("n2", topology.Dead)
		rest(time.Minute)
		require.Nil(t, w.recovered("orders"), "its connection says otherwise")
		w.touch("n2", Contact{})
		w.awaitSealed(t, "orders", 20*time.Millisecond)
	})
}

func TestALeaderThatLeftIsReplaced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.trio("orders")
		w.believe("n2", topology.Left)
		w.awaitSealed(t, "orders", 20*time.Millisecond)
	})
}

func TestALeaderThatIsOnlySilentIsReplacedWhenAnotherReplicaDoesNotHearItEither(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.trio("orders")
		began := time.Now()
		w.hang("n2")
		w.awaitSealed(t, "orders", 5*time.Second)
		require.InDelta(t, 2000, time.Since(began).Milliseconds(), 50)
		require.EqualValues(t, 40, w.recovered("orders").End)
	})
}

func TestALeaderThatOnlyTheCoordinatorDoesNotHearGoesOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		w.join("n4")
		const topics = 100
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{}, "n2", "n3", "n4")
		}
		settle()
		w.touch("n2", Contact{Kept: true, Silent: 500 * time.Millisecond})
		rest(10 * time.Second)
		for i := range topics {
			require.Nil(t, w.recovered(topicName(i)))
		}
		w.mu.Lock()
		require.LessOrEqual(t, w.questions, 20, "each other replica is asked once a second, for all segments")
		w.deaf["n2"] = true
		w.mu.Unlock()
		rest(10 * time.Second)
		require.NotNil(t, w.recovered(topicName(0)), "now nobody hears it")

		// It is heard again, and nobody is asked any more.
		w.touch("n2", Contact{Kept: true})
		rest(time.Second)
		w.mu.Lock()
		asked := w.questions
		w.mu.Unlock()
		rest(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, asked, w.questions)
	})
}

func TestALeaderThatIsHeardAgainBeforeItsFencesKeepsItsSegments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		n2 := w.join("n2")
		topic := w.place("orders", base.TopicConfig{}, "n2") // nobody else has a copy
		settle()
		w.kill("n2")
		rest(time.Minute)
		require.Nil(t, w.recovered("orders"))
		require.Equal(t, 1, w.coord.Status()[0].Recoveries)
		w.mu.Lock()
		w.nodes["n2"] = n2
		w.mu.Unlock()
		w.touch("n2", Contact{Kept: true})
		rest(time.Minute)
		require.Nil(t, w.recovered("orders"))
		require.False(t, n2.fenced[topic.Ranges[0].Active().ID])
		require.Equal(t, Status{}, w.coord.Status()[0])
	})
}

// A process that was started again leads nothing that was placed on the one before it, whoever notices first.
func TestALeaderThatStartedAnewLeadsNoSegmentOfItsEarlierLife(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, seg := w.trio("orders")
		n2 := w.nodeOf("n2")
		n2.mu.Lock()
		n2.fail = base.Errorf(base.CodeUnreachable, "tell", "not yet") // so its own word does not come
		n2.boot = 2
		n2.mu.Unlock()
		w.touch("n2", Contact{Kept: true, Boot: 2})
		w.awaitSealed(t, "orders", time.Second)
		s := w.recovered("orders")
		require.Equal(t, base.CauseRecovery, s.Cause)
		require.EqualValues(t, 40, s.End)
		require.True(t, n2.fenced[seg.ID], "it counts as a survivor, and is fenced too")
	})
}

// A replica that is connected is waited for, though others have answered; one that is not, is not.
func TestARoundWaitsForThoseThatAreConnected(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.trio("orders")
		n3 := w.nodeOf("n3")
		n3.mu.Lock()
		n3.hung = true // but its connection has not noticed yet
		n3.mu.Unlock()
		w.kill("n2")
		took := w.awaitSealed(t, "orders", time.Second)
		require.InDelta(t, 200, took.Milliseconds(), 20)
	})
}

func TestWhoIsAskedForGoesFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		const topics = 1000
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{MinReplicas: 1}, "n2", "n1", "n3")
		}
		settle()
		w.coord.Want(base.RangeRef{Topic: w.topic(topicName(990)).ID, Range: 1}) // before anybody knows
		rest(time.Second)
		w.kill("n2")
		w.coord.Want(base.RangeRef{Topic: w.topic(topicName(991)).ID, Range: 1})
		rest(20 * time.Millisecond)
		require.NotNil(t, w.recovered(topicName(990)))
		require.NotNil(t, w.recovered(topicName(991)))
		w.coord.Want(base.RangeRef{Topic: w.topic(topicName(992)).ID, Range: 1})
		rest(20 * time.Millisecond)
		require.NotNil(t, w.recovered(topicName(992)))
		_, err := w.coord.RequestRoll(t.Context(), RollRequest{
			Ref: base.RangeRef{Topic: w.topic(topicName(993)).ID, Range: 1}, Segment: w.topic(topicName(993)).Ranges[0].Active().ID, Epoch: 1, End: -1,
		})
		require.NoError(t, err)
		rest(10 * time.Second)
		for i := range topics {
			require.NotNil(t, w.recovered(topicName(i)))
		}
	})
}

// A thousand segments lose their leader at once: their fences share messages, their seals share entries, and what nobody
// waits for takes its time.
func TestAThousandSegmentsLoseTheirLeaderAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.join("n2")
		w.join("n3")
		const topics = 1000
		for i := range topics {
			w.place(topicName(i), base.TopicConfig{MinReplicas: 1}, "n2", "n1", "n3")
		}
		settle()
		began := time.Now()
		w.kill("n2")
		for w.recoveredOf(topics) < topics {
			require.Less(t, time.Since(began), 10*time.Second)
			rest(10 * time.Millisecond)
		}
		round := w.coord.idle.round
		require.InDelta(t, (topics-round)*1000/200, time.Since(began).Milliseconds(), 600)
		entries := w.commands(func(c *meta.Command) bool { return c.RollSegments != nil })
		require.LessOrEqual(t, entries, topics/round+1)
		for _, id := range []base.NodeID{"n1", "n3"} {
			require.LessOrEqual(t, w.nodeOf(id).fences, topics/round+1)
		}
		for i := range topics {
			require.Zero(t, w.recovered(topicName(i)).GapMs, "nobody waited")
		}
	})
}

func (w *world) recoveredOf(topics int) (n int) {
	for i := range topics {
		if w.recovered(topicName(i)) != nil {
			n++
		}
	}
	return n
}

// What cannot be decided is decided as soon as the node comes that it waited for.
func TestWhatWaitsForANodeIsTriedWhenItComes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, seg := w.trio("orders")
		n1, n3 := w.nodeOf("n1"), w.nodeOf("n3")
		for _, n := range []*fakeNode{n1, n3} {
			n.mu.Lock()
			n.boot, n.previous[seg.ID] = 2, 30 // both were started again: neither decides alone
			n.mu.Unlock()
		}
		n1.mu.Lock()
		n1.previous[seg.ID] = 33
		n1.mu.Unlock()
		w.mu.Lock()
		delete(w.nodes, "n3")
		w.mu.Unlock()
		w.kill("n2")
		rest(400 * time.Millisecond)
		require.Nil(t, w.recovered("orders"))
		stuck := w.coord.Stuck()
		require.Len(t, stuck, 1)
		require.Equal(t, seg.ID, stuck[0].Segment)
		require.NotEmpty(t, stuck[0].Reason)
		w.mu.Lock()
		w.nodes["n3"] = n3
		w.mu.Unlock()
		w.see("n3", n3.replica.Disk, 2)
		w.awaitSealed(t, "orders", 20*time.Millisecond)
		require.EqualValues(t, 33, w.recovered("orders").End)
		require.Empty(t, w.coord.Stuck())
	})
}

// Whoever leads the shard next finds by itself what the last one was about.
func TestACoordinatorThatGoesLosesNothing(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"before the fences":          0,
		"in the middle of them":      time.Millisecond,
		"before the seal":            2 * time.Millisecond,
		"between the seal and after": 3 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.trio("orders")
				w.kill("n2")
				time.Sleep(after)
				w.coord.Lead(base.RootShard, false)
				rest(100 * time.Millisecond)
				w.coord.Lead(base.RootShard, true)
				w.awaitSealed(t, "orders", 100*time.Millisecond)
				require.EqualValues(t, 40, w.recovered("orders").End)
				settle()
				r := w.topic("orders").Ranges[0]
				require.Len(t, r.Segments, 2)
				_, held := w.nodeOf(r.Active().Leader().Node).held[r.Active().ID]
				require.True(t, held)
			})
		})
	}
}
