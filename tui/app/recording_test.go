package app

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// written is a feed that has messages at once.
type written struct {
	feed.Feed
	out chan store.Message
}

func (w *written) Messages() <-chan store.Message { return w.out }
func (w *written) Err() error                     { return nil }
func (w *written) Close() error                   { return nil }

// recordInto records an incident into a file, and gives what was shown meanwhile.
func recordInto(t *testing.T, file *os.File, o storetest.Options) (r *recording, shown []store.Message) {
	t.Helper()
	src := &written{out: make(chan store.Message)}
	g := newGuard(func(error) {})
	r = newRecording(src, file, g)
	go func() {
		defer close(src.out)
		for m := range storetest.Stream(o) {
			src.out <- m
		}
	}()
	for m := range r.Messages() {
		shown = append(shown, m)
	}
	return r, shown
}

// screens are all pages as they are after some messages.
func screens(t *testing.T, messages []store.Message, wall time.Time) string {
	b := newBench(t, Options{Width: 120, Height: 40})
	for _, m := range messages {
		b.pump.store.Apply(m)
	}
	b.wall = wall
	b.pump.publish()
	var all strings.Builder
	for id := page.Overview; id <= page.Logs; id++ {
		b.visit(id)
		b.dirty = true
		all.WriteString(b.model.View().Content)
	}
	return all.String()
}

func TestReplayShowsTheScreensThatWereRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "incident.jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	r, shown := recordInto(t, f, storetest.Options{Seed: 3, Length: 60 * time.Second})
	require.NoError(t, r.Close())
	g := newGuard(func(error) {})
	src, err := openRecording(Options{Replay: path, Once: true}, g)
	require.NoError(t, err)
	var again []store.Message
	for m := range src.Messages() {
		again = append(again, m)
	}
	require.NoError(t, src.Err())
	end := shown[len(shown)-1].Time
	require.Equal(t, screens(t, shown, end), screens(t, again, end))
	require.NoError(t, src.Close())
}

// A full disk ends the recording, not what is seen; and it is said.
func TestRecordToAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	r, shown := recordInto(t, full, storetest.Options{Seed: 3, Length: 20 * time.Second})
	require.NotEmpty(t, shown)
	require.ErrorContains(t, r.Err(), "the recording is not complete")
	require.ErrorContains(t, r.Close(), "no space left on device")

	b := newBench(t, Options{Width: 120, Height: 40, Record: "x"})
	b.play(storetest.Options{Seed: 1}, 2*time.Second)
	b.broken = r.Err()
	b.pump.publish()
	b.wall = b.wall.Add(time.Second)
	b.pump.publish()
	b.model.View()
	b.shows(t, "the recording is not complete", "no space left on device")
}

func TestARecordingIsOfOneCluster(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, Record: "x.jsonl", Contexts: []term.Context{{Name: "prod", Seeds: []string{"p:1"}}}})
	b.press(":")
	b.write("ctx prod")
	b.press("enter")
	b.shows(t, "x.jsonl is of this cluster alone")
	require.Nil(t, b.next)
}

func TestWhatCannotBeReplayed(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	f, err := os.Create(good)
	require.NoError(t, err)
	r, _ := recordInto(t, f, storetest.Options{Seed: 3, Length: time.Second, Quiet: true})
	require.NoError(t, r.Close())
	whole, err := os.ReadFile(good)
	require.NoError(t, err)
	half := whole[:bytes.IndexByte(whole[len(whole)/2:], '\n')+len(whole)/2+1]
	for name, tt := range map[string]struct {
		file string
		code sdk.Code
	}{
		"another file":   {"# EastGuard\n", sdk.CodeInvalidArgument},
		"empty":          {"", sdk.CodeInvalidArgument},
		"damaged inside": {string(half) + "{]\n" + string(whole[len(half):]), sdk.CodeCorruptData},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recording")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			streams, _, out, _ := term.Test()
			err := Run(t.Context(), Options{Replay: path, Once: true, Getenv: os.Getenv}, streams)
			var e *sdk.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, tt.code, e.Code)
			require.Equal(t, tt.code == sdk.CodeCorruptData, out.Len() > 0, "what could be read is shown")
		})
	}
	require.ErrorContains(t, Run(t.Context(), Options{Replay: dir + "/none", Once: true, Getenv: os.Getenv}, &term.IOStreams{Out: io.Discard, Err: io.Discard}), "no such file")
}

// FuzzRecording plays whatever a file may have on every page.
func FuzzRecording(f *testing.F) {
	var whole bytes.Buffer
	rec := feed.NewRecorder(&whole)
	for m := range storetest.Stream(storetest.Options{Seed: 1, Length: 2 * time.Second}) {
		if err := rec.Write(m); err != nil {
			f.Fatal(err)
		}
	}
	if err := rec.Flush(); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	for line := range bytes.Lines(whole.Bytes()) {
		f.Add(line)
	}
	f.Add([]byte(`{"time":"9999-12-31T23:59:59Z","node":"n1","counters":{"in_bytes_per_sec":-9223372036854775808}}`))
	f.Add([]byte(`{"time":"0001-01-01T00:00:01Z","conn":{"lost":true,"error":"\u001b[2J"}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<20 {
			return
		}
		src, err := feed.Replay(bytes.NewReader(file), feed.ReplayOptions{Speed: -1})
		if err != nil {
			return
		}
		b := newBench(t, Options{Width: 100, Height: 30})
		for m := range src.Messages() {
			b.pump.store.Apply(m)
			b.wall = src.Now()
		}
		for id := page.Overview; id <= page.Logs; id++ {
			b.pump.publish()
			b.visit(id)
			checkScreen(t, b, id.String())
		}
		b.press(",")
		checkScreen(t, b, "the past")
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
