package app

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// soak is set for a walk that takes minutes.
const soak = "EASTGUARD_SOAK"

// walk is somebody who does anything at all, while an incident goes on.
type walk struct {
	*bench
	rnd    *rand.Rand
	keys   []string
	stream []store.Message
}

func newWalk(t *testing.T, seed uint64) *walk {
	opts := Options{AllowActions: seed%2 == 1, NoMouse: seed%5 == 0}
	switch {
	case seed%3 == 0:
		opts.Replay = "incident.jsonl"
	case seed%4 == 0:
		opts.Contexts = []term.Context{{Name: "prod-eu", Protected: true}, {Name: "lab", Seeds: []string{"127.0.0.1:2921"}, ReadOnly: true}}
	}
	return &walk{
		bench: newBench(t, opts), rnd: rand.New(rand.NewPCG(seed, 5)), keys: walkKeys(),
		stream: storetest.Messages(storetest.Options{Seed: seed, Length: 75 * time.Second}),
	}
}

// walkKeys are all keys that mean something, and some that do not. Those that end the program come at the end.
func walkKeys() []string {
	keys := []string{"backspace", "delete", "left", "right", "ü", "語", "\x1b", "ctrl+w"}
	for _, k := range keymap.All() {
		if k.Action != keymap.Quit && k.Action != keymap.Suspend {
			keys = append(keys, k.Keys...)
		}
	}
	for _, r := range "abcdefghijklmnoprstuvwxyz" + "rw" + "0123456789-/." {
		keys = append(keys, string(r))
	}
	return keys
}

// lines are typed at the command line, or pasted.
func (w *walk) line() string {
	words := []string{
		"ranges", "orders", "segments", "node", "n1", "n99", "shards", "shard", "12", "topic", "group", "events", "logs", "filter", "rate>1MB",
		"!n1", "/(", "refresh", "1ms", "1s", "seeds", "127.0.0.1:1", "use", "lab", "theme", "save", "time", "12:00", "-30s", "help", "\"", "\x1b[31m",
		"\x00", "語語語", strings.Repeat("x", 400), "ring", "overview", "topics", "sort", "size", "columns", "live",
	}
	line := make([]string, 1+w.rnd.IntN(4))
	for i := range line {
		line[i] = words[w.rnd.IntN(len(words))]
	}
	return strings.Join(line, " ")
}

// step does one thing, and says what.
func (w *walk) step() string {
	x, y := w.rnd.IntN(w.width), w.rnd.IntN(w.height)
	switch w.rnd.IntN(16) {
	case 0:
		w.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
		return fmt.Sprintf("click at %d,%d", x, y)
	case 1:
		w.Update(tea.MouseWheelMsg{X: x, Y: y, Button: []tea.MouseButton{tea.MouseWheelDown, tea.MouseWheelUp}[w.rnd.IntN(2)]})
		return fmt.Sprintf("wheel at %d,%d", x, y)
	case 2:
		text := w.line() + []string{"", "\n", "\x1b[31mx\ny\x00"}[w.rnd.IntN(3)]
		w.Update(tea.PasteMsg{Content: text})
		return fmt.Sprintf("paste of %q", text)
	case 3:
		text := w.line()
		w.press("esc", []string{":", "/"}[w.rnd.IntN(2)])
		w.write(text)
		w.press([]string{"enter", "tab", "esc", "up"}[w.rnd.IntN(4)])
		return fmt.Sprintf("line %q", text)
	case 4:
		width, height := 1+w.rnd.IntN(300), 1+w.rnd.IntN(100)
		switch w.rnd.IntN(4) {
		case 0:
			width, height = 1, 1
		case 1:
			width, height = 60, 15
		}
		w.Update(tea.WindowSizeMsg{Width: width, Height: height})
		return fmt.Sprintf("size %dx%d", width, height)
	}
	key := w.keys[w.rnd.IntN(len(w.keys))]
	w.press(key)
	return "key " + key
}

// leave checks that the program can be left from wherever it is: by ctrl-c at once, by esc and q in as many steps as there
// may be.
func (w *walk) leave(t *testing.T, what string) {
	t.Helper()
	quits := func(key string) bool {
		_, cmd := w.Update(keyOf(key))
		if cmd == nil {
			return false
		}
		_, ok := cmd().(tea.QuitMsg)
		return ok
	}
	require.True(t, quits("ctrl+c"), "%s: ctrl-c does not end it", what)
	for range 16 + len(w.trail) {
		if w.dialog == nil && w.prompt == nil && len(w.trail) == 0 && !w.still() {
			break
		}
		w.press("esc")
	}
	require.True(t, quits("q"), "%s: after esc q does not end it: dialog %T, prompt %v, %d steps to go back", what, w.dialog, w.prompt, len(w.trail))
}

// TestWalk presses, types, pastes, clicks and resizes at random, on every view, while an incident goes on: each frame fits
// its screen, and the program can always be left.
func TestWalk(t *testing.T) {
	runs, steps := 4, 1200
	if os.Getenv(soak) != "" {
		runs, steps = 100, 5000
	}
	for seed := uint64(1); seed <= uint64(runs); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { newWalk(t, seed).run(t, steps) })
	}
}

func (w *walk) run(t *testing.T, steps int) {
	what := ""
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%s: panic: %v\n%s", what, r, debug.Stack())
		}
	}()
	perStep := len(w.stream)/steps + 1
	for i := range steps {
		for range min(perStep, len(w.stream)) {
			w.pump.store.Apply(w.stream[0])
			w.wall, w.stream = w.stream[0].Time, w.stream[1:]
		}
		if i%10 == 0 {
			w.pump.publish()
		}
		what = fmt.Sprintf("step %d, view %s", i, w.page)
		what += ", " + w.step()
		checkScreen(t, w.bench, what)
		if i%100 == 99 {
			w.leave(t, what)
			w.press(fmt.Sprint(1 + i/100%9)) // no view is left out
		}
	}
}
