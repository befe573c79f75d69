package term

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"plain":        {"Hello EastGuard!", "Hello EastGuard!"},
		"empty":        {"", ""},
		"unicode":      {"naïve 日本語 👩‍👩‍👧", "naïve 日本語 👩‍👩‍👧"},
		"newline":      {"a\nb\r\tc", `a\nb\r\tc`},
		"escape":       {"\x1b[31mred\x1b]0;title\x07", `\x1b[31mred\x1b]0;title\x07`},
		"nul and del":  {"a\x00b\x7f", `a\x00b\x7f`},
		"c1":           {"a\u009bb", `a\u{009b}b`},
		"raw c1 byte":  {"a\x9bb", `a\x9bb`},
		"bidi":         {"user\u202enimda", `user\u{202e}nimda`},
		"zero width":   {"a\u200bb\ufeff", `a\u{200b}b\u{feff}`},
		"line sep":     {"a\u2028b", `a\u{2028}b`},
		"tags":         {"a\U000e0041", `a\u{e0041}`},
		"not utf-8":    {"\xff\xfe", `\xff\xfe`},
		"cut rune":     {"a\xe6\x97", `a\xe6\x97`},
		"replacement":  {"\ufffd", "\ufffd"},
		"at the start": {"\n", `\n`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Escape(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2J", "\u202e", "\xff", "日本", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != 0x200d {
				t.Fatalf("%q still holds %U", got, r)
			}
		}
		if Escape(got) != got {
			t.Fatalf("%q is not stable", got)
		}
	})
}

func TestEscapeLinesKeepsLayout(t *testing.T) {
	if got, want := EscapeLines("a\tb\nc\x1b\n"), "a\tb\nc\\x1b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONIsHarmlessAndUnchanged(t *testing.T) {
	for _, s := range []string{"\x1b[2J", "a\u009b\u202eb\u2028", "tag\U000e0041", "<&>", "日本語", "\x7f"} {
		b, err := marshal(map[string]string{"v": s}, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(b) {
			if r != '\n' && actsOnTerminal(r) {
				t.Errorf("%q holds %U", b, r)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(b, &back); err != nil || back["v"] != s {
			t.Errorf("%q came back as %q, %v", s, back["v"], err)
		}
	}
}

func TestWidthAndTruncate(t *testing.T) {
	tests := []struct {
		in    string
		width int
		ascii bool
		want  string
	}{
		{"hello", 5, false, "hello"},
		{"hello", 4, false, "hel…"},
		{"hello", 4, true, "h..."},
		{"日本語", 6, false, "日本語"},
		{"日本語", 5, false, "日本…"},
		{"日本語", 4, false, "日…"},
		{"hello", 0, false, ""},
		{"hello", -3, false, ""},
		{"hello", 2, true, "he"},
	}
	for _, tt := range tests {
		got := Truncate(tt.in, tt.width, tt.ascii)
		if got != tt.want || Width(got) > max(tt.width, 0) {
			t.Errorf("Truncate(%q, %d) = %q of width %d, want %q", tt.in, tt.width, got, Width(got), tt.want)
		}
	}
	if got := Pad("日本", 6, true); got != "  日本" {
		t.Errorf("Pad = %q", got)
	}
}

func TestColorDecision(t *testing.T) {
	tests := []struct {
		mode ColorMode
		tty  bool
		env  string
		want bool
	}{
		{ColorAuto, true, "", true},
		{ColorAuto, false, "", false},
		{ColorAuto, true, "NO_COLOR=1", false},
		{ColorAuto, true, "NO_COLOR=yes", false}, // any text, not only what ParseBool knows
		{ColorAuto, true, "NO_COLOR=0", false},
		{ColorAuto, true, "NO_COLOR=", true}, // present and empty does not count
		{ColorAuto, true, "TERM=dumb", false},
		{ColorAuto, true, "CLICOLOR=0", false},
		{ColorAuto, false, "CLICOLOR_FORCE=1", true},
		{ColorAuto, false, "CLICOLOR_FORCE=0", false},
		{ColorAuto, false, "CLICOLOR_FORCE=1 NO_COLOR=x", false},
		{ColorAlways, false, "NO_COLOR=1", true},
		{ColorNever, true, "CLICOLOR_FORCE=1", false},
	}
	for _, tt := range tests {
		if got := tt.mode.On(tt.tty, environ(tt.env)); got != tt.want {
			t.Errorf("%s, tty %v, %q: %v", tt.mode, tt.tty, tt.env, got)
		}
	}
}

func environ(pairs string) func(string) string {
	m := map[string]string{}
	for _, p := range strings.Fields(pairs) {
		k, v, _ := strings.Cut(p, "=")
		m[k] = v
	}
	return func(name string) string { return m[name] }
}

func TestStreamsDecideOnce(t *testing.T) {
	s, _, _, _ := Test()
	s.SetTTY(true, true, false)
	s.Decide(ColorAuto, false, environ("LANG=en_US.UTF-8"))
	if got := s.OutStyle().Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("stdout: %q", got)
	}
	if got := s.ErrStyle().Bad("x"); got != "x" {
		t.Errorf("stderr is no terminal: %q", got)
	}
	if s.ASCII() {
		t.Error("ASCII in a UTF-8 locale")
	}
	s.Decide(ColorAuto, false, environ("LC_ALL=C LANG=en_US.UTF-8"))
	if !s.ASCII() {
		t.Error("LC_ALL=C draws glyphs")
	}
	if cols, rows := s.Size(); cols != DefaultWidth || rows != 24 {
		t.Errorf("size %d×%d", cols, rows)
	}
	f := s.WithOut(new(strings.Builder))
	if f.IsOutTTY() || f.OutStyle().On() {
		t.Error("a redirected stream is still a terminal")
	}
}
