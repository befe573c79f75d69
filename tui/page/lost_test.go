package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// A node that is missed: the line says what has been done about it, seals and elections, however they came about.
func TestTheAlarmSaysWhatWasDone(t *testing.T) {
	s := store.New(store.Options{History: -1})
	event := func(after time.Duration, e sdk.Event) {
		e.TimeMs = noon.Add(after).UnixMilli()
		s.Apply(store.Message{Time: noon.Add(after), Node: "n1", Boot: 1, Event: &e})
	}
	event(-time.Minute, sdk.Event{Type: "SEGMENT_SEALED", Subject: "old/r1", Cause: "REPLICA_FAILURE", Detail: "segment=s1 next=s2"})
	event(-time.Minute, sdk.Event{Type: "LEADER_CHANGED", Subject: "shard 1", Before: "n3", After: "n2", Detail: "term=2"})
	believes := &sdk.NodeState{Self: sdk.NodeStatus{ID: "n1"}, Members: []sdk.RingMember{{Node: "n1", State: "alive"}, {Node: "n3", State: "dead", SinceMs: noon.UnixMilli()}}}
	s.Apply(store.Message{Time: noon, Node: "n1", Boot: 1, State: believes})
	alarm := func() string {
		return alarmOf(s.View(noon.Add(3*time.Second)), &State{Frame: Frame{Now: noon.Add(3 * time.Second)}}).Text
	}
	require.Equal(t, "! n3 dead 3s", alarm(), "what was before is not because of it")

	event(0, sdk.Event{Type: "SEGMENT_SEALED", Subject: "a/r1", Cause: "LEADER_FAILURE", Detail: "segment=s3 next=s4"})
	require.Equal(t, "! n3 dead 3s: 1 segment sealed", alarm())
	event(time.Second, sdk.Event{Type: "SEGMENT_SEALED", Subject: "b/r1", Cause: "RECOVERY", Detail: "segment=s5 next=s6"})
	event(time.Second, sdk.Event{Type: "SEGMENT_OPENED", Subject: "b/r1", Cause: "RECOVERY", GapMs: 58, Detail: "previous=s5 segment=s6"})
	event(time.Second, sdk.Event{Type: sdk.EventSegmentRepaired, Subject: "b/r1", Detail: "segment=s5 target=n2"})
	event(time.Second, sdk.Event{Type: "LEADER_CHANGED", Subject: "shard 7", Before: "n3", After: "n2", Detail: "term=4"})
	event(time.Second, sdk.Event{Type: "LEADER_CHANGED", Subject: "shard 8", Before: "n2", After: "n1", Detail: "term=4"})
	require.Equal(t, "! n3 dead 3s: 2 segments sealed, 1 shard led by others, gap up to 58 ms", alarm())
}

// Most call a node dead some time after it was left: what was done then counts from when it was last heard.
func TestFromWhenANodeIsMissed(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for _, c := range []struct {
		stream      store.StreamState
		heard, want time.Time
	}{
		{store.StreamLost, ago(9 * time.Second), ago(10 * time.Second)},
		{store.StreamLost, ago(time.Second), ago(6 * time.Second)},
		{store.StreamLost, ago(time.Hour), ago(30 * time.Second)},
		{store.StreamNone, time.Time{}, ago(6 * time.Second)},
		{store.StreamLive, ago(time.Minute), ago(6 * time.Second)},
	} {
		require.Equal(t, c.want, missedFrom(&store.Node{Since: noon, Stream: c.stream, Heard: c.heard}))
	}
}

// A node that the others hear and eg-top does not is no failed check of the cluster: it says so, and why.
func TestWhoIsNotHeardIsNamed(t *testing.T) {
	v := newScript(3).incident().view()
	for i := range v.Nodes.Len() {
		v.Nodes.At(i).State, v.Nodes.At(i).Stream = "alive", store.StreamLive
	}
	n := v.Nodes.At(1)
	n.Stream, n.Heard, n.Error = store.StreamLost, v.Time.Add(-2*time.Second), "connection refused"
	st := &State{Frame: Frame{Now: v.Time}}
	require.Equal(t, Line{"! " + string(n.ID) + " is not heard for 2s: connection refused", styles.Warn}, alarmOf(v, st))
	v.Nodes.At(2).Stream = store.StreamStale
	require.Equal(t, "! "+string(n.ID)+" and 1 more are not heard: connection refused", alarmOf(v, st).Text)
}

// A time in which nobody was heard is no time in which nothing was written.
func TestAGapInTheHistoryIsMarked(t *testing.T) {
	v := &store.View{History: store.History{End: noon}}
	for _, second := range []float32{3, 3, -1, -1, -1, 0, 0} {
		v.History.InBytes = append(v.History.InBytes, second)
	}
	c := component.NewCanvas(7, 1, styles.NewTheme(styles.NoColor, false))
	d := &drawing{c: c, v: v, st: &State{}}
	d.spark(c.Bounds(), v.History.InBytes, 1, styles.Accent)
	require.Equal(t, "██···▁▁", c.Plain()[0])
}

// The banner has room for one line of an error: as much of it as fits, and nothing is cut in the middle of a number.
func TestTheBannerSaysWhy(t *testing.T) {
	v := newScript(3).incident().view()
	v.Cluster.Link = store.Link{
		State: store.LinkLost, Error: "list nodes: connect to 127.0.0.1:21000: connection refused", Tried: []string{"127.0.0.1:21000"}, Attempt: 12, Next: v.Time.Add(5 * time.Second),
	}
	for w, want := range map[int]string{60: "last error: connection refused", 80: "last error: connection refused", 120: "last error: list nodes: connect to 127.0.0.1:21000: connection refused  "} {
		text := strings.Join(drawn(Get(Overview), v, w, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
		require.Contains(t, text, want)
		require.Contains(t, text, "next try in 5.0s")
	}
}

// What eg-top itself has to say stands under one name, so that one filter finds all of it.
func TestItsOwnEventsHaveOneName(t *testing.T) {
	for _, kind := range []string{"CLIENT_LOST", "CLIENT_BACK", "STREAM_LOST", "STREAM_BACK"} {
		name, _ := label(&store.Event{Event: sdk.Event{Type: kind}})
		require.Equal(t, "CLIENT", name)
	}
}
