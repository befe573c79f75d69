package script

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	one := func(words ...string) []Line { return []Line{{Number: 1, Repeat: 1, Words: words}} }
	tests := map[string]struct {
		text string
		want []Line
	}{
		"empty":             {"", nil},
		"blank":             {"  \t \n\n ; ;", nil},
		"comment":           {"# it's; not > a \"line", nil},
		"comment then line": {"# no\nhelp", []Line{{Number: 2, Repeat: 1, Words: []string{"help"}}}},
		"hash inside":       {"publish t k #1", one("publish", "t", "k", "#1")},
		"words":             {`publish my_topic user123 "Hello EastGuard!"`, one("publish", "my_topic", "user123", "Hello EastGuard!")},
		"joined quotes":     {`a'b c'"d\te"f`, one("ab cd\tef")},
		"empty word":        {`publish t "" ''`, one("publish", "t", "", "")},
		"raw":               {`'\n;>"'`, one(`\n;>"`)},
		"escapes":           {`"\n\t\r\\\"\0\x41\u00e9"`, one("\n\t\r\\\"\x00Aé")},
		"byte escape":       {`"\xff"`, one("\xff")},
		"backslash outside": {`C:\dir\n`, one(`C:\dir\n`)},
		"newline in quotes": {"publish t k 'a\nb'\nhelp", []Line{
			{Number: 1, Repeat: 1, Words: []string{"publish", "t", "k", "a\nb"}},
			{Number: 3, Repeat: 1, Words: []string{"help"}},
		}},
		"semicolons": {"a;b c ; d", []Line{
			{Number: 1, Repeat: 1, Words: []string{"a"}},
			{Number: 1, Repeat: 1, Words: []string{"b", "c"}},
			{Number: 1, Repeat: 1, Words: []string{"d"}},
		}},
		"repeat":          {"5 publish t k v", []Line{{Number: 1, Repeat: 5, Words: []string{"publish", "t", "k", "v"}}}},
		"number alone":    {"5", one("5")},
		"quoted number":   {`"5" x`, one("5", "x")},
		"redirect":        {"topic list > out.txt", []Line{{Number: 1, Repeat: 1, Words: []string{"topic", "list"}, Redirect: "out.txt"}}},
		"append":          {`topic list>>"my file"`, []Line{{Number: 1, Repeat: 1, Words: []string{"topic", "list"}, Redirect: "my file", Append: true}}},
		"meta":            {":set output json", []Line{{Number: 1, Repeat: 1, Meta: true, Words: []string{"set", "output", "json"}}}},
		"quoted colon":    {`":x"`, one(":x")},
		"windows newline": {"help\r\ntopic list\r\n", []Line{{Number: 1, Repeat: 1, Words: []string{"help"}}, {Number: 2, Repeat: 1, Words: []string{"topic", "list"}}}},
		"question":        {"?", one("?")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Line{}, "Text"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := map[string]struct {
		text       string
		unfinished bool
		msg        string
	}{
		"open double":     {text: `publish t k "Hello`, unfinished: true},
		"open single":     {text: `publish t k 'Hello`, unfinished: true},
		"open escape":     {text: `"a\`, unfinished: true},
		"open hex":        {text: `"\x4`, unfinished: true},
		"bad escape":      {text: "\n" + `"\q"`, msg: `line 2: "\\q" is not an escape`},
		"bad hex":         {text: `"\xzz"`, msg: "hexadecimal"},
		"no file":         {text: "topic list >", msg: "no file name"},
		"no file, more":   {text: "topic list > ; help", msg: "no file name"},
		"empty file":      {text: `topic list > ""`, msg: "empty"},
		"two files":       {text: "topic list > a > b", msg: "one file only"},
		"word behind":     {text: "topic list > a b", msg: "behind the file"},
		"no command":      {text: "> a", msg: "no command"},
		"zero repeats":    {text: "0 help", msg: "number of repeats"},
		"too many":        {text: "99999999999999999999 help", msg: "number of repeats"},
		"repeat of meta":  {text: "3 :clear", msg: "cannot be repeated"},
		"line is counted": {text: "help\nhelp\n0 help", msg: "line 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tt.text)
			if tt.unfinished != errors.Is(err, ErrUnfinished) {
				t.Fatalf("unfinished = %v, err = %v", !tt.unfinished, err)
			}
			if !tt.unfinished && (err == nil || !strings.Contains(err.Error(), tt.msg)) {
				t.Errorf("err = %v, want it to say %q", err, tt.msg)
			}
		})
	}
}

func TestTextIsWhatWasWritten(t *testing.T) {
	lines, err := Parse("  2 publish t 'a  b' \"c\"  > f ; help # x")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines[0].Text, `2 publish t 'a  b' "c"  > f`; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := lines[1].Text, "help # x"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// FuzzParse checks what must hold for any text: no panic, quoting a parsed word gives the word back, and adding a
// closing quote to unfinished text finishes it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "help", `publish my_topic user123 "Hello EastGuard!"`, "5 publish t k v; topic list > out", ":set output json",
		"# comment\n\"\\u00e9\\xff\"", "a'b c'\"d\\te\"f", "\"open", "'open", "topic list >> 'x y'", "\\", "\"\\", "0 x", "> y", "\xff\xfe", "a\r\nb",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := Parse(text)
		if errors.Is(err, ErrUnfinished) {
			return
		}
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 {
				t.Fatalf("error %v names no line", err)
			}
			return
		}
		for _, l := range lines {
			if len(l.Words) == 0 || l.Repeat < 1 {
				t.Fatalf("line without command: %+v", l)
			}
			for _, w := range l.Words {
				again, err := Parse("x " + Quote(w))
				if err != nil || len(again) != 1 || len(again[0].Words) != 2 || again[0].Words[1] != w {
					t.Fatalf("quoting %q gives %q, which reads back as %+v, %v", w, Quote(w), again, err)
				}
			}
		}
	})
}
