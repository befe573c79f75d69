package feed

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

var long = strings.Repeat("x", 64<<10)

// TestCheck finds what no broker says, wherever it stands, and nothing in what brokers do say.
func TestCheck(t *testing.T) {
	many := make([]string, maxPart+1)
	for what, m := range map[string]store.Message{
		"Node":                      {Node: sdk.NodeID(long)},
		"Counters: Ranges: Load":    {Counters: &sdk.NodeCounters{Ranges: []sdk.RangeCounters{{}, {Load: long}}}},
		"Counters: Groups: Topics":  {Counters: &sdk.NodeCounters{Groups: []sdk.GroupCounters{{Topics: many}}}},
		"State: Self: Address":      {State: &sdk.NodeState{Self: sdk.NodeStatus{Address: long}}},
		"Event: Detail":             {Event: &sdk.Event{Detail: long}},
		"Topics: Topics: Labels":    {Topics: &store.TopicPage{Topics: []sdk.TopicSummary{{Labels: map[string]string{"a": long}}}}},
		"Logs: Lines: Attrs: Value": {Logs: &store.LogPage{Lines: []sdk.LogLine{{Attrs: []sdk.LogAttr{{Value: long}}}}}},
		"Stream: Error":             {Stream: &store.Stream{Error: long}},
	} {
		require.ErrorContains(t, check(&m), what+": ")
	}
	topic := sdk.TopicDetail{Ranges: []sdk.RangeDetail{{Segments: make([]sdk.SegmentDetail, 3*maxPart)}}}
	require.NoError(t, check(&store.Message{Topic: &topic}), "a long topic is none that a broker does not have")
	for m := range storetest.Stream(storetest.Options{Start: time.Unix(1e9, 0)}) {
		require.NoError(t, check(&m))
	}
}

// TestNonsenseOfANode: it is shown as one that cannot be listened to, and why; once, and until it makes sense again.
func TestNonsenseOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake("n1", "n2")
		f := feeding(Live(Options{Connect: fake.connect}))
		nonsense := countersOf("n2")
		nonsense.Counters.Ranges = []sdk.RangeCounters{{Topic: long, Range: 1}}
		for range 30 {
			fake.events <- countersOf("n1")
			fake.events <- countersOf("n2")
			fake.events <- nonsense
			time.Sleep(time.Second)
		}
		v := f.view()
		require.Equal(t, store.StreamLive, v.Nodes.Get("n1").Stream)
		n2 := v.Nodes.Get("n2")
		require.Equal(t, store.StreamLost, n2.Stream)
		require.Contains(t, n2.Error, "node n2 tells nonsense: Counters: Ranges: Topic: a text of 65536 bytes, where 1024 are the most")
		require.Zero(t, v.Ranges.Len())
		require.Equal(t, 1, v.Events.Len(), "told once")
		require.Equal(t, store.LinkLive, v.Cluster.Link.State)

		time.Sleep(distrust)
		fake.events <- countersOf("n1")
		fake.events <- countersOf("n2")
		require.Equal(t, store.StreamLive, f.view().Nodes.Get("n2").Stream)

		fake.events <- sdk.WatchEvent{Node: sdk.NodeID(long), Boot: 1, Counters: &sdk.NodeCounters{}}
		v = f.view()
		require.Equal(t, 2, v.Nodes.Len())
		last := v.Events.At(v.Events.Len() - 1)
		require.Equal(t, "CLIENT_REFUSED", last.Type)
		require.Less(t, len(last.Detail), 200)
		require.NoError(t, f.feed.Close())
	})
}

// TestNonsenseOfAList: there is no cluster to be seen where not even its nodes make sense.
func TestNonsenseOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(sdk.NodeID(long))
		f := feeding(Live(Options{Connect: fake.connect}))
		time.Sleep(time.Second)
		v := f.view()
		require.Equal(t, store.LinkLost, v.Cluster.Link.State)
		require.Contains(t, v.Cluster.Link.Error, "tells nonsense: Nodes: Nodes: ID: a text of 65536 bytes")
		require.NoError(t, f.feed.Close())
	})
}

// TestNonsenseInARecording: it plays up to there, and says which line it is.
func TestNonsenseInARecording(t *testing.T) {
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	at := time.Unix(1e9, 0)
	require.NoError(t, enc.Encode(store.Message{Time: at, Conn: &store.Conn{}}))
	require.NoError(t, enc.Encode(store.Message{Time: at, Node: "n1", Boot: 1, Counters: &sdk.NodeCounters{Ranges: []sdk.RangeCounters{{Load: long}}}}))
	require.NoError(t, enc.Encode(store.Message{Time: at, Conn: &store.Conn{}}))
	f, err := Replay(&file, ReplayOptions{Speed: -1})
	require.NoError(t, err)
	n := 0
	for range f.Messages() {
		n++
	}
	require.Equal(t, 1, n)
	require.ErrorContains(t, f.Err(), "line 2: Counters: Ranges: Load: a text of 65536 bytes")
	require.NoError(t, f.Close())
}

// TestRecordOnlyWhatCanBeReplayed leaves out a message that is too large for a replay, and says so; the others play.
func TestRecordOnlyWhatCanBeReplayed(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file)
	at := time.Unix(1e9, 0)
	large := sdk.TopicDetail{Ranges: []sdk.RangeDetail{{Segments: make([]sdk.SegmentDetail, 300_000)}}}
	require.NoError(t, r.Write(store.Message{Time: at, Conn: &store.Conn{}}))
	require.ErrorContains(t, r.Write(store.Message{Time: at, Topic: &large}), "left out")
	require.NoError(t, r.Write(store.Message{Time: at, Conn: &store.Conn{}}))
	require.NoError(t, r.Flush())
	f, err := Replay(&file, ReplayOptions{Speed: -1})
	require.NoError(t, err)
	n := 0
	for range f.Messages() {
		n++
	}
	require.Equal(t, 2, n)
	require.NoError(t, f.Err())
	require.NoError(t, f.Close())
}

// TestReplayOfAClockSetBack plays on from there at the same pace, and its time goes back too.
func TestReplayOfAClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		enc := json.NewEncoder(&file)
		start := time.Unix(1e9, 0)
		back := start.Add(-time.Hour)
		for _, at := range []time.Time{start, start.Add(5 * time.Second), back, back.Add(5 * time.Second), back.Add(10 * time.Second)} {
			require.NoError(t, enc.Encode(store.Message{Time: at, Conn: &store.Conn{}}))
		}
		began := time.Now()
		f, err := Replay(&file, ReplayOptions{})
		require.NoError(t, err)
		var came []time.Duration
		for range f.Messages() {
			came = append(came, time.Since(began))
		}
		require.True(t, back.Add(10*time.Second).Equal(f.Now()))
		require.Equal(t, []time.Duration{0, 5 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second}, came)
		require.NoError(t, f.Close())
	})
}

func BenchmarkCheck(b *testing.B) {
	var m store.Message
	for s := range storetest.Stream(storetest.Options{Start: time.Unix(1e9, 0)}) {
		if s.Counters != nil {
			m = s
			break
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := check(&m); err != nil {
			b.Fatal(err)
		}
	}
}
