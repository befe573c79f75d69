package script

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParsePartial(t *testing.T) {
	tests := map[string]struct {
		text string
		want Partial
	}{
		"empty":       {"", Partial{}},
		"first":       {"con", Partial{Last: "con"}},
		"behind":      {"consume ", Partial{Words: []string{"consume"}}},
		"second":      {"consume my", Partial{Words: []string{"consume"}, Last: "my"}},
		"open quote":  {`publish t "a b`, Partial{Words: []string{"publish", "t"}, Last: "a b", Quote: '"'}},
		"raw quote":   {`publish t 'a"b`, Partial{Words: []string{"publish", "t"}, Last: `a"b`, Quote: '\''}},
		"closed":      {`publish "a b" c`, Partial{Words: []string{"publish", "a b"}, Last: "c"}},
		"empty word":  {`publish "" `, Partial{Words: []string{"publish", ""}}},
		"second cmd":  {"topic list; con", Partial{Last: "con"}},
		"repeat":      {"5 pub", Partial{Last: "pub"}},
		"meta":        {":se", Partial{Last: "se", Meta: true}},
		"meta arg":    {":set out", Partial{Words: []string{"set"}, Last: "out", Meta: true}},
		"redirect":    {"topic list > o", Partial{Words: []string{"topic", "list"}, Last: "o", Target: true}},
		"comment":     {`a; # it's`, Partial{Comment: true}},
		"past it":     {"# it's\ntopic l", Partial{Words: []string{"topic"}, Last: "l"}},
		"no comment":  {"a #b", Partial{Words: []string{"a"}, Last: "#b"}},
		"new command": {"topic list > o; con", Partial{Last: "con"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ParsePartial(tt.text), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// FuzzParsePartial checks that no text makes it panic, and that it agrees with Parse about a finished line.
func FuzzParsePartial(f *testing.F) {
	for _, seed := range []string{"", "a b", "5 a 'b", ":set x", "a; b > c", `"\x`, "\"\\", "5 ", ": ", ";#\"", "a > #\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := ParsePartial(text + " ")
		lines, err := Parse(text)
		if err != nil || len(lines) == 0 || p.Target || len(lines) != 1 || lines[0].Meta {
			return
		}
		if p.Quote != 0 {
			t.Fatalf("quote %q open in a line that parses: %q", p.Quote, text)
		}
	})
}
