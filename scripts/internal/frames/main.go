// Command frames draws pictures of eg-top from a recording: the screen at given moments, as SVG. The screen is what a
// terminal makes of the bytes that eg-top writes (x/vt), so a picture shows what an operator sees.
//
//	frames --replay incident.jsonl --out docs/pictures overview@34s segments@40s
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"

	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/keymap"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

func main() {
	replay := flag.String("replay", "", "the recording")
	out := flag.String("out", ".", "where the pictures go")
	width := flag.Int("width", 120, "columns")
	height := flag.Int("height", 40, "lines")
	flag.Parse()
	if err := run(*replay, *out, *width, *height, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "frames:", err)
		os.Exit(1)
	}
}

func run(replay, out string, width, height int, shots []string) error {
	messages, err := read(replay)
	if err != nil {
		return err
	}
	for _, shot := range shots {
		name, moment, ok := strings.Cut(shot, "@")
		after, err := time.ParseDuration(moment)
		if !ok || err != nil {
			return fmt.Errorf("%q is not VIEW@TIME", shot)
		}
		v, now := viewAt(messages, after)
		picture, err := svg(draw(v, now, name, width, height), width, height)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, "eg-top-"+name+".svg"), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read takes in a recording.
func read(path string) (all []store.Message, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m store.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no message", path)
	}
	return all, lines.Err()
}

// viewAt is what was known so long after the beginning.
func viewAt(messages []store.Message, after time.Duration) (*store.View, time.Time) {
	s, now := store.New(store.Options{History: -1}), messages[0].Time.Add(after)
	for _, m := range messages {
		if m.Time.After(now) {
			break
		}
		s.Apply(m)
	}
	return s.View(now), now
}

// draw is the screen as eg-top writes it.
func draw(v *store.View, now time.Time, view string, width, height int) []string {
	c := component.NewCanvas(width, height, styles.NewTheme(styles.TrueColor, false))
	id := page.Overview
	for p := page.Overview; p <= page.Logs; p++ {
		if strings.EqualFold(p.String(), view) {
			id = p
		}
	}
	st := page.NewState()
	st.Frame = page.Frame{Now: now, Clock: now, Rate: "4 Hz", Still: true, ReadOnly: true}
	for _, a := range []keymap.Action{keymap.Help, keymap.Filter, keymap.Command, keymap.Open, keymap.Zoom, keymap.Pause, keymap.StepBack, keymap.Actions, keymap.Quit} {
		h := a.Hint()
		st.Frame.Keys = append(st.Frame.Keys, page.KeyHint{Key: h.Key, Does: h.Text})
	}
	page.Draw(c, page.Get(id), v, &st)
	return c.Lines()
}

// screen is what a terminal makes of lines.
func screen(lines []string, width, height int) (*vt.Emulator, error) {
	e := vt.NewEmulator(width, height)
	for i, l := range lines {
		if _, err := fmt.Fprintf(e, "\x1b[%d;1H%s", i+1, l); err != nil {
			return nil, err
		}
	}
	return e, nil
}
