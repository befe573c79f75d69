package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// What a node's stream died of may be longer than the ring is wide: it is cut, and the facts stay in the middle.
func TestALongErrorStaysInTheRing(t *testing.T) {
	s := newScript(5).incident()
	s.at(0, store.Message{Node: "n3", Stream: &store.Stream{State: store.StreamLost, Error: strings.Repeat("connection refused ", 8)}})
	c := drawn(Get(Overview), s.view(), 200, 60, styles.NewTheme(styles.NoColor, false), nil)
	text := strings.Join(c.Plain(), "\n")
	require.Contains(t, text, "connection refused")
	for _, line := range c.Plain()[12:34] {
		panel := string([]rune(line + strings.Repeat(" ", 66))[:66])
		for _, fact := range []string{"view agree", "connection refused"} {
			if before, after, ok := strings.Cut(panel, fact); ok {
				require.Contains(t, before, "┄", "the ring lies around it: %s", panel)
				require.Contains(t, after, "┄", "the ring lies around it: %s", panel)
			}
		}
	}
}

// A type whose word fills its column is not glued to what follows.
func TestEventLabelsStandAlone(t *testing.T) {
	s := newScript(3)
	s.calm()
	for i, kind := range []string{"CLUSTER_CREATED", "SOMETHINGNEW_DONE"} {
		s.at(0, store.Message{Node: "n1", Boot: 3, Event: &sdk.Event{Seq: 900 + uint64(i), Node: "n1", TimeMs: noon.UnixMilli(), Type: kind, Subject: "it"}})
	}
	for _, w := range []int{80, 120, 200} {
		text := strings.Join(drawn(Get(Events), s.view(), w, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
		require.Contains(t, text, "CLUSTER ")
		require.Contains(t, text, "SOMETHINGNEW ")
	}
}

// The name of a check says what should be; beside what is it would contradict it.
func TestAFailedCheckSaysWhatIs(t *testing.T) {
	v := &store.View{Health: store.Health{At: noon, Checks: []sdk.HealthCheck{{Name: "nodes are alive", Result: sdk.HealthFail, Detail: "no answer from n2"}}}}
	require.Equal(t, "! no answer from n2", alarmOf(v, &State{}).Text)
}

// A shard is given to a follower that could lead it: one that is alive and heard, of those the one that leads least.
func TestTheHeirOfAShard(t *testing.T) {
	s := newScript(5)
	s.calm()
	v := s.view()
	shard := *v.Shards.At(0)
	follower := func(i int) sdk.NodeID { return v.Nodes.At(i).ID }
	shard.Leader, shard.Voters = follower(0), []sdk.NodeID{follower(0), follower(1), follower(2)}
	for i, leads := range []int{9, 5, 4} {
		n := v.Nodes.At(i)
		n.State, n.Stream, n.ShardLeaders = "alive", store.StreamLive, leads
	}
	to, why := heir(v, &shard)
	require.Equal(t, string(follower(2)), to)
	require.Empty(t, why)
	v.Nodes.At(2).State = "dead"
	to, _ = heir(v, &shard)
	require.Equal(t, string(follower(1)), to)
	v.Nodes.At(1).Stream = store.StreamLost
	to, why = heir(v, &shard)
	require.Equal(t, none, to)
	require.Equal(t, "none of its followers is heard", why)
	shard.Leader = ""
	_, why = heir(v, &shard)
	require.Equal(t, "the shard has no leader", why)
}

// A key space with a hole in it is a warning, with how much of it is there.
func TestAHoleInTheKeySpaceIsSeen(t *testing.T) {
	detail := func(spans ...keyspace.Span) store.Message {
		d := &sdk.TopicDetail{Summary: sdk.TopicSummary{Name: "orders"}}
		for i, span := range spans {
			d.Ranges = append(d.Ranges, sdk.RangeDetail{ID: sdk.RangeID(i + 1), State: base.StateActive, Span: span})
		}
		return store.Message{Time: noon, Topic: d}
	}
	for want, c := range map[string]struct {
		spans []keyspace.Span
		style styles.Style
	}{
		"2 ranges active; keyspace covered 100.0%": {[]keyspace.Span{{End: 1 << 63}, {Start: 1 << 63}}, styles.Plain},
		"1 range active; keyspace covered 50.0%":   {[]keyspace.Span{{End: 1 << 63}}, styles.Warn},
	} {
		s := store.New(store.Options{History: -1})
		s.Apply(detail(c.spans...))
		st := NewState()
		st.Topic = "orders"
		line := Get(Ranges).Alarm(s.View(noon), &st)
		require.Equal(t, Line{want, c.style}, line)
	}
}
