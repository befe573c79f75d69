package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

var rewrite = os.Getenv("EASTGUARD_REWRITE") != ""

// sizes are those of the mock-ups.
var sizes = []struct {
	name  string
	w, h  int
	nodes int
}{{"80x24", 80, 24, 5}, {"120x40", 120, 40, 5}, {"200x60", 200, 60, 60}}

// frame is what the program adds to each golden.
func frame() Frame {
	return Frame{Now: noon, Clock: noon, Version: "v0.9.1", Rate: "4 Hz", ReadOnly: true, Keys: []KeyHint{
		{"?", "help", 0}, {"/", "filter", 1}, {":", "command", 0}, {"⏎", "open", 1}, {"tab", "panel", 3}, {"p", "pause", 2}, {"q", "quit", 0},
	}}
}

// scenes are views with a name.
func scenes(nodes int) map[string]func() *store.View {
	return map[string]func() *store.View{
		"incident": func() *store.View { return newScript(nodes).grouped().incident().view() },
		"empty":    func() *store.View { return &store.View{} },
		"calm": func() *store.View {
			s := newScript(nodes)
			s.well = true
			s.calm()
			s.health(false)
			s.calmNow()
			return s.view()
		},
		"lost": func() *store.View { return newScript(nodes).incident().lost().st.View(noon.Add(12 * time.Second)) },
	}
}

// calmNow lets all nodes be heard until now.
func (s *script) calmNow() {
	for ago := 3; ago >= 0; ago-- {
		for i := 1; i <= s.nodes; i++ {
			s.counters(i, time.Duration(ago)*time.Second)
		}
	}
}

func drawn(p Page, v *store.View, w, h int, theme *styles.Theme, set func(*State)) *component.Canvas {
	st := NewState()
	st.Frame = frame()
	if set != nil {
		set(&st)
	}
	c := component.NewCanvas(w, h, theme)
	Draw(c, p, v, &st)
	return c
}

func drawnWith(p Page, v *store.View, w, h int, st *State) *component.Canvas {
	c := component.NewCanvas(w, h, styles.NewTheme(styles.TrueColor, false))
	Draw(c, p, v, st)
	return c
}

// TestListedLater does not say that there are no topics when there are some that nobody has listed yet.
func TestListedLater(t *testing.T) {
	s := newScript(5)
	s.hello()
	s.at(0, store.Message{Totals: &store.Totals{Topics: 11}})
	for _, id := range []ID{Overview, Topics, Ranges} {
		text := strings.Join(drawn(Get(id), s.view(), 80, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
		require.NotContains(t, text, "no topics yet")
		require.Contains(t, text, "none of the 11 topics is listed yet")
	}
}

// TestPartsAreSaidToBeParts: a table that does not have all that there is says so in its frame, and that its filter is of
// those alone, at every size; one that has all says nothing.
func TestPartsAreSaidToBeParts(t *testing.T) {
	s := newScript(5)
	s.hello()
	s.topicList()
	s.segments()
	s.at(0, store.Message{Totals: &store.Totals{Topics: 214, Segments: 44_012}})
	filter := Filter{Text: "orders", Match: func(text string) bool { return strings.Contains(text, "orders") }}
	shown := func(id ID, size int, set func(*State)) string {
		lines := drawn(Get(id), s.view(), sizes[size].w, sizes[size].h, styles.NewTheme(styles.NoColor, false), set).Plain()
		return strings.Join(lines, "\n")
	}
	for size := range sizes {
		require.Contains(t, shown(Segments, size, nil), " 27 of 44,012 known  sort: state ▲ ")
		require.Contains(t, shown(Segments, size, func(st *State) { st.Topic = "orders" }), "─ Segments of orders ─")
		require.Contains(t, shown(Segments, size, func(st *State) { st.Topic = "orders" }), " 5 of 320 known ")
		require.Contains(t, shown(Segments, size, func(st *State) { st.Topic, st.Range = "orders", "r9" }), " 2 known so far ")
		require.Contains(t, shown(Segments, size, func(st *State) { st.Filter = filter }), " filter: orders  5 of 27  27 of 44,012 known ")
		require.Contains(t, shown(Ranges, size, nil), "no active range of orders is known yet")
	}
	require.NotContains(t, shown(Topics, 2, nil), " known  ")
	s.at(0, store.Message{Topics: &store.TopicPage{Topics: []sdk.TopicSummary{{Name: "orders"}}}})
	for size := range sizes {
		require.Contains(t, shown(Topics, size, nil), " 6 of 214 known  sort: rate ▼ ")
		require.Contains(t, shown(Overview, size, nil), " 6 of 214 known ")
	}
	s.at(0, store.Message{Segments: &store.SegmentPage{Topic: "orders", Complete: true}})
	require.NotContains(t, shown(Segments, 0, func(st *State) { st.Topic = "orders" }), " known  ")
	require.Contains(t, shown(Segments, 0, nil), " known ")
}

// TestEventsSayWhat has the verb of an event, too.
func TestEventsSayWhat(t *testing.T) {
	s := newScript(5)
	s.event(1, time.Second, sdk.Event{Type: "TOPIC_CREATED", Subject: "orders", Detail: "shard=1"})
	s.event(1, time.Second, sdk.Event{Type: "NODE_STARTED", Subject: "n1", Detail: "boot=3"})
	text := strings.Join(drawn(Get(Events), s.view(), 80, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
	require.Contains(t, text, "TOPIC  orders  created  shard=1")
	require.Contains(t, text, "NODE   n1  started  boot=3")
	s.event(1, time.Second, sdk.Event{Type: "FILE_QUARANTINED", Subject: "n1", Detail: `detail="2 bytes too many" file="a b.seg" shard=3`})
	text = strings.Join(drawn(Get(Events), s.view(), 80, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
	require.Contains(t, text, `FILE   n1  quarantined  2 bytes too many file="a b.seg" shard=3`)
	s.event(2, time.Second, sdk.Event{Type: "NODE_DEAD", Subject: "n3", Before: "suspect", After: "dead", Detail: "boot=7"})
	s.event(4, time.Second, sdk.Event{Type: "NODE_JOINED", Subject: "n3", After: "alive", Detail: "boot=8"})
	text = strings.Join(drawn(Get(Events), s.view(), 80, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
	require.Contains(t, text, "SWIM   n3  suspect→dead  boot 7  by n2", "several tell the same: each says who it is")
	require.Contains(t, text, "SWIM   n3  joined  boot 8  by n4")
}

// TestGoldens draws each page at each size in each colour mode. The plain text is one file, what it looks like another.
func TestGoldens(t *testing.T) {
	modes := []struct {
		name  string
		theme *styles.Theme
	}{
		{"truecolor", styles.NewTheme(styles.TrueColor, false)},
		{"16", styles.NewTheme(styles.Color16, false)},
		{"none", styles.NewTheme(styles.NoColor, false)},
		{"ascii", styles.NewTheme(styles.Color16, true)},
	}
	for _, size := range sizes {
		views := map[string]*store.View{}
		for name, make := range scenes(size.nodes) {
			views[name] = make()
		}
		for _, p := range Pages() {
			name := strings.ToLower(p.ID().String())
			for _, mode := range modes {
				c := drawn(p, views["incident"], size.w, size.h, mode.theme, nil)
				file := filepath.Join("testdata", "golden", name+"-"+size.name)
				plain := strings.Join(c.Plain(), "\n") + "\n"
				switch mode.name {
				case "truecolor", "16", "none":
					golden(t, file+".txt", plain) // the same text in each
				default:
					golden(t, file+"-ascii.txt", plain)
				}
				golden(t, file+"-"+mode.name+".ansi", c.String()+"\n")
			}
			for _, scene := range []string{"empty", "calm"} {
				if scene == "calm" && p.ID() != Overview && p.ID() != Groups && p.ID() != Ring {
					continue
				}
				c := drawn(p, views[scene], size.w, size.h, modes[0].theme, nil)
				golden(t, filepath.Join("testdata", "golden", name+"-"+size.name+"-"+scene+".txt"), strings.Join(c.Plain(), "\n")+"\n")
			}
		}
		lost := drawn(Get(Overview), views["lost"], size.w, size.h, modes[0].theme, func(st *State) {
			st.Frame.Now, st.Frame.Clock = noon.Add(12*time.Second), noon.Add(12*time.Second)
		})
		golden(t, filepath.Join("testdata", "golden", "lost-"+size.name+".txt"), strings.Join(lost.Plain(), "\n")+"\n")
	}
	tiny := drawn(Get(Overview), newScript(5).incident().view(), 59, 14, modes[0].theme, nil)
	golden(t, filepath.Join("testdata", "golden", "tiny.txt"), strings.Join(tiny.Plain(), "\n")+"\n")
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "EASTGUARD_REWRITE=1 writes it")
	if string(want) != got {
		t.Errorf("%s differs (EASTGUARD_REWRITE=1 writes it anew; look at what has changed):\n%s", path, got)
	}
}
