package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// A crowd of messages, of which each counts: none is lost where one batch ends and the next begins.
func TestThePumpAppliesAllThatItReceives(t *testing.T) {
	const all = 3*maxBatch + 7
	in, start := make(chan store.Message, all), time.Now()
	for i := range all {
		in <- store.Message{Time: start, Node: "n1", Boot: 1, Event: &sdk.Event{Seq: uint64(i + 1), Type: "TOPIC_CREATED", Subject: "orders"}}
	}
	close(in)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last viewMsg
	p := newPump(in, time.Hour, time.Now, func(m any) {
		if last = m.(viewMsg); last.over {
			cancel()
		}
	})
	p.run(ctx)
	require.True(t, last.over)
	require.Equal(t, all, last.view.Events.Len())
}

func TestWhatIsWrongWithARecordingIsSaid(t *testing.T) {
	good := `{"time":"2026-11-30T12:00:00Z","node":"n1","boot":1}` + "\n"
	for name, c := range map[string]struct{ text, want, out string }{
		"empty":          {"", "it has no whole line", ""},
		"of no node":     {`{"time":"2026-11-30T12:00:00Z"}` + "\n", "nothing was recorded of any node", ""},
		"another file":   {"# EastGuard\n\nA log.\n", "line 1", ""},
		"broken off":     {good + "{\n" + good, "line 2", "EastGuard"},
		"of no message":  {"[]\n" + good, "line 1", ""},
		"of a long line": {strings.Repeat("x", 17<<20), "too long", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "recording")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			streams, _, out, _ := term.Test()
			err := Run(t.Context(), Options{Once: true, Replay: file, Format: term.FormatTable, Refresh: time.Second, Getenv: os.Getenv}, streams)
			require.ErrorContains(t, err, c.want)
			code := base.CodeInvalidArgument
			if c.out != "" {
				code = base.CodeCorruptData // what could be read is shown
				var e *base.Error
				require.ErrorAs(t, err, &e)
				require.Contains(t, e.HintText(), file)
			}
			require.Equal(t, code, base.CodeOf(err))
			require.Contains(t, out.String(), c.out)
			require.Equal(t, c.out == "", out.Len() == 0)
		})
	}
}

// On the screen it is a notice, and the recording up to there can still be looked at.
func TestARecordingThatEndsBadlyStaysOnTheScreen(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, Replay: "incident.jsonl"})
	b.broken = invalid("replay: line 7 of the recording: it is none")
	b.pump.over = true
	b.pump.publish()
	b.model.View()
	b.shows(t, "replay: line 7 of the recording: it is none")
}

func TestAFilterThatIsNoneIsRefused(t *testing.T) {
	streams, _, _, _ := term.Test()
	err := Run(t.Context(), Options{Once: true, Filter: "(", Getenv: os.Getenv}, streams)
	require.ErrorContains(t, err, "missing closing )")
	require.Equal(t, base.CodeInvalidArgument, base.CodeOf(err))
}

// A recording is of one cluster: another would need another file.
func TestWhatIsRecordedIsNotLeftForAnotherCluster(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40, Record: "incident.jsonl", Contexts: []term.Context{{Name: "prod", Seeds: []string{"p:1"}}}})
	b.press(":")
	b.write("ctx prod")
	b.press("enter")
	require.Nil(t, b.next)
	b.shows(t, "incident.jsonl is of this cluster alone")
}

// A recording never takes the place of what is there.
func TestARecordingOverwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "incident.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("of last night"), 0o600))
	streams, _, _, _ := term.Test()
	err := Run(t.Context(), Options{Once: true, Record: file, Seeds: []string{"127.0.0.1:1"}, Getenv: os.Getenv}, streams)
	require.ErrorContains(t, err, "record: ")
	require.Equal(t, base.CodeInvalidArgument, base.CodeOf(err))
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "of last night", string(kept))
}
