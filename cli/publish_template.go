package cli

import (
	"io"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// templateSource makes -n records by expanding key and value.
type templateSource struct {
	o          *publishOptions
	key, value *template.Template
	n          int64
	rng        *rand.Rand
}

// templateData is what {{…}} can name.
type templateData struct {
	Count int64     // from 1
	Time  time.Time // now
	rng   *rand.Rand
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Random is a text of least to most random letters and digits; with one number exactly so many.
func (d templateData) Random(least int, most ...int) (string, error) {
	n := least
	if len(most) > 0 && most[0] > least {
		n += d.rng.IntN(most[0] - least + 1)
	}
	if n < 0 || n > 16<<20 {
		return "", usagef("{{.Random}} takes lengths from 0 to 16777216")
	}
	var b strings.Builder
	b.Grow(n)
	for range n {
		b.WriteByte(letters[d.rng.IntN(len(letters))])
	}
	return b.String(), nil
}

// Int is a random number below n.
func (d templateData) Int(n int64) (int64, error) {
	if n < 1 {
		return 0, usagef("{{.Int}} takes a number from 1")
	}
	return d.rng.Int64N(n), nil
}

func newTemplateSource(o *publishOptions) (*templateSource, error) {
	s := &templateSource{o: o, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	var err error
	if s.key, err = template.New("key").Parse(string(o.key)); err != nil {
		return nil, usagef("the key's template: %v", err)
	}
	if s.value, err = template.New("value").Parse(o.value); err != nil {
		return nil, usagef("the value's template: %v", err)
	}
	return s, nil
}

func (s *templateSource) next() (sdk.Record, error) {
	if s.n == s.o.count {
		return sdk.Record{}, io.EOF
	}
	s.n++
	data := templateData{Count: s.n, Time: s.o.Now(), rng: s.rng}
	key, err := expand(s.key, data)
	if err != nil {
		return sdk.Record{}, err
	}
	value, err := expand(s.value, data)
	if err != nil {
		return sdk.Record{}, err
	}
	r := *s.o.record(value)
	r.Key = key
	return r, nil
}

func expand(t *template.Template, data templateData) ([]byte, error) {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return nil, usagef("the template: %v", err)
	}
	return []byte(b.String()), nil
}
