package cli

import (
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/term"
)

// plural prints "1 range" and "2 ranges".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return term.FormatCount(n) + " " + one + "s"
}

// pluralAs is plural for words of their own.
func pluralAs(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return term.FormatCount(n) + " " + many
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// orDash is a name for people: harmless, whatever a broker calls itself, and - where there is none.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return term.Escape(s)
}

// shown is a key or value for people: harmless, and "" for empty, so that it is seen.
func shown(b []byte) string {
	if len(b) == 0 {
		return `""`
	}
	return term.Escape(string(b))
}

// millis is d as it stands in documents.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// took prints what millis made.
func took(ms float64) string { return term.FormatTook(time.Duration(ms * float64(time.Millisecond))) }

// formatSpan prints milliseconds of a setting.
func formatSpan(ms int64) string { return term.FormatSpan(time.Duration(ms) * time.Millisecond) }

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
