package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/cli/script"
	"github.com/eastguard/eastguard/internal/term"
)

// noteExits lists the exit codes of a command beyond those that every command may give.
const noteExits = "exits"

func argsBetween(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s needs %s more", cmd.CommandPath(), plural(int64(least-len(args)), "argument")).
				WithHint("usage: %s", cmd.UseLine())
		case len(args) > most:
			return usagef("%s takes at most %s, %d were given", cmd.CommandPath(), plural(int64(most), "argument"), len(args)).
				WithHint("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

func argsAtLeast(least int) cobra.PositionalArgs {
	return argsBetween(least, 1<<20)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func took(ms float64) string { return term.FormatTook(time.Duration(ms * float64(time.Millisecond))) }

func formatSpan(ms int64) string { return term.FormatSpan(time.Duration(ms) * time.Millisecond) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// shown is a key or value for people: harmless, and "" for empty, so that it is seen.
func shown(b []byte) string {
	if len(b) == 0 {
		return `""`
	}
	return term.Escape(string(b))
}

// unescapeText reads \n \t \r \0 \\ \" \xHH and \uHHHH in a flag's value.
func unescapeText(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		text, n, err := script.Unescape(s[i:])
		if err != nil {
			return "", usagef("%v", err)
		}
		b.WriteString(text)
		i += n - 1
	}
	return b.String(), nil
}
