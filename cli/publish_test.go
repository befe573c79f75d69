package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eastguard/eastguard/sdk"
)

func TestPublishOne(t *testing.T) {
	for _, tty := range []bool{true, false} {
		p := &fakeProducer{}
		out, errs, err := run(t, &fakeClient{producer: p}, "ignored", tty, nil, "publish", "my_topic", "user123", "Hello EastGuard!")
		want := "my_topic r1 @0  key=user123  16 B  acked by n1 n2 n3  0.00 ms\n"
		if err != nil || out != want || errs != "" || !p.closed {
			t.Errorf("tty %v: %v\n got  %q %q\n want %q", tty, err, out, errs, want)
		}
	}
}

func TestPublishOneAsCSV(t *testing.T) {
	out, errs, err := run(t, &fakeClient{producer: &fakeProducer{}}, "", false, nil, "publish", "t", "k", "v", "-o", "csv")
	if want := "topic,range,offset,key,value_bytes,segment,acked_by,took_ms\nt,r1,0,k,1,s5,n1 n2 n3,0\n"; err != nil || out != want {
		t.Errorf("%v %q\n got  %q\n want %q", err, errs, out, want)
	}
}

// A record that an earlier try had stored may lie in a segment that whoever answers knows nothing of. Its copies do.
func TestPublishNamesWhoHoldsADuplicate(t *testing.T) {
	p := &fakeProducer{ack: func(a *sdk.Ack) { a.Replicas, a.Segment, a.Offset = nil, 0, 150 }}
	admin := &fakeAdmin{topics: topicsOf("t")}
	out, errs, err := run(t, &fakeClient{producer: p, admin: admin}, "", false, nil, "publish", "t", "k", "v")
	if err != nil || !strings.Contains(out, "acked by n1 n2 n3  ") {
		t.Errorf("%v %q %q", err, out, errs)
	}
	out, errs, err = run(t, &fakeClient{producer: p, admin: admin}, "a\nb\n", false, nil, "publish", "t", "-o", "jsonl")
	if err != nil || strings.Count(out, `"segment":"s4","acked_by":["n1","n2","n3"]`) != 2 {
		t.Errorf("%v %q %q", err, out, errs)
	}
	if len(admin.listed) != 2 {
		t.Errorf("asked %d times: once a command is enough for one batch", len(admin.listed))
	}
	p.ack = func(a *sdk.Ack) { a.Replicas, a.Offset = nil, 1 } // trimmed since
	if out, errs, err = run(t, &fakeClient{producer: p, admin: admin}, "", false, nil, "publish", "t", "k", "v"); err != nil || !strings.Contains(out, "acked by -  ") {
		t.Errorf("%v %q %q", err, out, errs)
	}
}

func TestPublishArgumentsToRecord(t *testing.T) {
	tests := map[string]struct {
		args []string
		want sdk.Record
	}{
		"literal":   {[]string{"k", "{{.Count}}"}, sdk.Record{Key: []byte("k"), Value: []byte("{{.Count}}")}},
		"empty":     {[]string{"", ""}, sdk.Record{Key: []byte{}, Value: []byte{}}},
		"tombstone": {[]string{"k", "--tombstone"}, sdk.Record{Key: []byte("k")}},
		"headers": {[]string{"k", "v", "-H", "a=1", "-H", "a=", "-H", "b=x=y"}, sdk.Record{
			Key: []byte("k"), Value: []byte("v"), Headers: []sdk.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte{}}, {Key: "b", Value: []byte("x=y")}},
		}},
		"routing": {[]string{"k", "v", "--routing-key", "r", "--timestamp", "-10m"}, sdk.Record{
			Key: []byte("k"), Value: []byte("v"), RoutingKey: []byte("r"), Timestamp: testNow.Add(-600e9),
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &fakeProducer{}
			if _, errs, err := run(t, &fakeClient{producer: p}, "", false, nil, append([]string{"publish", "t"}, tt.args...)...); err != nil {
				t.Fatal(err, errs)
			}
			if diff := cmp.Diff([]sdk.Record{tt.want}, p.sent); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPublishStdin(t *testing.T) {
	tests := map[string]struct {
		in   string
		args []string
		want string // key=value of each record, . for null
	}{
		"lines":              {"a\nb\n", nil, ".=a .=b"},
		"no last newline":    {"a\nb", nil, ".=a .=b"},
		"empty lines":        {"a\n\nb\n", nil, ".=a .= .=b"},
		"nothing":            {"", nil, ""},
		"one key":            {"a\nb\n", []string{"-k", "x"}, "x=a x=b"},
		"pairs":              {"k1:v1\nk2:v:2\n:v3\n", []string{"-K", ":"}, "k1=v1 k2=v:2 =v3"},
		"long delimiters":    {"k1=>v1--k2=>v2--", []string{"-K", "=>", "-D", "--"}, "k1=v1 k2=v2"},
		"escaped delimiter":  {"a\x00b\x00", []string{"-D", `\0`}, ".=a .=b"},
		"delimiter's head":   {"a-b--c", []string{"-D", "--"}, ".=a-b .=c"},
		"bytes":              {"a\nb\n", []string{"--in", "bytes"}, ".=a\nb\n"},
		"jsonl":              {`{"key":"k","value":"v"}` + "\n\n" + `{"value":null}` + "\n", []string{"--in", "jsonl"}, "k=v .=."},
		"jsonl, flag fills":  {`{"value":"v"}` + "\n" + `{"key":null,"value":"v"}` + "\n" + `{"key":"","value":""}`, []string{"--in", "jsonl", "-k", "x"}, "x=v .=v ="},
		"jsonl, base64":      {`{"key_b64":"//4=","value_hex":"00"}`, []string{"--in", "jsonl"}, "\xff\xfe=\x00"},
		"format":             {"1|k1|v1\n2|k2|v2\n", []string{"--in", "%-|%k|%v"}, "k1=v1 k2=v2"},
		"format with end":    {"<k1:v1><k2:v2>", []string{"--in", "<%k:%v>"}, "k1=v1 k2=v2"},
		"template":           {"", []string{"k{{.Count}}", "v", "-n", "3"}, "k1=v k2=v k3=v"},
		"template, no stdin": {"x\n", []string{"k", "{{.Count}}", "-n", "1"}, "k=1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &fakeProducer{}
			if _, errs, err := run(t, &fakeClient{producer: p}, tt.in, false, nil, append([]string{"publish", "t"}, tt.args...)...); err != nil {
				t.Fatal(err, errs)
			}
			var got []string
			for _, r := range p.sent {
				got = append(got, orDot(r.Key)+"="+orDot(r.Value))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func orDot(b []byte) string {
	if b == nil {
		return "."
	}
	return string(b)
}

func TestPublishSummary(t *testing.T) {
	fail := func(n int, r sdk.Record) error {
		if string(r.Value) == "bad" {
			return errorf(sdk.CodeRecordTooLarge, "too large")
		}
		return nil
	}
	tests := map[string]struct {
		args      []string
		exit      int
		out, errs string
	}{
		"stops":     {nil, 2, "t  1 record  1 B  r1 @0  0.00 ms  1 failure\n", "error: too large [RECORD_TOO_LARGE]"},
		"goes on":   {[]string{"--continue-on-error"}, 8, "t  2 records  2 B  r1 @0..@1  0.00 ms  1 failure\n", "1 of 3 records failed"},
		"as jsonl":  {[]string{"--continue-on-error", "-o", "jsonl"}, 8, `"record":3`, `t  2 records`},
		"quiet":     {[]string{"--continue-on-error", "-o", "jsonl", "-q"}, 8, `"record":1`, `{"error":{"code":"PARTIAL"`},
		"csv":       {[]string{"--continue-on-error", "-o", "csv"}, 8, "topic,range,offset,key,value_bytes,segment,acked_by,took_ms\nt,r1,0,,1,s5,n1 n2 n3,0\n", ""},
		"jq offset": {[]string{"--continue-on-error", "--jq", ".offset"}, 8, "0\n1\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, err := run(t, &fakeClient{producer: &fakeProducer{fail: fail}}, "a\nbad\nb\n", false, nil, append([]string{"publish", "t"}, tt.args...)...)
			if ExitCode(err) != tt.exit || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
				t.Errorf("exit %d\n out  %q\n errs %q", ExitCode(err), out, errs)
			}
		})
	}
}

func TestDelimitedAtAnyChunking(t *testing.T) {
	text := "one--two--three-four--"
	for _, delim := range []string{"--", "e--", "-"} {
		want := strings.Split(strings.TrimSuffix(text, delim), delim)
		for size := 16; size < 40; size += 3 {
			d := &delimited{r: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), size), delim: []byte(delim)}
			var got []string
			for {
				part, err := d.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(part))
			}
			if delim == "e--" {
				want = []string{"on", "two--three-four--"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q, buffer %d (-want +got)\n%s", delim, size, diff)
			}
		}
	}
}

// FuzzRecordJSON checks that the lossless pipe is one: what consume prints, publish reads back the same.
func FuzzRecordJSON(f *testing.F) {
	f.Add([]byte("k"), []byte("v"), []byte("h"), []byte("r"), true, true)
	f.Add([]byte{}, []byte{0xff}, []byte("\u202e\x1b"), []byte{0xfe}, false, true)
	f.Add([]byte("k"), []byte("v"), []byte{}, []byte{}, false, false)
	f.Fuzz(func(t *testing.T, key, value, header, routing []byte, keyNull, valueNull bool) {
		m := sdk.Message{Range: 1}
		m.Key, m.Value, m.Timestamp = key, value, testNow
		m.Headers = []sdk.Header{{Key: "h", Value: header}, {Key: "null"}}
		if keyNull {
			m.Key = nil
		}
		if valueNull {
			m.Value = nil
		}
		if len(routing)%2 == 1 {
			m.RoutingKey = routing
		}
		for _, form := range []binaryForm{binaryAuto, binaryB64, binaryHex} {
			line := renderJSON(t, newRecordDocument(&m, form))
			r, err := parseRecordJSON(line, sdk.Record{Key: []byte("not used")})
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			want := sdk.Record{Key: m.Key, Value: m.Value, Headers: m.Headers, Timestamp: m.Timestamp, RoutingKey: m.RoutingKey}
			if diff := cmp.Diff(want, r, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", line, diff)
			}
		}
	})
}

func TestParseRecordJSONErrors(t *testing.T) {
	for _, line := range []string{
		``, `[]`, `{`, `{"key":1}`, `{"key_b64":"*"}`, `{"value_hex":"0"}`, `{"timestamp":"soon"}`, `{"headers":[1]}`, `{"headers":{"a":1}}`,
	} {
		if r, err := parseRecordJSON([]byte(line), sdk.Record{}); err == nil {
			t.Errorf("%s = %+v, want an error", line, r)
		}
	}
}

func TestInFormatErrors(t *testing.T) {
	for _, f := range []string{"%q", "%k%v", "text", `%k\q%v`} {
		if _, err := compileInFormat(f); err == nil {
			t.Errorf("%q compiles", f)
		}
	}
}

// A file without an end is refused like such an input, not read until the memory is full.
func TestPublishBoundsTheValueFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, maxInputRecord+1); err != nil {
		t.Fatal(err)
	}
	p := &fakeProducer{}
	_, errs, err := run(t, &fakeClient{producer: p}, "", false, nil, "publish", "t", "k", "--value-file", name)
	if sdk.CodeOf(err) != sdk.CodeRecordTooLarge || len(p.sent) > 0 || !strings.Contains(errs, "sparse") {
		t.Errorf("%v %q, %d sent", err, errs, len(p.sent))
	}
}
