package app

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		filter, text string
		want         bool
	}{
		{"", "anything", true},
		{"ord", "orders", true},
		{"ord", "Orders", true},
		{"Ord", "orders", false},
		{"^ord", "my-orders", false},
		{"!ord", "orders", false},
		{"! ord", "clicks", true},
		{"-f odr", "orders", true},
		{"-f rdo", "orders", false},
		{"!-f odr", "orders", false},
		{"-f", "orders", true},
		{"!", "orders", true},
		{"a|b", "b", true},
	} {
		f, err := ParseFilter(tt.filter)
		require.NoError(t, err, tt.filter)
		require.Equal(t, tt.want, f.Match(tt.text), "%q of %q", tt.filter, tt.text)
	}
	for _, wrong := range []string{"(", "[z-a]", strings.Repeat("x", maxPattern+1)} {
		_, err := ParseFilter(wrong)
		require.Error(t, err, wrong)
	}
}

func TestFuzzyPrefersBeginnings(t *testing.T) {
	at, _ := fuzzyScore("or", "orders")
	inside, _ := fuzzyScore("or", "vendor")
	apart, _ := fuzzyScore("or", "o-r")
	require.Less(t, at, inside)
	require.Less(t, at, apart)
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"a", "!a", "-f a", "!-f ä", "(", "(?s).*", "!", "\x00", "a{1000}{1000}"} {
		f.Add(s, "orders/r9")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		p, err := ParseFilter(pattern)
		if err != nil {
			return
		}
		have := p.Match(text)
		if p.invert && (p.re != nil || p.fuzzy != "") {
			plain := p
			plain.invert = false
			if plain.Match(text) == have {
				t.Fatalf("%q does not invert", pattern)
			}
		}
		again, err := ParseFilter(p.String())
		if err != nil || again.Match(text) != have {
			t.Fatalf("%q is not what it prints", pattern)
		}
	})
}

func TestCommand(t *testing.T) {
	for line, want := range map[string]Command{
		"ranges orders":     {"ranges", "orders"},
		" ra orders ":       {"ranges", "orders"},
		"node n3":           {"ring", "n3"},
		"segments /r9":      {"segments", "/r9"},
		"events SEAL":       {"events", "SEAL"},
		"ctx prod-eu":       {"ctx", "prod-eu"},
		"at -5m":            {"at", "-5m"},
		"rw":                {"rw", ""},
		"q":                 {"quit", ""},
		"Q":                 {"quit", ""},
		"refresh 500ms":     {"refresh", "500ms"},
		"seeds h:1,h:2 h:3": {"seeds", "h:1,h:2 h:3"},
	} {
		have, err := ParseCommand(line)
		require.NoError(t, err, line)
		require.Equal(t, want, have, line)
	}
	for _, wrong := range []string{"", " ", "frobnicate", "r", "q now", "at", "at x", "ctx", "refresh x", "topics (", strings.Repeat("x", maxPattern+1)} {
		_, err := ParseCommand(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

func TestComplete(t *testing.T) {
	known := names{Topics: []string{"orders", "orders-eu", "clicks"}, Nodes: []string{"n1", "n2"}, Contexts: []string{"prod"}}
	for line, want := range map[string]string{
		"":              "",
		"ov":            "overview ",
		"ra":            "ranges ",
		"r":             "r",
		"ranges or":     "ranges orders",
		"ranges orders": "ranges orders",
		"ranges c":      "ranges clicks",
		"ring n":        "ring n",
		"ctx p":         "ctx prod",
		"xyz":           "xyz",
		"xyz a":         "xyz a",
	} {
		have, _ := complete(line, known)
		require.Equal(t, want, have, "%q", line)
	}
	_, offers := complete("ranges o", known)
	require.Equal(t, []string{"orders", "orders-eu"}, offers)
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"ranges orders", "at -5m", "seg /r9", "ctx", "\xff", "r\tx", "refresh -1h", "at 99999999999999999999"} {
		f.Add(s)
	}
	known := names{Topics: []string{"orders", "ördérs", "\xff"}}
	f.Fuzz(func(t *testing.T, line string) {
		if c, err := ParseCommand(line); err == nil {
			if _, err := findVerb(c.Verb); err != nil {
				t.Fatalf("%q: there is no verb %q", line, c.Verb)
			}
		} else if !utf8.ValidString(messageOf(err)) {
			t.Fatalf("%q: the error is not text", line)
		}
		longer, _ := complete(line, known)
		if utf8.ValidString(line) && !utf8.ValidString(longer) && !strings.Contains(longer, "\xff") {
			t.Fatalf("%q completes to %q", line, longer)
		}
	})
}

// TestFilterOfAnyShapeEnds checks that a pattern with nested repeats is refused or quick: it is matched on the screen's
// own goroutine.
func TestFilterOfAnyShapeEnds(t *testing.T) {
	f, err := ParseFilter("(a*)*b")
	require.NoError(t, err)
	require.False(t, f.Match(strings.Repeat("a", 4096)))
}
