package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
	"github.com/eastguard/eastguard/tui/styles"
)

// bench is a model with a world that only notes what was asked of it.
type bench struct {
	*model
	pump     *pump
	wall     time.Time
	ran      [][]string
	saved    map[string]string
	tried    int
	seeds    []string
	looks    int
	document string // of plans
	broken   error
}

func newBench(t testing.TB, opts Options) *bench {
	t.Helper()
	b := &bench{wall: time.Date(2026, 11, 30, 12, 1, 0, 0, time.UTC), saved: make(map[string]string)}
	if opts.Getenv == nil {
		opts.Getenv = func(string) string { return "" }
	}
	if opts.Refresh == 0 {
		opts.Refresh = 250 * time.Millisecond
	}
	if opts.Exec == nil {
		opts.Exec = func(context.Context, term.Context, []string, func(func())) (string, error) { return "", nil }
	}
	b.pump = newPump(nil, opts.Refresh, func() time.Time { return b.wall }, func(m any) { b.model.Update(m) })
	b.model = newModel(opts, styles.Color16, false, environment{
		ask:     func(f func(*pump)) bool { f(b.pump); return true },
		look:    func(feed.Viewport) { b.looks++ },
		retry:   func() { b.tried++ },
		trouble: func() error { return b.broken },
		shell:   func() bool { return false },
		seeds:   func(s []string) { b.seeds = s },
		exec: func(words []string) tea.Cmd {
			b.ran = append(b.ran, words)
			text := "the plan\n"
			if slices.Contains(words, "json") {
				text = b.document
			}
			return func() tea.Msg { return execMsg{words: words, text: text} }
		},
		save: func(name, text string) error { b.saved[name] = text; return nil },
		wall: func() time.Time { return b.wall },
		cpu:  func() string { return "" },
	})
	return b
}

// play lets the pump take a recorded incident up to a moment.
func (b *bench) play(o storetest.Options, until time.Duration) {
	var start time.Time
	for m := range storetest.Stream(o) {
		if start.IsZero() {
			start = m.Time
		}
		if m.Time.Sub(start) > until {
			break
		}
		b.pump.store.Apply(m)
		b.wall = m.Time
	}
	b.pump.publish()
	b.model.View()
}

// press sends keys as they are named; whatever they ask for is answered at once.
func (b *bench) press(keys ...string) {
	for _, k := range keys {
		_, cmd := b.Update(keyOf(k))
		for cmd != nil {
			msg, ok := cmd().(execMsg)
			if !ok {
				break
			}
			_, cmd = b.Update(msg)
		}
	}
	b.model.View()
}

func (b *bench) write(text string) {
	for _, r := range text {
		b.press(string(r))
	}
}

var namedKeys = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "space": {Code: tea.KeySpace, Text: " "},
}

func keyOf(name string) tea.KeyPressMsg {
	if k, ok := namedKeys[name]; ok {
		return tea.KeyPressMsg(k)
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg(tea.Key{Code: []rune(rest)[0], Mod: tea.ModCtrl})
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg(tea.Key{Code: r, Text: name})
}

func (b *bench) shows(t *testing.T, want ...string) {
	t.Helper()
	text := strings.Join(b.canvas.Plain(), "\n")
	for _, w := range want {
		require.Contains(t, text, w)
	}
}

func TestKeysMeanWhatTheTerminalSends(t *testing.T) {
	for _, k := range keymap.All() {
		for _, name := range k.Keys {
			require.Equal(t, name, keyOf(name).String(), "what Bubble Tea calls it")
		}
	}
}

func TestViewsAndWayBack(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	for id := page.Overview; id <= page.Logs; id++ {
		b.press(fmt.Sprint(int(id)))
		require.Equal(t, id, b.page)
		b.shows(t, "["+fmt.Sprint(int(id))+" "+id.String()+"]")
	}
	b.press("4", "down", "enter")
	require.Equal(t, page.Ranges, b.page)
	require.NotEmpty(t, b.state().Topic)
	b.press("enter")
	require.Equal(t, page.Segments, b.page)
	b.press("esc", "esc")
	require.Equal(t, page.Topics, b.page)
	b.press("/")
	b.write("zzz-none")
	require.True(t, b.state().Filter.On())
	b.press("enter", "esc")
	require.False(t, b.state().Filter.On(), "esc clears a filter first")
	b.press("/")
	b.write("(")
	b.shows(t, "missing closing )")
	b.press("enter")
	require.False(t, b.state().Filter.On(), "what is no filter is none")
}

func TestCommandLine(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, Contexts: []term.Context{{Name: "prod", Seeds: []string{"p:1"}}}})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	run := func(line string) { b.press(":"); b.write(line); b.press("enter") }
	run("events seal")
	require.Equal(t, page.Events, b.page)
	require.Equal(t, "SEAL", b.state().Types)
	run("segments /r1")
	require.Equal(t, "r1", b.state().Range)
	run("frob")
	b.shows(t, "there is no command")
	run("seeds a:1,b:2")
	require.Equal(t, []string{"a:1", "b:2"}, b.seeds)
	run("refresh 2s")
	require.Equal(t, 2*time.Second, b.pump.every)
	run("ctx nowhere")
	require.Nil(t, b.next)
	run("ctx prod")
	require.Equal(t, []string{"p:1"}, b.next.Seeds)
	b.press(":")
	b.write("ra")
	b.press("tab")
	require.Equal(t, "ranges ", b.prompt.input.Text)
	b.press("esc")
	require.Nil(t, b.prompt)
}

func TestPauseAndPast(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1, Length: 60 * time.Second}, 50*time.Second)
	now := b.view
	b.press("p")
	b.pump.store.Apply(store.Message{Time: b.wall.Add(time.Second), Conn: &store.Conn{}})
	b.wall = b.wall.Add(5 * time.Second)
	b.pump.publish()
	require.Same(t, now, b.view, "paused: what comes is not shown")
	b.shows(t, "paused")
	b.press("p")
	require.NotSame(t, now, b.view)
	for range 6 {
		b.press(",")
	}
	require.True(t, b.past.on)
	b.shows(t, "not live")
	require.Equal(t, 0, b.view.Cluster.Dead, "half a minute ago nobody was dead yet")
	b.press(".")
	b.press("L")
	require.False(t, b.past.on)
	require.Same(t, b.latest, b.view)
}

func TestActionsAreReadOnlyUntilAllowed(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("2", "down", "x")
	d, ok := b.dialog.(*menuDialog)
	require.True(t, ok, "%s", strings.Join(b.canvas.Plain(), "\n"))
	b.shows(t, "read-only: needs --allow-actions or :rw", "$ eg-cli "+strings.Join(d.subject.Actions[0].Command, " "))
	b.press("l")
	require.Empty(t, b.ran, "nothing is even asked")
	b.shows(t, "leave: read-only")
	b.press("x", "p")
	require.Equal(t, [][]string{{"node", "ping", d.subject.Name}}, b.ran, "what changes nothing is done at once, and has no plan")
	b.press("esc")
	b.ran = nil
	b.press(":")
	b.write("rw")
	b.press("enter", "n")
	require.False(t, b.rw)
	b.press(":")
	b.write("rw")
	b.press("enter", "y")
	require.True(t, b.rw)
	frozen := b.view
	b.press("x")
	d, ok = b.dialog.(*menuDialog)
	require.True(t, ok)
	a := -1
	for i, x := range d.subject.Actions {
		if x.Why == "" && x.Level != page.LevelNone && a < 0 {
			a = i
		}
	}
	require.GreaterOrEqual(t, a, 0)
	b.press(string(d.subject.Actions[a].Key))
	require.Equal(t, append(append([]string{}, d.subject.Actions[a].Command...), "--dry-run"), b.ran[1])
	b.shows(t, "the plan", "frozen while dialog is open")
	b.wall = b.wall.Add(2 * time.Second)
	b.pump.publish()
	require.Same(t, frozen, b.view)
	p := b.dialog.(*planDialog)
	if p.name == "" {
		b.press("y")
	} else {
		b.press("enter")
		require.Len(t, b.ran, 2, "without the name nothing is done")
		b.write(p.name)
		b.press("enter")
	}
	require.Len(t, b.ran, 4, "document, plan, document again, the change")
	require.Contains(t, b.ran[3], "--yes")
	require.Nil(t, b.dialog)
	b.shows(t, "the plan")
}

func TestProtectedContextWantsNames(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, AllowActions: true, Context: term.Context{Name: "prod", Protected: true}})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("4", "down", "ctrl+d")
	p, ok := b.dialog.(*planDialog)
	require.True(t, ok, "%s", strings.Join(b.canvas.Plain(), "\n"))
	require.Equal(t, p.subject.Name, p.name)
	b.write(p.name[:len(p.name)-1])
	b.press("enter")
	require.Len(t, b.ran, 2)
	b.write(p.name[len(p.name)-1:])
	b.press("enter")
	require.Equal(t, []string{"--yes", "--confirm", p.name}, b.ran[3][len(b.ran[3])-3:])
}

func TestNothingIsDoneToARecording(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, AllowActions: true, Replay: "x"})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("4", "down", "ctrl+d")
	require.Empty(t, b.ran)
	b.press("d")
	require.Empty(t, b.ran)
}

func TestSaveScreen(t *testing.T) {
	b := newBench(t, Options{Width: 100, Height: 30})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("ctrl+s")
	require.Len(t, b.saved, 2)
	for name, text := range b.saved {
		if strings.HasSuffix(name, ".json") {
			require.True(t, json.Valid([]byte(text)))
			require.Contains(t, text, `"schema": "top/1"`)
		} else {
			require.Contains(t, text, "EastGuard")
		}
	}
}

func TestFind(t *testing.T) {
	b := newBench(t, Options{Width: 100, Height: 40})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("ctrl+p")
	b.write("n2")
	b.shows(t, "node     n2")
	b.press("enter")
	require.Equal(t, page.Ring, b.page)
	require.Equal(t, "n2", b.state().Focus().Selected)
}

func TestExitOnDisconnect(t *testing.T) {
	b := newBench(t, Options{Width: 100, Height: 40, ExitOnDisconnect: true})
	b.pump.store.Apply(store.Message{Time: b.wall, Conn: &store.Conn{Lost: true, Error: "refused"}})
	b.pump.publish()
	require.ErrorContains(t, b.end, "refused")
}

// TestFrameWithoutChange checks that nothing is drawn when nothing has changed.
func TestFrameWithoutChange(t *testing.T) {
	b := newBench(t, Options{Width: 100, Height: 40})
	b.play(storetest.Options{Seed: 1}, 5*time.Second)
	before := b.model.View().Content
	for range 3 {
		b.pump.tick()
	}
	require.False(t, b.dirty)
	require.Equal(t, before, b.model.View().Content)
}

// checkScreen fails on a frame that is not exactly as large as the screen, or has bytes that a terminal acts on.
func checkScreen(t *testing.T, b *bench, what string) {
	t.Helper()
	lines := strings.Split(b.model.View().Content, "\n")
	if len(lines) > b.height {
		t.Fatalf("%s: %d lines on a screen of %dx%d", what, len(lines), b.width, b.height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > b.width {
			t.Fatalf("%s: line %d is %d wide on a screen of %dx%d", what, i, w, b.width, b.height)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("4j\r:ranges orders\r/x\r?"), uint16(80), uint16(24))
	f.Fuzz(func(t *testing.T, keys []byte, w, h uint16) {
		b := newBench(t, Options{Width: int(w%300) + 1, Height: int(h%100) + 1})
		b.play(storetest.Options{Seed: 1, Length: 2 * time.Second}, 2*time.Second)
		for _, k := range keys[:min(len(keys), 100)] {
			name := string(rune(k))
			switch k {
			case '\r':
				name = "enter"
			case 27:
				name = "esc"
			case '\t':
				name = "tab"
			}
			b.press(name)
			checkScreen(t, b, name)
		}
	})
}

func TestMessageOf(t *testing.T) {
	require.Equal(t, `a\x1b[2J`, messageOf(errors.New("a\x1b[2J")))
}
