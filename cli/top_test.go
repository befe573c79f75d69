package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// runTop runs a line of eg-cli, or of eg-top when it begins so, against a dashboard that only notes how it was asked to
// run.
func runTop(t *testing.T, line string, env ...string) (got *Top, exit int, errs string) {
	t.Helper()
	s, output := newTestSession(t, env...)
	s.Top = func(_ context.Context, _ *term.IOStreams, asked Top) error {
		got = &asked
		return nil
	}
	words := strings.Fields(line)
	var err error
	if words[0] == topProgram {
		err = s.executeTop(context.Background(), words[1:])
	} else {
		err = s.execute(context.Background(), s.IO, words)
	}
	_, errs = output()
	return got, ExitCode(err), errs
}

func TestTopOptions(t *testing.T) {
	for _, front := range []string{"top", topProgram} {
		got, exit, errs := runTop(t, front+" segments -s h:1,h:2 --refresh 500ms --filter !x --once -o jsonl -n 3 --duration 1m --size 120x40 "+
			"--no-mouse --replay f --speed 4x --exit-on-disconnect", "ACCESSIBLE=1")
		require.Zero(t, exit, errs)
		require.Equal(t, []string{"h:1", "h:2"}, got.Seeds)
		require.Equal(t, []any{"segments", "!x", true, term.FormatJSONL, 3, time.Minute, 120, 40, "f", 4.0, 500 * time.Millisecond},
			[]any{got.View, got.Filter, got.Once, got.Format, got.Count, got.Duration, got.Width, got.Height, got.Replay, got.Speed, got.Refresh})
		require.True(t, got.NoMouse && got.NoAnimation && got.ExitOnDisconnect && !got.AllowActions)
		require.Equal(t, "1.2.3", got.Version)
	}
	got, _, _ := runTop(t, "top")
	require.Equal(t, []any{"overview", 250 * time.Millisecond, 1.0, term.FormatTable}, []any{got.View, got.Refresh, got.Speed, got.Format})
}

// TestTopKnowsWhetherGlyphsWereChosen, for where they were not the fonts of a locale decide.
func TestTopKnowsWhetherGlyphsWereChosen(t *testing.T) {
	for line, want := range map[string]bool{"top": false, "top --ascii": true, "eg-top --ascii=false": true, "eg-top": false} {
		got, exit, errs := runTop(t, line)
		require.Zero(t, exit, errs)
		require.Equal(t, want, got.GlyphsChosen, line)
	}
	got, _, _ := runTop(t, "top", "EG_ASCII=false")
	require.True(t, got.GlyphsChosen)
}

// TestTopKnowsWhetherAFormatWasChosen, for one that is usual for commands keeps nobody from the screen.
func TestTopKnowsWhetherAFormatWasChosen(t *testing.T) {
	for _, tc := range []struct {
		line, env string
		format    term.Format
		chosen    bool
	}{
		{"top", "", term.FormatTable, false},
		{"top", "EG_OUTPUT=json", term.FormatJSON, false},
		{"eg-top", "EG_OUTPUT=yaml", term.FormatTable, false},
		{"eg-top -o json", "EG_OUTPUT=yaml", term.FormatJSON, true},
		{"top -o table", "EG_OUTPUT=json", term.FormatTable, true},
	} {
		got, exit, errs := runTop(t, tc.line, tc.env)
		require.Zero(t, exit, errs)
		require.Equal(t, []any{tc.format, tc.chosen}, []any{got.Format, got.FormatChosen}, "%s with %s", tc.line, tc.env)
	}
}

func TestTopRefusesWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"top overvew":                        `did you mean "overview"?`,
		"top --view x":                       "views: overview",
		"top --refresh 1ms":                  "--refresh is 100ms to 1m",
		"top --refresh x":                    `"x" is not a span`,
		"top --speed 0":                      "--speed",
		"top --speed NaN":                    "--speed",
		"top --size 80":                      "WIDTHxHEIGHT",
		"top --size 0x9":                     "WIDTHxHEIGHT",
		"top -n -1":                          "negative",
		"top -o yaml":                        "table, json or jsonl",
		"top --record a --replay b":          "exclude each other",
		"top --allow-actions --read-only":    "exclude each other",
		"top a b":                            "at most 1 argument",
		"eg-top --frobnicate":                "unknown flag",
		"eg-top --allow-actions --read-only": "exclude each other",
	} {
		got, exit, errs := runTop(t, line)
		require.Nil(t, got, line)
		require.Equal(t, ExitUsage, exit, "%s: %s", line, errs)
		require.Contains(t, errs, want, line)
	}
}

// TestTopExit checks the exit codes of what only a dashboard has to say.
func TestTopExit(t *testing.T) {
	for want, err := range map[int]error{
		ExitOK: nil, ExitUnhealthy: errorf(sdk.CodeUnhealthy, "n3 is dead"), ExitUnreachable: errorf(sdk.CodeUnreachable, "refused"), ExitError: errors.New("x"),
	} {
		s, output := newTestSession(t)
		s.Top = func(context.Context, *term.IOStreams, Top) error { return err }
		require.Equal(t, want, ExitCode(s.execute(context.Background(), s.IO, []string{"top"})))
		if _, errs := output(); want == ExitUnhealthy || want == ExitOK {
			require.Empty(t, errs, "what was printed shows it")
		} else {
			require.NotEmpty(t, errs)
		}
	}
	s, _ := newTestSession(t)
	require.Equal(t, ExitError, ExitCode(s.execute(context.Background(), s.IO, []string{"top"})), "a build without a dashboard says so")
}

// TestTopRunsCommands checks what the dashboard's actions and descriptions go through.
func TestTopRunsCommands(t *testing.T) {
	s, _ := newTestSession(t, "EG_OUTPUT=json")
	s.Top = func(ctx context.Context, _ *term.IOStreams, asked Top) error {
		text, err := asked.Exec(ctx, asked.Context, []string{"version"}, nil)
		require.NoError(t, err)
		require.NotContains(t, text, "{", "for people, unless it asks for something else")
		text, err = asked.Exec(ctx, asked.Context, []string{"version", "-o", "json"}, nil)
		require.NoError(t, err)
		require.Contains(t, text, `"client": "1.2.3"`)
		text, err = asked.Exec(ctx, asked.Context, []string{"topic", "frobnicate"}, nil)
		require.Equal(t, ExitUsage, ExitCode(err))
		require.Contains(t, text, "unknown command", "what went wrong is part of the text")
		return nil
	}
	require.NoError(t, s.execute(context.Background(), s.IO, []string{"top"}))
}
