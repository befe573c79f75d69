package page

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
	"github.com/eastguard/eastguard/tui/styles"
)

// nasty are names that a terminal must never act on.
var nasty = []string{
	"a\x1b[2Jb", "\u202eabc", "名前", "👩‍👩‍👧‍👦", "e\u0301\u0301", "tab\tnew\nline", "\x9b31m", "שלום", "مرحبا ٣٤", "\xff\xfe", "", strings.Repeat("long-", 60), "a b", "ｗｉｄｅ", "\u200b", "\x00",
}

// views are all that the pages were made for, and views with nasty names everywhere.
func views() []*store.View {
	list := []*store.View{nil, {}, nastyScript().view()}
	for _, make := range scenes(5) {
		list = append(list, make())
	}
	return append(list, scenes(60)["lost"](), storetest.View(storetest.Options{Start: noon}, storetest.RepairAt+time.Second))
}

// nastyScript has such a name in every place that can have one.
func nastyScript() *script {
	s := newScript(5).grouped().incident()
	for i, name := range nasty {
		node := sdk.NodeID(name)
		state := &sdk.NodeState{Self: sdk.NodeStatus{ID: node, Boot: 1, Address: name, State: name, Status: name, Rack: name, Version: name}}
		state.Members = []sdk.RingMember{{Node: node, State: name, Status: name, Rack: name}, {Node: "n1", State: "dead"}}
		state.Shards = []sdk.ShardStatus{{ID: sdk.ShardID{Root: uint16(i)}, State: name, Leader: node, Voters: []sdk.NodeID{node, node}}}
		s.at(0, store.Message{Node: node, Boot: 1, State: state})
		row := sdk.RangeCounters{Topic: name, Range: sdk.RangeID(i), InBytesPerSec: int64(i), Load: name, Segment: 1}
		s.at(0, store.Message{Node: node, Boot: 1, Counters: &sdk.NodeCounters{ObservedMs: noon.UnixMilli(), Ranges: []sdk.RangeCounters{row}, Groups: []sdk.GroupCounters{
			{Group: name, State: name, Topics: []string{name}, Members: []sdk.GroupMember{{Name: name, Ranges: []string{name, name + "/r1"}}, {Name: name, Evicted: name}}},
		}}})
		for _, kind := range []string{"SEGMENT_SEALED", "SEGMENT_OPENED", "RANGE_SPLIT", "RANGE_MERGED", "NODE_SUSPECT", "LEADER_CHANGED", name} {
			s.at(0, store.Message{Node: node, Boot: 1, Event: &sdk.Event{
				Seq: uint64(i + 1), TimeMs: noon.UnixMilli(), Node: node, Type: kind, Subject: name, Cause: name, Before: name, After: name, Actor: name,
				Detail: "segment=" + name + " next=" + name + " replicas=" + name + " children=" + name + " parents=" + name + " at=" + name,
			}})
		}
		s.at(0, store.Message{Node: node, Boot: 1, Logs: &store.LogPage{Lines: []sdk.LogLine{{Seq: 1, Level: name, Message: name, Attrs: []sdk.LogAttr{{Key: name, Value: name}}}}}})
		s.at(0, store.Message{Topics: &store.TopicPage{Topics: []sdk.TopicSummary{{Name: name, State: 1, Labels: map[string]string{name: name}}}}})
		s.at(0, store.Message{Node: node, Boot: 1, Stream: &store.Stream{State: store.StreamLost, Error: name}})
		g := s.segment(sdk.SegmentID(3000+i), 1, 0, i)
		g.Replicas, g.Waits = []sdk.ReplicaDetail{{Node: node, State: name}}, name
		s.at(0, store.Message{Segments: &store.SegmentPage{Segments: []sdk.SegmentRow{{Topic: name, Range: 1, ReplicationFactor: 3, Segment: g}}}})
	}
	s.at(0, store.Message{Health: &sdk.ClusterHealth{Checks: []sdk.HealthCheck{{Name: nasty[0], Detail: nasty[1], Result: 2}}}})
	return s
}

// TestAnySize draws every page at sizes from nothing to far too much, in every state that keys can bring about.
func TestAnySize(t *testing.T) {
	all := views()
	themes := []*styles.Theme{styles.NewTheme(styles.TrueColor, false), styles.NewTheme(styles.NoColor, true)}
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 7))
		for _, p := range Pages() {
			w, h := 1+random.IntN(300), 1+random.IntN(100)
			if random.IntN(3) == 0 {
				w, h = 58+random.IntN(45), 13+random.IntN(30)
			}
			v, theme := all[random.IntN(len(all))], themes[random.IntN(2)]
			c := component.NewCanvas(w, h, theme)
			st := anyState(random)
			Draw(c, p, v, &st)
			check(t, c, w, h)
			if v != nil {
				use(p, v, &st, random)
				c.Reset(w, h, theme)
				Draw(c, p, v, &st)
				check(t, c, w, h)
			}
		}
	}
}

func anyState(random *rand.Rand) State {
	st := NewState()
	st.Frame = frame()
	st.Frame.Now = noon.Add(time.Duration(random.IntN(100)-50) * time.Minute)
	st.Wide, st.Zoom, st.Follow = random.IntN(2) == 0, random.IntN(4) == 0, random.IntN(2) == 0
	st.Panel = random.IntN(5)
	st.Frame.Paused, st.Frame.Past, st.Frame.Dialog = random.IntN(5) == 0, random.IntN(5) == 0, random.IntN(5) == 0
	if random.IntN(3) == 0 {
		st.Filter = Filter{"1", func(s string) bool { return strings.Contains(s, "1") }}
	}
	if random.IntN(3) == 0 {
		st.Topic = []string{"orders", "nowhere", nasty[random.IntN(len(nasty))]}[random.IntN(3)]
	}
	if random.IntN(4) == 0 {
		st.Node, st.Level, st.Types = "n1", "warn", "SEAL,SWIM"
	}
	if random.IntN(5) == 0 {
		st.Frame.Notice = Line{Text: nasty[random.IntN(len(nasty))]}
		input := component.NewInput(nasty[random.IntN(len(nasty))])
		st.Frame.Prompt = &input
	}
	return st
}

// use moves, sorts, marks and asks, as keys do.
func use(p Page, v *store.View, st *State, random *rand.Rand) {
	st.Move(p.Rows(v, st), random.IntN(40)-10)
	st.Move(p.Rows(v, st), random.IntN(2000)-1000)
	st.Marked = st.Marked.Toggle(st.Focus().Selected)
	st.SortBy(p.Columns(st), random.IntN(5)-2)
	st.Focus().Invert = random.IntN(2) == 0
	st.Hit(random.IntN(300), random.IntN(100))
	_ = p.About(v, st)
	_ = st.Page()
}

// check looks at a frame: its lines, their widths, and that nothing in them acts on the terminal but our own colours.
func check(t *testing.T, c *component.Canvas, w, h int) {
	t.Helper()
	lines := c.Lines()
	require.Len(t, lines, h)
	for _, line := range lines {
		require.Equal(t, w, ansi.StringWidth(line), "%q", line)
		require.NotContains(t, line, "\x1b[2J")
		require.NotContains(t, line, "\u202e")
		require.NotContains(t, ansi.Strip(line), "\x1b")
	}
}

// TestPure draws twice: the same view and state give the same cells.
func TestPure(t *testing.T) {
	v := newScript(5).grouped().incident().view()
	theme := styles.NewTheme(styles.TrueColor, false)
	for _, p := range Pages() {
		c := component.NewCanvas(120, 40, theme)
		st := NewState()
		st.Frame = frame()
		Draw(c, p, v, &st)
		once := c.String()
		c.Reset(120, 40, theme)
		Draw(c, p, v, &st)
		require.Equal(t, once, c.String(), p.ID().String())
		require.Equal(t, once, drawn(p, v, 120, 40, theme, nil).String(), p.ID().String())
	}
}

// sgr finds the sequences that give text its look.
var sgr = regexp.MustCompile(`\x1b\[([0-9;:]*)m`)

// TestSixteenColours asks a simple terminal for nothing that it does not have: no colours beyond the sixteen, no
// background, no sequence but those of looks.
func TestSixteenColours(t *testing.T) {
	theme := styles.NewTheme(styles.Color16, false)
	simple := regexp.MustCompile(`^(0|0?(;[147])*(;(3[0-7]|9[0-7]))?)?$`)
	for name, scene := range scenes(5) {
		v := scene()
		for _, p := range Pages() {
			text := drawn(p, v, 120, 40, theme, nil).String()
			for _, m := range sgr.FindAllStringSubmatch(text, -1) {
				require.Regexp(t, simple, m[1], "%s of %s", p.ID(), name)
			}
			require.NotContains(t, sgr.ReplaceAllString(text, ""), "\x1b")
		}
	}
}

// TestASCII finds no other sign on an ASCII screen than those of names.
func TestASCII(t *testing.T) {
	theme := styles.NewTheme(styles.Color16, true)
	for _, scene := range scenes(5) {
		v := scene()
		for _, p := range Pages() {
			for _, size := range sizes {
				c := drawn(p, v, size.w, size.h, theme, func(st *State) { st.Frame.Keys = nil })
				for _, line := range c.Plain() {
					line = strings.NewReplacer("名前-événements", "", "名前-événemen", "", "×", "").Replace(line)
					for _, r := range line {
						require.Less(t, r, rune(0x7f), "%s at %s: %q", p.ID(), size.name, line)
					}
				}
			}
		}
	}
}
