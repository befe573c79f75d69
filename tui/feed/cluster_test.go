package feed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// seenWithin is how long what the cluster knows may take to be in the view.
const seenWithin = 500 * time.Millisecond

// await looks at the view until it is so, and says how late that was after it had come about.
func (f *fed) await(t *testing.T, what string, when func(*store.View) (since time.Time, ok bool)) time.Duration {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		c := make(chan *store.View)
		f.look <- c
		if since, ok := when(<-c); ok {
			return time.Since(since)
		}
	}
	t.Fatalf("not within a minute: %s", what)
	return 0
}

// A roll, a suspicion and a death in a real cluster, in virtual time: each is in the view half a second after the cluster
// knows it.
func TestALiveCluster(t *testing.T) {
	sim.Run(t, sim.Options{Seed: 1}, func(t *testing.T, c *sim.Cluster) {
		c.Start(3)
		c.Quiet(time.Minute)
		client := c.Client()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		_, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: "orders", Config: sdk.TopicConfig{ReplicationFactor: 3}})
		require.NoError(t, err)
		f := feeding(Live(Options{Connect: func([]string) (Client, error) { return Of(c.Client()), nil }, Context: "sim"}))
		f.feed.Show(Viewport{TopicList: true, Topics: []string{"orders"}, Logs: &LogsShown{}})
		began := time.Now()
		f.await(t, "three streams, and all that is asked for", func(v *store.View) (time.Time, bool) {
			return began, v.Cluster.Streams == 3 && v.Cluster.Agree == 3 && v.Cluster.Leaders > 0 && len(v.RangesOf("orders")) == 1 && v.Logs.Len() > 0 &&
				v.Cluster.Link.State == store.LinkLive
		})

		var active *store.Range
		f.await(t, "the leader counts its range", func(v *store.View) (time.Time, bool) {
			active = v.RangesOf("orders")[0]
			return began, active.Counted && active.Segment != 0
		})
		_, err = client.Admin().SealSegment(ctx, sdk.SealSegment{Segment: active.Segment})
		require.NoError(t, err)
		late := f.await(t, "the seal", func(v *store.View) (time.Time, bool) {
			if v.Seals.Len() == 0 || v.Seals.At(0).GapMs < 0 {
				return time.Time{}, false
			}
			return v.Events.At(v.Events.Len() - 1).At, true
		})
		require.LessOrEqual(t, late, seenWithin)
		t.Logf("a roll is seen after %s", late)

		c.Node(3).Kill()
		for _, state := range []string{"suspect", "dead"} {
			late = f.await(t, "n3 is "+state, func(v *store.View) (time.Time, bool) {
				n := v.Nodes.Get("n3")
				return n.Since, n.State == state
			})
			// Since is when the first of them thought so; the row says it once more of them do.
			require.LessOrEqual(t, late, seenWithin+500*time.Millisecond, state)
			t.Logf("%s is seen after %s", state, late)
		}
		f.await(t, "its stream is lost", func(v *store.View) (time.Time, bool) {
			return began, v.Nodes.Get("n3").Stream == store.StreamLost
		})
		c.Node(3).Start()
		f.await(t, "it is back", func(v *store.View) (time.Time, bool) {
			n := v.Nodes.Get("n3")
			return began, n.State == "alive" && n.Stream == store.StreamLive && v.Cluster.Streams == 3
		})

		for _, n := range c.Nodes() {
			n.Kill()
		}
		killed := time.Now()
		late = f.await(t, "all are lost", func(v *store.View) (time.Time, bool) { return killed, v.Cluster.Link.State == store.LinkLost })
		require.LessOrEqual(t, late, 2*time.Second)
		t.Logf("the loss of all is seen after %s", late)
		for _, n := range c.Nodes() {
			n.Start()
		}
		f.await(t, "all are back", func(v *store.View) (time.Time, bool) {
			return began, v.Cluster.Link.State == store.LinkLive && v.Cluster.Streams == 3 && v.Cluster.Agree == 3
		})
		require.NoError(t, f.feed.Close())
		<-f.done
	})
}
