package app

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/eastguard/eastguard/sdk"
)

// maxPattern bounds what can be typed as a filter.
const maxPattern = 256

// Filter narrows a table to the rows whose text it matches: a regular expression; with "!" in front, those that it
// does not match; with "-f " in front, those that have its letters in their order. Small letters match capital ones
// too. The zero Filter matches everything.
type Filter struct {
	text   string
	invert bool
	fuzzy  string
	re     *regexp.Regexp
}

// ParseFilter reads what was typed behind "/".
func ParseFilter(text string) (Filter, error) {
	f := Filter{text: strings.TrimSpace(text)}
	if len(f.text) > maxPattern {
		return Filter{}, invalid("a filter has %d bytes at most", maxPattern)
	}
	rest := f.text
	if after, ok := strings.CutPrefix(rest, "!"); ok {
		f.invert, rest = true, strings.TrimSpace(after)
	}
	if after, ok := strings.CutPrefix(rest, "-f "); ok {
		f.fuzzy = strings.TrimSpace(after)
		return f, nil
	}
	if rest == "" || rest == "-f" {
		return Filter{}, nil
	}
	if !strings.ContainsFunc(rest, unicode.IsUpper) {
		rest = "(?i)" + rest
	}
	re, err := regexp.Compile(rest)
	if err != nil {
		return Filter{}, invalid("no regular expression: %s", faultOf(err))
	}
	f.re = re
	return f, nil
}

// faultOf is what is wrong with a regular expression, without what was put in front of it here.
func faultOf(err error) string {
	var fault *syntax.Error
	switch {
	case !errors.As(err, &fault):
		return err.Error()
	case fault.Code == syntax.ErrMissingParen || fault.Code == syntax.ErrUnexpectedParen: // they tell of all of it
		return fault.Code.String()
	}
	return fault.Code.String() + " " + fault.Expr
}

// String is what was typed.
func (f Filter) String() string { return f.text }

// Match reports whether a row of this text stays.
func (f Filter) Match(s string) bool {
	switch {
	case f.fuzzy != "":
		_, ok := fuzzyScore(f.fuzzy, s)
		return ok != f.invert
	case f.re != nil:
		return f.re.MatchString(s) != f.invert
	}
	return true
}

// fuzzyScore says how well text has the letters of pattern in their order; less is better. What is found at the
// beginning of a word, and in one piece, is better.
func fuzzyScore(pattern, text string) (score int, ok bool) {
	want := []rune(strings.ToLower(pattern))
	at, last, before := 0, -1, ' '
	for i, r := range text {
		if at == len(want) {
			break
		}
		if unicode.ToLower(r) == want[at] {
			switch {
			case last >= 0 && i == last+1:
			case !unicode.IsLetter(before) && !unicode.IsDigit(before):
				score++
			default:
				score += 3 + min(i, 20)
			}
			last = i
			at++
		}
		before = r
	}
	return score + len(text)/8, at == len(want)
}

func invalid(format string, args ...any) *sdk.Error {
	return failure(sdk.CodeInvalidArgument, format, args...)
}
