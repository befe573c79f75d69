package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/itchyny/timefmt-go"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// recordFormat is a compiled -F: a Go template, or the short form of % letters.
type recordFormat struct {
	human term.Human
	tmpl  *template.Template
	parts []formatPart
}

// formatPart is literal text, or a field with an optional form: %v{hex}.
type formatPart struct {
	text  string
	field byte
	form  string
}

// templateRecord is what {{…}} can name.
type templateRecord struct {
	Topic   string
	Range   string
	Offset  int64
	Time    time.Time
	Key     string
	Value   string
	Headers []templateHeader
	Epoch   int32
	LagMs   int64 // from the record's time to now
}

type templateHeader struct{ Key, Value string }

// compileRecordFormat adds a newline unless the format ends in one: a record is a line.
func compileRecordFormat(text string, human term.Human) (*recordFormat, error) {
	f := &recordFormat{human: human}
	if strings.Contains(text, "{{") {
		plain, err := unescapeText(text)
		if err != nil {
			return nil, flagValueError("format", err)
		}
		f.tmpl, err = template.New("-F").Funcs(formatFuncs).Parse(withNewline(plain))
		if err != nil {
			return nil, usagef("-F: %v", err)
		}
		return f, nil
	}
	return f, f.compileShort(text)
}

func withNewline(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

var formatFuncs = template.FuncMap{
	"hex":      func(s string) string { return hex.EncodeToString([]byte(s)) },
	"b64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"json":     func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
	"strftime": func(layout string, t time.Time) string { return timefmt.Format(t, layout) },
	"pad":      func(n int, v any) string { return term.Pad(fmt.Sprint(v), n, false) },
	"trunc":    func(n int, s string) string { return term.Truncate(s, n, false) },
}

// shortForms are the forms in braces, by field; "" is the plain one.
var shortForms = map[byte][]string{
	't': {""}, 'r': {""}, 'o': {""}, 's': {""}, 'd': {"", "ms", "utc"},
	'k': {"", "hex", "b64", "json"}, 'v': {"", "hex", "b64", "json"}, 'h': {"", "json"},
}

func (f *recordFormat) compileShort(text string) error {
	plain, err := unescapeText(text)
	if err != nil {
		return flagValueError("format", err)
	}
	plain = withNewline(plain)
	var lit strings.Builder
	for i := 0; i < len(plain); i++ {
		if plain[i] != '%' {
			lit.WriteByte(plain[i])
			continue
		}
		if i++; i == len(plain)-1 && plain[i] == '\n' {
			return usagef("-F ends in a lone %%; write %%%% for a percent sign")
		}
		if plain[i] == '%' {
			lit.WriteByte('%')
			continue
		}
		p := formatPart{field: plain[i]}
		if i+1 < len(plain) && plain[i+1] == '{' {
			end := strings.IndexByte(plain[i:], '}')
			if end < 0 {
				return usagef("-F %q: a { is not closed", text)
			}
			p.form = plain[i+2 : i+end]
			i += end
		}
		if !slices.Contains(shortForms[p.field], p.form) {
			return usagef("-F %q: no such field %%%c%s", text, p.field, braced(p.form)).
				WithHint("fields are %%t topic, %%r range, %%o offset, %%d time, %%k key, %%v value, %%h headers, %%s value size; %%v{hex}, {b64}, {json}; see: eg-cli help formatting")
		}
		f.parts = append(f.parts, formatPart{text: lit.String()}, p)
		lit.Reset()
	}
	f.parts = append(f.parts, formatPart{text: lit.String()})
	return nil
}

func braced(form string) string {
	if form == "" {
		return ""
	}
	return "{" + form + "}"
}

// write prints one record. To a terminal the text is made harmless; into a pipe it goes as it is.
func (f *recordFormat) write(w *bufio.Writer, m *sdk.Message, tty bool) error {
	safe := func(s string) string {
		if tty {
			return term.EscapeLines(s)
		}
		return s
	}
	if f.tmpl == nil {
		for _, p := range f.parts {
			text := p.text
			if p.field != 0 {
				text = safe(f.field(p, m))
			}
			if _, err := w.WriteString(text); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	if err := f.tmpl.Execute(&b, f.templateRecord(m)); err != nil {
		return usagef("-F: %v", err)
	}
	_, err := w.WriteString(safe(b.String()))
	return err
}

func (f *recordFormat) templateRecord(m *sdk.Message) templateRecord {
	r := templateRecord{
		Topic: m.Topic, Range: m.Range.String(), Offset: m.Offset, Time: m.Timestamp, Key: string(m.Key), Value: string(m.Value),
		Epoch: int32(m.LeaderEpoch), LagMs: f.human.Now.Sub(m.Timestamp).Milliseconds(),
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, templateHeader{h.Key, string(h.Value)})
	}
	return r
}

func (f *recordFormat) field(p formatPart, m *sdk.Message) string {
	switch p.field {
	case 't':
		return m.Topic
	case 'r':
		return m.Range.String()
	case 'o':
		return itoa(m.Offset)
	case 's':
		return itoa(int64(len(m.Value)))
	case 'd':
		switch p.form {
		case "ms":
			return itoa(m.Timestamp.UnixMilli())
		case "utc":
			return m.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return f.human.Time.FormatStamp(m.Timestamp, f.human.Now)
	case 'k':
		return formatBytes(p.form, m.Key)
	case 'v':
		return formatBytes(p.form, m.Value)
	}
	pairs := make([]string, len(m.Headers))
	for i, h := range m.Headers {
		pairs[i] = h.Key + "=" + string(h.Value)
	}
	if p.form == "json" {
		return formatBytes("json", []byte(strings.Join(pairs, ",")))
	}
	return strings.Join(pairs, ",")
}

func formatBytes(form string, b []byte) string {
	switch form {
	case "hex":
		return hex.EncodeToString(b)
	case "b64":
		return base64.StdEncoding.EncodeToString(b)
	case "json":
		if b == nil {
			return "null"
		}
		text, err := json.Marshal(string(b))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return string(b)
}

// writePretty prints a record over several lines.
func writePretty(w *bufio.Writer, m *sdk.Message, h term.Human, style term.Style) error {
	head := fmt.Sprintf("@%d  %s  %s", m.Offset, h.Time.FormatDate(m.Timestamp, h.Now), m.Range)
	fmt.Fprintf(w, "%s  %s\n", style.Dim(head), style.Bold(shownOr(m.Key, "-")))
	for _, hd := range m.Headers {
		fmt.Fprintf(w, "  %s: %s\n", style.Info(term.Escape(hd.Key)), shownOr(hd.Value, "<null>"))
	}
	var b bytes.Buffer
	text := shownOr(m.Value, "<null>")
	if json.Valid(m.Value) && json.Indent(&b, m.Value, "  ", "  ") == nil {
		text = term.EscapeLines(b.String())
	}
	_, err := fmt.Fprintf(w, "  %s\n", text)
	return err
}

// whereDocument is what --where sees: the record, and its value parsed when it is JSON.
type whereDocument struct {
	recordDocument
	JSON json.RawMessage `json:"json"`
}

func jsonOf(value []byte) json.RawMessage {
	if json.Valid(value) {
		return value
	}
	return json.RawMessage("null")
}

// sortByTime orders what was read by timestamp; records of one time stay as they came.
func sortByTime(messages []sdk.Message) {
	slices.SortStableFunc(messages, func(a, b sdk.Message) int { return a.Timestamp.Compare(b.Timestamp) })
}
