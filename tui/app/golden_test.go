package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// scene is a screen that keys lead to. The views themselves are in package page's goldens; these are what lies over them
// and what the program says around them.
type scene struct {
	name  string
	opts  Options
	at    time.Duration // of the incident; 0: soon after the split
	then  func(b *bench)
	sizes []string // 80x24 and 120x40 unless set
}

var (
	allowed   = Options{AllowActions: true}
	protected = Options{AllowActions: true, Context: term.Context{Name: "prod-eu", Protected: true, Color: "red"}}
)

func scenes() []scene {
	return []scene{
		{name: "help", then: keys("?"), sizes: []string{"80x24", "120x40", "60x15"}},
		{name: "menu-read-only", then: keys("2", "down", "x")},
		{name: "menu-range", opts: allowed, then: keys("5", "x")},
		{name: "menu-segment", opts: allowed, then: keys("6", "x")},
		{name: "menu-group", opts: allowed, then: keys("7", "x")},
		{name: "menu-topic", opts: allowed, then: keys("4", "x")},
		{name: "allow", then: func(b *bench) { b.press(":"); b.write("rw"); b.press("enter") }},
		{name: "allow-protected", opts: Options{Context: protected.Context}, then: func(b *bench) { b.press(":"); b.write("rw"); b.press("enter"); b.write("prod") }},
		{name: "confirm-yes", opts: allowed, then: answering(
			"plan: transfer shard 0\n  from    n4, term 4\n  to      n5, which leads 3 shards\n  takes   about 150 ms, in which the shard takes no changes\n", nil, "3", "down", "x", "t",
		)},
		{name: "confirm-name", opts: allowed, then: func(b *bench) {
			answering("plan: delete topic orders\n  ranges      8 active, 3 sealed\n  segments    412 on 5 nodes, 228 GiB\n  consumers   billing and search-index read it now: both will stop with \"not found\"\n  cannot be undone\n", nil, "4", "down", "ctrl+d")(b)
			b.write("ord")
		}},
		{name: "confirm-protected", opts: protected, then: answering("plan: seal segment s1052 of sessions/r1\n  producers wait about 100 ms while the next segment opens\n", nil, "6", "down", "x", "e")},
		{name: "plan-failed", opts: allowed, then: answering("error: shard 0 has moved meanwhile: n2 leads it now\n  hint: shard describe 0 shows who leads it\n", &sdk.Error{Code: sdk.CodeNotLeader, Msg: "shard 0 has moved"}, "3", "down", "x", "t")},
		{name: "describe", then: answering("SHARD  0\nSTATE  ok\nLEADER n4, term 4, since 2026-11-28 11:02:13\n", nil, "3", "down", "d")},
		{name: "find", then: func(b *bench) { b.press("ctrl+p"); b.write("ord") }},
		{name: "find-nothing", then: func(b *bench) { b.press("ctrl+p"); b.write("zzz") }, sizes: []string{"80x24"}},
		{name: "command", then: func(b *bench) { b.press(":") }},
		{name: "command-offers", then: func(b *bench) { b.press(":"); b.write("s"); b.press("tab") }},
		{name: "command-wrong", then: func(b *bench) { b.press(":"); b.write("frobnicate"); b.press("enter") }, sizes: []string{"80x24"}},
		{name: "filter-typed", then: func(b *bench) { b.press("4", "/"); b.write("!or") }},
		{name: "filter-wrong", then: func(b *bench) { b.press("4", "/"); b.write("(or") }, sizes: []string{"80x24"}},
		{name: "filter-set", then: func(b *bench) { b.press("8", "/"); b.write("SEAL.*FAILURE"); b.press("enter") }, at: storetest.DeadAt},
		{name: "filter-nothing", then: func(b *bench) { b.press("4", "/"); b.write("zzz"); b.press("enter") }, sizes: []string{"80x24"}},
		{name: "marked", then: keys("4", "g", "space", "space")},
		{name: "sorted", then: keys("3", ">", ">", "I")},
		{name: "paused", then: keys("p")},
		{name: "past", then: func(b *bench) { b.press(":"); b.write("at -8s"); b.press("enter") }},
		{name: "partial", then: loseStreams("n1", "n2", "n4")},
		{name: "lost", then: loseAll},
		{name: "lost-ring", then: func(b *bench) { b.press("2"); loseAll(b) }, sizes: []string{"80x24"}},
		{name: "wide", then: keys("4", "w")},
		{name: "zoom", then: keys("tab", "z")},
		{name: "dead", at: storetest.RepairAt + 2*time.Second, then: keys("6")},
		{name: "tiny", then: keys(), sizes: []string{"59x14", "40x3", "20x1"}},
		{name: "small", then: keys(), sizes: []string{"60x15", "100x28", "160x44"}},
	}
}

func keys(names ...string) func(*bench) {
	return func(b *bench) { b.press(names...) }
}

// answering presses keys, and has eg-cli answer what they ask for.
func answering(text string, err error, names ...string) func(*bench) {
	return func(b *bench) {
		b.env.exec = func(words []string) tea.Cmd {
			return func() tea.Msg { return execMsg{words: words, text: text, err: err} }
		}
		b.press(names...)
	}
}

func (b *bench) tell(messages ...store.Message) {
	for _, m := range messages {
		m.Time = b.wall
		b.pump.store.Apply(m)
	}
	b.pump.publish()
	b.model.View()
}

func loseStreams(nodes ...sdk.NodeID) func(*bench) {
	return func(b *bench) {
		for _, n := range nodes {
			b.tell(store.Message{Node: n, Stream: &store.Stream{State: store.StreamLost, Error: "dial " + string(n) + ": connection refused"}})
		}
	}
}

func loseAll(b *bench) {
	loseStreams("n1", "n2", "n3", "n4", "n5")(b)
	b.tell(store.Message{Conn: &store.Conn{
		Lost: true, Error: "dial n2: connection refused", Tried: []string{"n1", "n2", "n3", "n4", "n5", "10.0.0.11:2921"}, Attempt: 4, Next: b.wall.Add(15200 * time.Millisecond),
	}})
	b.wall = b.wall.Add(12 * time.Second)
	b.tell()
}

// TestGoldens compares each scene with the files in testdata, as text at every size and in ASCII, and with its styles at
// the first. EASTGUARD_REWRITE=1 writes them anew: look at what changed.
func TestGoldens(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			if s.sizes == nil {
				s.sizes = []string{"80x24", "120x40"}
			}
			for i, size := range s.sizes {
				b := s.bench(t, size, false)
				requireGolden(t, s.name+"-"+size+".txt", strings.Join(b.canvas.Plain(), "\n")+"\n")
				if i > 0 {
					continue
				}
				requireGolden(t, s.name+"-"+size+".ansi", b.model.View().Content+"\n")
				requireGolden(t, s.name+"-"+size+"-ascii.txt", strings.Join(s.bench(t, size, true).canvas.Plain(), "\n")+"\n")
			}
		})
	}
}

// bench is the program after the scene's keys.
func (s scene) bench(t *testing.T, size string, ascii bool) *bench {
	opts := s.opts
	w, h, _ := strings.Cut(size, "x")
	opts.Width, opts.Height = atoi(t, w), atoi(t, h)
	if opts.Context.Name == "" {
		opts.Context.Name = "prod-eu"
	}
	b := newBench(t, opts)
	if s.at == 0 {
		s.at = storetest.SplitAt + 4*time.Second
	}
	b.play(storetest.Options{Seed: 1}, s.at)
	if ascii {
		b.toggleASCII()
	}
	s.then(b)
	b.dirty = true
	checkScreen(t, b, s.name)
	return b
}

func atoi(t *testing.T, s string) (n int) {
	for _, r := range s {
		require.True(t, r >= '0' && r <= '9')
		n = n*10 + int(r-'0')
	}
	return n
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if os.Getenv("EASTGUARD_REWRITE") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "EASTGUARD_REWRITE=1 writes it")
	require.Equal(t, string(want), got, path)
}
