package page

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// hostile is a cluster of which each name, text and value is one that a terminal would act on, that is wider than it is
// long, or that goes the other way.
func hostile(name string) *store.View {
	s := newScript(5)
	s.hello()
	s.topicList()
	node := sdk.NodeID(name)
	state := &sdk.NodeState{Self: sdk.NodeStatus{ID: node, Boot: 1, Address: name, State: "alive", Status: name, Rack: name, Version: name, SinceMs: noon.UnixMilli(), Vnodes: 256, OwnsPerMillion: 500_000}}
	state.Members = []sdk.RingMember{{Node: node, State: "suspect", Status: name, Rack: name}, {Node: "n1", State: "alive"}}
	state.Shards = []sdk.ShardStatus{{ID: sdk.ShardID{Root: 1}, State: name, Leader: node, Voters: []sdk.NodeID{node, "n1", node}, NonVoters: []sdk.NodeID{node}}}
	from := func(m store.Message) {
		m.Node, m.Boot = node, 1
		s.at(time.Second, m)
	}
	from(store.Message{Stream: &store.Stream{State: store.StreamLive}})
	from(store.Message{State: state})
	from(store.Message{Counters: &sdk.NodeCounters{
		ObservedMs: noon.UnixMilli(), Ranges: []sdk.RangeCounters{{Topic: name, Range: 1, InBytesPerSec: 5e6, Load: name, Segment: 1}},
		Groups: []sdk.GroupCounters{{Group: name, State: name, Topics: []string{name}, Lag: 12_004, Members: []sdk.GroupMember{{Name: name, Ranges: []string{name + "/r1", name}, Lag: 7}, {Name: name, Evicted: name}}}},
	}})
	for i, kind := range []string{"SEGMENT_SEALED", "RANGE_SPLIT", "NODE_SUSPECT", "LEADER_CHANGED", name} {
		from(store.Message{Event: &sdk.Event{
			Seq: uint64(i + 1), TimeMs: noon.UnixMilli(), Node: node, Type: kind, Subject: name, Cause: name, Before: name, After: name, Actor: name, GapMs: 96,
			Detail: "segment=" + name + " next=" + name + " replicas=" + name + " children=r1,r2 at=" + name,
		}})
	}
	from(store.Message{Logs: &store.LogPage{Lines: []sdk.LogLine{{Seq: 1, TimeMs: noon.UnixMilli(), Level: name, Message: name, Attrs: []sdk.LogAttr{{Key: name, Value: name}}}}}})
	s.at(0, store.Message{Topics: &store.TopicPage{Topics: []sdk.TopicSummary{{Name: name, State: 1, Ranges: 1, ReplicationFactor: 3, InBytesPerSec: 5e6, Bytes: 7e9, ShardLeader: node}}}})
	g := s.segment(3000, 1, 0, 0)
	g.Replicas, g.Waits = []sdk.ReplicaDetail{{Node: node, State: name}, {Node: node, State: "leader"}}, name
	s.at(0, store.Message{Segments: &store.SegmentPage{Segments: []sdk.SegmentRow{{Topic: name, Range: 1, ReplicationFactor: 3, Segment: g}}}})
	s.at(0, store.Message{Health: &sdk.ClusterHealth{Checks: []sdk.HealthCheck{{Name: name, Detail: name, Result: sdk.HealthWarn}}}})
	return s.view()
}

// TestHostileNamesStayInTheirPlace draws each page with each nasty name everywhere, and looks at what a terminal makes of
// it: every frame is closed at its right edge, so nothing has moved what stands behind it.
func TestHostileNamesStayInTheirPlace(t *testing.T) {
	theme := styles.NewTheme(styles.TrueColor, false)
	for _, name := range nasty {
		if name == "" {
			continue
		}
		v := hostile(name)
		for _, p := range Pages() {
			for _, size := range sizes[:2] {
				st := NewState()
				st.Frame = frame()
				st.Topic, st.Frame.Context, st.Frame.Notice.Text = name, name, name
				st.Filter = Filter{Text: name, Match: func(string) bool { return true }}
				c := component.NewCanvas(size.w, size.h, theme)
				Draw(c, p, v, &st)
				requireClosedFrames(t, c, size.w, size.h, fmt.Sprintf("%s of %q at %s", p.ID(), name, size.name))
			}
		}
	}
}

// requireClosedFrames looks at a frame as a terminal shows it.
func requireClosedFrames(t *testing.T, c *component.Canvas, w, h int, what string) {
	t.Helper()
	lines := c.Lines()
	for _, line := range lines {
		require.NotContains(t, sgr.ReplaceAllString(line, ""), "\x1b", what)
		require.False(t, strings.ContainsFunc(line, func(r rune) bool { return unicode.In(r, unicode.Hebrew, unicode.Arabic) }), "%s: a terminal may turn %q around", what, line)
	}
	screen := vt.NewEmulator(w, h)
	defer screen.Close()
	_, err := screen.WriteString(strings.Join(lines, "\r\n"))
	require.NoError(t, err)
	at := func(x, y int) string { return screen.CellAt(x, y).Content }
	for y := 2; y < h-2; y++ {
		require.Contains(t, "│┌└", at(0, y), "%s: left edge of line %d\n%s", what, y, strings.Join(c.Plain(), "\n"))
		require.Contains(t, "│┐┘", at(w-1, y), "%s: right edge of line %d\n%s", what, y, strings.Join(c.Plain(), "\n"))
	}
}
