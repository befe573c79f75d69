package feed

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

func gapOf(node sdk.NodeID, code base.Code) sdk.WatchEvent {
	return sdk.WatchEvent{Node: node, Boot: 1, Gap: &sdk.WatchGap{Err: base.Errorf(code, "watch", "connection refused")}}
}

func countersOf(node sdk.NodeID) sdk.WatchEvent {
	return sdk.WatchEvent{Node: node, Boot: 1, Counters: &sdk.NodeCounters{InBytesPerSec: 1000}}
}

// fed is a feed and a store that takes all of it.
type fed struct {
	feed  Feed
	store *store.Store
	done  chan struct{}
	look  chan chan *store.View
}

func feeding(f Feed) *fed {
	t := &fed{feed: f, store: store.New(store.Options{}), done: make(chan struct{}), look: make(chan chan *store.View)}
	go func() {
		defer close(t.done)
		messages := f.Messages()
		for {
			select {
			case m, ok := <-messages:
				if !ok {
					return
				}
				t.store.Apply(m)
			case c := <-t.look:
				c <- t.store.View(f.Now())
			}
		}
	}()
	return t
}

// onLive plays with the feed of a cluster of some nodes, in virtual time, and closes it.
func onLive(t *testing.T, nodes []sdk.NodeID, play func(t *testing.T, fake *fakeCluster, f *fed)) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(nodes...)
		f := feeding(Live(Options{Connect: fake.connect}))
		play(t, fake, f)
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

func (t *fed) view() *store.View {
	synctest.Wait()
	c := make(chan *store.View)
	t.look <- c
	return <-c
}

func TestStreamsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1", "n2", "n3")
		f := feeding(Live(Options{Connect: fake.connect, Seeds: []string{"seed:2921"}, Context: "prod-eu"}))
		require.Equal(t, store.LinkConnecting, store.New(store.Options{}).View(time.Now()).Cluster.Link.State)
		for _, n := range []sdk.NodeID{"n1", "n2", "n3"} {
			fake.events <- countersOf(n)
		}
		v := f.view()
		require.Equal(t, store.LinkLive, v.Cluster.Link.State)
		require.Equal(t, "prod-eu", v.Cluster.Context)
		require.Equal(t, 3, v.Cluster.Streams)
		require.LessOrEqual(t, fake.opts.Hold, 20*time.Millisecond, "what a node tells waits for no other: it is to be seen soon")
		require.Positive(t, fake.opts.Hold, "nothing would be what is usual")

		fake.events <- gapOf("n3", base.CodeUnreachable)
		v = f.view()
		require.Equal(t, store.StreamLost, v.Nodes.Get("n3").Stream)
		require.True(t, v.Cluster.AtLeast)
		fake.events <- sdk.WatchEvent{Node: "n3", Boot: 2, Gap: &sdk.WatchGap{Over: true, Restarted: true}}
		fake.events <- countersOf("n3")
		v = f.view()
		require.Equal(t, store.StreamLive, v.Nodes.Get("n3").Stream)
		require.False(t, v.Gaps.At(0).To.IsZero())

		// A node that does not count says at least that it is there.
		for range 10 {
			time.Sleep(time.Second)
			fake.events <- sdk.WatchEvent{Node: "n1", Boot: 1}
		}
		v = f.view()
		require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
		require.Equal(t, store.StreamStale, v.Nodes.Get("n2").Stream)
		require.NoError(t, f.feed.Close())
		<-f.done
		require.NoError(t, f.feed.Close())
	})
}

// All brokers are gone: said at once, tried without end and ever more seldom, also at the addresses of the last
// membership; and when one is back, all goes on.
func TestAllLostAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1", "n2")
		f := feeding(Live(Options{Connect: fake.connect, Seeds: []string{"seed:2921"}}))
		fake.events <- countersOf("n1")
		fake.events <- countersOf("n2")
		fake.setDown(true)
		fake.events <- gapOf("n1", base.CodeUnreachable)
		require.NotEqual(t, store.LinkLost, f.view().Cluster.Link.State)
		fake.events <- gapOf("n2", base.CodeUnreachable)
		v := f.view()
		require.Equal(t, store.LinkLost, v.Cluster.Link.State)
		require.Contains(t, v.Cluster.Link.Error, "connection refused")
		require.Equal(t, 1, v.Cluster.Link.Attempt)
		require.False(t, v.Cluster.Link.Next.IsZero())

		time.Sleep(30 * time.Second)
		v = f.view()
		require.InDelta(t, 11, v.Cluster.Link.Attempt, 4)
		require.Equal(t, []string{"n1:2921", "n2:2921", "seed:2921"}, v.Cluster.Link.Tried)
		require.LessOrEqual(t, time.Until(v.Cluster.Link.Next), 7*time.Second)

		fake.setDown(false)
		f.feed.Retry()
		fake.events <- countersOf("n1")
		v = f.view()
		require.Equal(t, store.LinkLive, v.Cluster.Link.State)
		require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
		last := v.Events.At(v.Events.Len() - 1)
		require.Equal(t, "STREAM_BACK", last.Type)
		require.Contains(t, v.Events.At(v.Events.Len()-2).Detail, "reconnected after 30 s")

		f.feed.SetSeeds([]string{"other:2921"})
		synctest.Wait()
		fake.mu.Lock()
		require.Equal(t, []string{"other:2921"}, fake.seeds)
		fake.mu.Unlock()
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

// Nodes that die before all have spoken leave nobody behind who would say so.
func TestAllAreLostBeforeAllHaveSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1", "n2", "n3")
		f := feeding(Live(Options{Connect: fake.connect, Seeds: []string{"seed:2921"}}))
		fake.events <- countersOf("n1")
		fake.setDown(true)
		fake.events <- gapOf("n1", base.CodeUnreachable)
		fake.events <- gapOf("n2", base.CodeUnreachable)
		require.NotEqual(t, store.LinkLost, f.view().Cluster.Link.State, "n3 may still speak")
		time.Sleep(patience)
		require.Equal(t, store.LinkLost, f.view().Cluster.Link.State)
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

// One that hangs when the others are lost does not hide it; one that speaks is enough.
func TestTheLastOneIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1", "n2")
		f := feeding(Live(Options{Connect: fake.connect, Seeds: []string{"seed:2921"}}))
		both := func() { fake.events <- countersOf("n1"); fake.events <- countersOf("n2") }
		both()
		time.Sleep(time.Minute)
		both()
		fake.events <- gapOf("n1", base.CodeUnreachable)
		for range 5 {
			time.Sleep(time.Second)
			fake.events <- countersOf("n2")
		}
		time.Sleep(4 * time.Second)
		require.NotEqual(t, store.LinkLost, f.view().Cluster.Link.State, "n1 was lost long before n2 fell silent")
		both()
		time.Sleep(500 * time.Millisecond)
		fake.setDown(true)
		fake.events <- gapOf("n1", base.CodeUnreachable)
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, store.LinkLost, f.view().Cluster.Link.State)
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

// Asking for everything again asks those who answer, too, and nothing comes twice by it.
func TestResync(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		event := sdk.WatchEvent{Node: "n1", Boot: 1, Event: &sdk.Event{Seq: 7, Type: "NODE_JOINED", Node: "n1", Subject: "n1", TimeMs: time.Now().UnixMilli()}}
		fake.events <- event
		before := f.view().Events.Len()
		asked := fake.count("nodes")
		f.feed.Retry()
		synctest.Wait()
		fake.events <- event
		fake.events <- countersOf("n1")
		v := f.view()
		require.Equal(t, before, v.Events.Len())
		require.Equal(t, store.LinkLive, v.Cluster.Link.State)
		require.Greater(t, fake.count("nodes"), asked)
		fake.mu.Lock()
		require.Equal(t, 2, fake.opens)
		fake.mu.Unlock()
		time.Sleep(time.Second)
		require.Equal(t, store.LinkLive, f.view().Cluster.Link.State)
	})
}

func TestAClusterThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.setDown(true)
		f := feeding(Live(Options{Connect: fake.connect, Seeds: []string{"seed:2921"}}))
		time.Sleep(3 * time.Second)
		v := f.view()
		require.Equal(t, store.LinkLost, v.Cluster.Link.State)
		require.Equal(t, []string{"seed:2921"}, v.Cluster.Link.Tried)
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

// Only what is on the screen is asked for.
func TestViewport(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		fake.events <- countersOf("n1")
		time.Sleep(21 * time.Second)
		synctest.Wait()
		for _, what := range []string{"topics", "topic orders", "segments ", "shards", "logs "} {
			require.Zero(t, fake.count(what), what)
		}
		require.LessOrEqual(t, fake.count("nodes"), 4)
		require.Equal(t, 3, fake.count("status"))
		require.Equal(t, 3, f.view().Cluster.Totals.Topics)

		f.feed.Show(Viewport{Topics: []string{"orders"}, TopicList: true, Segments: &SegmentsShown{}, Shards: true, Logs: &LogsShown{Level: "warn"}})
		time.Sleep(time.Second)
		for _, what := range []string{"topics", "topic orders", "segments ", "shards", "logs warn"} {
			require.Equal(t, 1, fake.count(what), what)
		}
		fake.lines <- sdk.LogEvent{Node: "n1", Boot: 1, Line: &sdk.LogLine{Seq: 1, Message: "fsync was slow"}}
		require.Equal(t, 1, f.view().Logs.Len())
		require.NotNil(t, f.view().Topics.Get("orders"))

		f.feed.Show(Viewport{Logs: &LogsShown{Level: "error"}})
		time.Sleep(time.Second)
		before := fake.count("topic orders")
		time.Sleep(10 * time.Second)
		require.Equal(t, before, fake.count("topic orders"))
		require.Equal(t, 1, fake.count("logs error"))
		require.Equal(t, 1, f.view().Logs.Len())
		fake.lines <- sdk.LogEvent{Node: "n1", Boot: 1, Err: errors.New("refused")}
		fake.lines <- sdk.LogEvent{Node: "n1", Boot: 1, Line: &sdk.LogLine{Seq: 1, Message: "the disk is gone"}}
		fake.lines <- sdk.LogEvent{Node: "n1", Boot: 1, Line: &sdk.LogLine{Seq: 2, Message: "and back"}}
		synctest.Wait()
		logs := f.view().Logs
		require.Equal(t, 2, logs.Len(), "another selection begins anew")
		require.Equal(t, "the disk is gone", logs.At(0).Message)
		require.Zero(t, f.view().Topics.Get("orders").Detailed)

		fake.mu.Lock()
		fake.gone = true
		fake.mu.Unlock()
		f.feed.Show(Viewport{Topics: []string{"orders"}})
		time.Sleep(time.Second)
		require.Nil(t, f.view().Topics.Get("orders"))
	})
}

// Whoever scrolls asks for what comes into sight, and for nothing else more often.
func TestScrollingAsksForNothingElse(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		fake.events <- countersOf("n1")
		for i := range 100 {
			f.feed.Show(Viewport{TopicList: true, Topics: []string{fmt.Sprint("t", i)}})
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		require.LessOrEqual(t, fake.count("status"), 2)
		require.LessOrEqual(t, fake.count("health"), 2)
		require.LessOrEqual(t, fake.count("topics"), 6)
		time.Sleep(time.Second)
		require.Equal(t, 1, fake.count("topic t99"))
		status, health := fake.count("status"), fake.count("health")
		f.feed.Retry()
		time.Sleep(time.Second)
		require.Equal(t, status+1, fake.count("status"), "unless everything is to be asked for at once")
		require.Equal(t, health+1, fake.count("health"))
	})
}

// A node that was listed and has said nothing yet may still speak, but not for ever.
func TestANodeThatNeverSpeaksIsNotWaitedForForEver(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1", "n2"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		fake.events <- countersOf("n1")
		fake.events <- gapOf("n1", base.CodeUnreachable)
		synctest.Wait()
		require.NotEqual(t, store.LinkLost, f.view().Cluster.Link.State, "n2 may be there")
		time.Sleep(patience)
		fake.events <- gapOf("n1", base.CodeUnreachable)
		synctest.Wait()
		require.Equal(t, store.LinkLost, f.view().Cluster.Link.State)
	})
}

// However many topics can be seen, a round asks for so many at most.
func TestARoundIsBounded(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		fake.events <- countersOf("n1")
		var topics []string
		for i := range 2 * MostTopics {
			topics = append(topics, fmt.Sprint("t", i))
		}
		f.feed.Show(Viewport{Topics: topics})
		time.Sleep(time.Second)
		require.Equal(t, 1, fake.count(fmt.Sprint("topic t", MostTopics-1)))
		require.Zero(t, fake.count(fmt.Sprint("topic t", MostTopics)))
	})
}

// Of more segments than a list has room for, those that matter are asked for by themselves, and it is known that there are
// more.
func TestMoreSegmentsThanAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1")
		for i := range segmentLimit - 1 {
			fake.segment(i + 1)
		}
		f := feeding(Live(Options{Connect: fake.connect}))
		fake.events <- countersOf("n1")
		f.feed.Show(Viewport{Segments: &SegmentsShown{}})
		time.Sleep(time.Second)
		require.Equal(t, 1, fake.count("segments "))
		require.Zero(t, fake.count("segments active"))
		require.True(t, f.view().Cluster.ListedSegments.Has(""))
		fake.segment(segmentLimit)
		time.Sleep(often)
		require.Equal(t, 1, fake.count("segments active"))
		require.Equal(t, 1, fake.count("segments under-replicated"))
		require.Greater(t, fake.count("status"), 1, "how many lack copies is counted as often as they are listed")
		require.False(t, f.view().Cluster.ListedSegments.Has(""))
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}

func TestBrokersThatAreTooOldArePolled(t *testing.T) {
	onLive(t, []sdk.NodeID{"n1"}, func(t *testing.T, fake *fakeCluster, f *fed) {
		fake.events <- gapOf("n1", base.CodeUnknownKind)
		time.Sleep(10 * time.Second)
		v := f.view()
		require.Equal(t, "2s", v.Cluster.Polling)
		require.Equal(t, store.LinkLive, v.Cluster.Link.State)
		require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
	})
}

// Nobody takes the messages: the feed can be closed all the same.
func TestANeverReadFeedCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1")
		f := Live(Options{Connect: fake.connect})
		for range queueLength {
			select {
			case fake.events <- countersOf("n1"):
			case <-time.After(time.Second):
			}
		}
		require.NoError(t, f.Close())
	})
}
