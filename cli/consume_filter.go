package cli

import (
	"regexp"
	"strings"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// recordFilter is -k, -H, --grep and --where together.
type recordFilter struct {
	key     []byte
	headers []headerFilter
	grep    *regexp.Regexp
	where   *term.Query
}

type headerFilter struct {
	key, value string
	any        bool
}

func newRecordFilter(raw consumeFlags, changed func(string) bool) (f recordFilter, err error) {
	if changed("key") {
		f.key = []byte(raw.key)
	}
	for _, h := range raw.headers {
		k, v, ok := strings.Cut(h, "=")
		if k == "" {
			return f, usagef("-H %q is not k=v", h)
		}
		f.headers = append(f.headers, headerFilter{k, v, !ok})
	}
	if raw.grep != "" {
		if f.grep, err = regexp.Compile(raw.grep); err != nil {
			return f, usagef("--grep %q: %v", raw.grep, err)
		}
	}
	if raw.where != "" {
		if f.where, err = term.CompileQuery(raw.where); err != nil {
			return f, flagValueError("where", err)
		}
	}
	return f, nil
}

func (f *recordFilter) match(m *sdk.Message, form binaryForm) (bool, error) {
	if f.key != nil && (m.Key == nil || string(m.Key) != string(f.key)) {
		return false, nil
	}
	for _, h := range f.headers {
		if !h.match(m.Headers) {
			return false, nil
		}
	}
	if f.grep != nil && !f.grep.Match(m.Key) && !f.grep.Match(m.Value) {
		return false, nil
	}
	if f.where == nil {
		return true, nil
	}
	return f.where.Truthy(whereDocument{newRecordDocument(m, form), jsonOf(m.Value)})
}

func (h headerFilter) match(headers []sdk.Header) bool {
	for _, got := range headers {
		if got.Key == h.key && (h.any || string(got.Value) == h.value) {
			return true
		}
	}
	return false
}
