package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func renderJSON(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := (&term.Output{W: &b, Format: term.FormatJSONL}).Object(v, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestParseStart(t *testing.T) {
	tests := map[string]startForm{
		"earliest":           {kind: startEarliest},
		"latest":             {kind: startLatest},
		"10":                 {kind: startOffset, n: 10},
		"+10":                {kind: startAfter, n: 10},
		"-10":                {kind: startBefore, n: 10},
		"@-10m":              {kind: startTime, time: testNow.Add(-10 * time.Minute)},
		"@2026-11-29T12:00Z": {kind: startTime, time: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)},
		"r41:1200":           {kind: startRange, at: sdk.Position{Range: 41, Offset: 1200}},
	}
	for text, want := range tests {
		got, err := parseStart(text, testNow)
		want.text = text
		if err != nil || got != want {
			t.Errorf("%q = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ten", "-", "+", "--5", "r:5", "r1:", "r1:-5", "rx:5", "@", "@soon", "1.5", "committed", "9223372036854775808"} {
		if got, err := parseStart(text, testNow); ExitCode(err) != ExitUsage {
			t.Errorf("%q = %+v, %v; want a usage error", text, got, err)
		}
	}
}

func TestStartWithin(t *testing.T) {
	first := sdk.Position{Range: 1, Offset: 100}
	tests := []struct {
		text  string
		alone bool
		want  int64 // -1 = out of range
	}{
		{"150", true, 150},
		{"100", true, 100},
		{"200", true, 200},
		{"99", true, -1},
		{"201", true, -1},
		{"99", false, 100},
		{"999", false, 200},
		{"+10", true, 110},
		{"+999", true, 200},
		{"-10", true, 190},
		{"-999", true, 100},
		{"r1:120", true, 120},
		{"r1:1200", true, -1},
	}
	for _, tt := range tests {
		s, err := parseStart(tt.text, testNow)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.within(first, 200, tt.alone)
		if tt.want < 0 && ExitCode(err) != ExitNotFound || tt.want >= 0 && (err != nil || got.Offset != tt.want) {
			t.Errorf("%s of several %v: %v, %v; want %d", tt.text, !tt.alone, got, err, tt.want)
		}
	}
}

func TestConsumeOutput(t *testing.T) {
	null := message(1, "", "")
	null.Key, null.Value = nil, nil
	messages := [][]sdk.Message{{message(0, "user123", "Hello EastGuard!"), null, message(2, "", "")}}
	for _, tty := range []bool{true, false} {
		c := &fakeConsumer{batches: messages, err: errEnd}
		out, errs, err := run(t, &fakeClient{consumer: c, admin: &fakeAdmin{topics: topicsOf("my_topic")}}, "", tty, nil, "consume", "my_topic", "earliest", "10", "--time", "utc")
		want := "@0  12:04:31.207Z  r1  user123  Hello EastGuard!\n@1  12:04:31.207Z  r1  -  <null>\n@2  12:04:31.207Z  r1  \"\"  \"\"\n"
		if err != nil || out != want || errs != "3 records, caught up (asked for up to 10). -f to follow.\n" || !c.closed {
			t.Errorf("tty %v: %v\n got  %q %q\n want %q", tty, err, out, errs, want)
		}
	}
}

func TestConsumeEnds(t *testing.T) {
	batch := func() [][]sdk.Message {
		return [][]sdk.Message{{message(0, "a", "1"), message(1, "b", "2")}, {message(2, "a", "3")}}
	}
	tests := map[string]struct {
		args  string
		err   error // of the consumer, after its messages; nil = it waits
		shown string
		note  string
		exit  int
	}{
		"caught up":        {"t", errEnd, "1 2 3", "3 records, caught up. -f to follow.", 0},
		"count":            {"t earliest 2", errEnd, "1 2", "2 records, as asked.", 0},
		"count by flag":    {"t -n 1", errEnd, "1", "1 record, as asked.", 0},
		"time is up":       {"t -f -t 0.05", nil, "1 2 3", "3 records, the time is up.", 0},
		"idle":             {"t -f --idle 50ms", nil, "1 2 3", "3 records, nothing new for 50ms.", 0},
		"key":              {"t -k a", errEnd, "1 3", "2 of 3 records read, caught up. -f to follow.", 0},
		"expected":         {"t --expect 3", errEnd, "1 2 3", "3 records, caught up", 0},
		"not expected":     {"t --expect 4", errEnd, "1 2 3", "3 came, 4 expected", 12},
		"too many":         {"t --expect 2", errEnd, "1 2 3", "3 records came, 2 expected", 12},
		"expected, follow": {"t -f --expect 2", nil, "1 2", "2 records, as expected.", 0},
		"expected too few": {"t -f --expect 9 -t 0.05", nil, "1 2 3", "9 expected", 12},
		"until an offset":  {"t -f --until 2", nil, "1 2", "2 records, as far as asked.", 0},
		"fails":            {"t", errorf(sdk.CodeCorruptData, "block 7"), "1 2 3", "error: block 7 [CORRUPT_DATA]", 9},
		"quiet":            {"t -q", errEnd, "1 2 3", "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &fakeConsumer{batches: batch(), err: tt.err}
			args := append([]string{"consume"}, strings.Fields(tt.args)...)
			out, errs, err := run(t, &fakeClient{consumer: c}, "", false, nil, append(args, "-F", "%v")...)
			note := strings.ReplaceAll(tt.note, "3 came", "3 records came")
			if ExitCode(err) != tt.exit || strings.Join(strings.Fields(out), " ") != tt.shown || !strings.Contains(errs, note) {
				t.Errorf("exit %d\n out  %q\n errs %q", ExitCode(err), out, errs)
			}
			if name == "quiet" && errs != "" {
				t.Errorf("-q says %q", errs)
			}
		})
	}
}

func TestConsumeOrderTime(t *testing.T) {
	late, early := message(0, "k", "late"), message(1, "k", "early")
	early.Timestamp = early.Timestamp.Add(-time.Minute)
	c := &fakeConsumer{batches: [][]sdk.Message{{late, early}}, err: errEnd}
	out, _, err := run(t, &fakeClient{consumer: c}, "", false, nil, "consume", "t", "--order", "time", "-F", "%v")
	if err != nil || out != "early\nlate\n" {
		t.Errorf("%v: %q", err, out)
	}
}

func TestConsumeMachineNote(t *testing.T) {
	c := &fakeConsumer{batches: [][]sdk.Message{{message(0, "k", "v")}}, err: errEnd}
	out, errs, err := run(t, &fakeClient{consumer: c}, "", false, nil, "consume", "t", "-o", "json")
	var doc map[string]any
	if err != nil || errs != "" || json.Unmarshal([]byte(out), &doc) != nil || doc["key"] != "k" {
		t.Errorf("%v: %q %q", err, out, errs)
	}
}

func TestRecordFormat(t *testing.T) {
	m := message(7, "k\x1b", "v\xff")
	m.Headers = []sdk.Header{{Key: "a", Value: []byte("1")}, {Key: "b"}}
	human := term.Human{Time: term.TimeUTC, Now: testNow.Add(2 * time.Second)}
	tests := map[string]struct {
		format string
		tty    bool
		want   string
	}{
		"plain":         {"%o %k=%v", false, "7 k\x1b=v\xff\n"},
		"on a terminal": {"%o %k=%v", true, "7 k\\x1b=v\\xff\n"},
		"all":           {`%t|%r|%d{ms}|%d{utc}|%h|%s|%%`, false, "t|r1|1795953871207|2026-11-29T12:04:31.207Z|a=1,b=|2|%\n"},
		"forms":         {"%k{hex} %v{b64} %k{json}", false, "6b1b dv8= \"k\\u001b\"\n"},
		"own newline":   {`%o\n`, false, "7\n"},
		"escapes":       {`%o\t\x41\u00e9`, false, "7\tAé\n"},
		"template":      {`{{.Offset}} {{.Range}} {{.Value | hex}} {{.LagMs}} {{len .Headers}}`, false, "7 r1 76ff 2000 2\n"},
		"strftime":      {`{{strftime "%Y-%m-%d" .Time}}|{{pad 6 .Range}}|{{trunc 3 "abcdef"}}`, false, "2026-11-29|r1    |ab…\n"},
		"template, tty": {`{{.Key}}`, true, "k\\x1b\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := compileRecordFormat(tt.format, human)
			if err != nil {
				t.Fatal(err)
			}
			if got := written(t, f, &m, tt.tty); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"%q", "%v{zip}", "%v{hex", "100%", `\q`, "{{.Nope", "{{.Nope}}"} {
		f, err := compileRecordFormat(bad, human)
		if err == nil {
			var b bytes.Buffer
			err = f.write(newWriter(&b), &m, false)
		}
		if ExitCode(err) != ExitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Whoever waits is told of a broker that is away for longer than a restart takes, of a range that no replica gives, and
// of the end of it.
func TestFollowTellsWhyNothingComes(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		away time.Duration
		want string
	}{
		"a restart":    {errorf(sdk.CodeUnreachable, "refused"), 1500 * time.Millisecond, "0 records, the time is up.\n"},
		"lost":         {errorf(sdk.CodeUnreachable, "refused"), 5 * time.Second, "no broker answers (refused); trying again\nconnected again\n0 records, the time is up.\n"},
		"a roll":       {errorf(sdk.CodeBehind, "behind"), 3 * time.Second, "0 records, the time is up.\n"},
		"no copy left": {errorf(sdk.CodeNotReplica, "t/r1@7: no copy"), 7 * time.Second, "a range cannot be read at present (t/r1@7: no copy); trying again\nall ranges are read again\n0 records, the time is up.\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			c := &fakeConsumer{last: func() error {
				if at := time.Since(start); at > time.Second && at < time.Second+tt.away {
					return tt.err
				}
				return nil
			}}
			_, errs, err := run(t, &fakeClient{consumer: c}, "", true, nil, "consume", "t", "-f", "-t", "10")
			if err != nil || errs != tt.want {
				t.Errorf("%s: %v\n%s", name, err, errs)
			}
		})
	}
}
