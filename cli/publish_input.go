package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// maxInputRecord bounds what is held of a record while it is read: the most a broker can be set to accept.
const maxInputRecord = 64 << 20

// recordSource gives records one after the other; io.EOF ends it. An inputError is about one record and leaves the
// source usable.
type recordSource interface {
	next() (sdk.Record, error)
}

// inputError is about one record of the input. Its error names the record.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// source chooses how records come: made from the template, or read from stdin.
func (o *publishOptions) source(ctx context.Context) (recordSource, error) {
	if o.count > 0 {
		return newTemplateSource(o)
	}
	in := &delimited{r: bufio.NewReaderSize(term.Interruptible(ctx, o.io.In), 256<<10), delim: []byte(o.recDelim)}
	switch o.in {
	case "bytes":
		return &wholeSource{o: o, r: in.r}, nil
	case "jsonl":
		in.delim = []byte("\n")
		return &parsedSource{in: in, skipBlank: true, parse: o.parseJSONL}, nil
	case "lines":
		return &parsedSource{in: in, parse: o.parseLine}, nil
	}
	format, err := compileInFormat(o.in)
	if err != nil {
		return nil, err
	}
	if format.end != "" {
		in.delim = []byte(format.end)
	}
	return &parsedSource{in: in, parse: func(text []byte) (sdk.Record, error) { return o.parseFormat(format, text) }}, nil
}

// delimited cuts a stream at a delimiter. The text returned is the caller's.
type delimited struct {
	r     *bufio.Reader
	delim []byte
}

func (d *delimited) next() ([]byte, error) {
	last := d.delim[len(d.delim)-1]
	var text []byte
	for {
		part, err := d.r.ReadSlice(last)
		text = append(text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull), err == nil && !bytes.HasSuffix(text, d.delim):
			if len(text) > maxInputRecord {
				return nil, errorf(sdk.CodeRecordTooLarge, "a record of the input is larger than %d MiB", maxInputRecord>>20).
					WithHint("check the record delimiter (-D)")
			}
		case err == nil:
			return text[:len(text)-len(d.delim)], nil
		case errors.Is(err, io.EOF) && len(text) > 0:
			return text, nil
		default:
			return nil, err
		}
	}
}

// parsedSource makes a record of each piece of text.
type parsedSource struct {
	in        *delimited
	parse     func(text []byte) (sdk.Record, error)
	skipBlank bool
	n         int64
}

func (s *parsedSource) next() (sdk.Record, error) {
	for {
		text, err := s.in.next()
		if err != nil {
			return sdk.Record{}, err
		}
		s.n++
		if s.skipBlank && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		r, err := s.parse(text)
		if err != nil {
			d := describe(err)
			return r, &inputError{usagef("record %d: %s", s.n, d.Message).WithHint("%s", d.Hint)}
		}
		return r, nil
	}
}

// parseLine makes a record of a line. A delimiter splits key and value at its first occurrence.
func (o *publishOptions) parseLine(line []byte) (sdk.Record, error) {
	r := *o.record(line)
	if o.keyDelim != "" {
		key, value, ok := bytes.Cut(line, []byte(o.keyDelim))
		if !ok {
			return r, usagef("no key delimiter %q", o.keyDelim)
		}
		r.Key, r.Value = key, value
	}
	return r, nil
}

// parseJSONL reads a record's JSON; the flags fill what it leaves out.
func (o *publishOptions) parseJSONL(line []byte) (sdk.Record, error) {
	r, err := parseRecordJSON(line, sdk.Record{Key: o.key, RoutingKey: o.routingKey, Timestamp: o.timestamp})
	r.Headers = append(r.Headers, o.headers...)
	return r, err
}

// wholeSource takes all of stdin as one value.
type wholeSource struct {
	o    *publishOptions
	r    io.Reader
	done bool
}

func (s *wholeSource) next() (sdk.Record, error) {
	if s.done {
		return sdk.Record{}, io.EOF
	}
	s.done = true
	value, err := readValue(s.r, "the input")
	return *s.o.record(value), err
}

// readValue reads all of what as one value, and no more of it than a broker may accept.
func readValue(r io.Reader, what string) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(r, maxInputRecord+1))
	if err == nil && len(value) > maxInputRecord {
		return nil, errorf(sdk.CodeRecordTooLarge, "%s is larger than %d MiB, which no broker accepts as one record", what, maxInputRecord>>20)
	}
	return value, err
}

// inFormat is a compiled --in format: fields with literal text between them, and the text that ends a record.
type inFormat struct {
	fields []byte   // k, v, d or -
	seps   []string // seps[i] stands between fields i and i+1; the text before the first field is lead
	lead   string
	end    string
}

// compileInFormat reads a format such as "%k:%v\n". %% is a percent sign, %- skips a field.
func compileInFormat(text string) (inFormat, error) {
	var f inFormat
	var lit strings.Builder
	plain, err := unescapeText(text)
	if err != nil {
		return f, flagValueError("in", err)
	}
	for i := 0; i < len(plain); i++ {
		if plain[i] != '%' || i+1 == len(plain) {
			lit.WriteByte(plain[i])
			continue
		}
		i++
		switch c := plain[i]; c {
		case '%':
			lit.WriteByte('%')
		case 'k', 'v', 'd', '-':
			if len(f.fields) == 0 {
				f.lead = lit.String()
			} else {
				if lit.Len() == 0 {
					return f, usagef("--in %q: two fields need text between them", text)
				}
				f.seps = append(f.seps, lit.String())
			}
			lit.Reset()
			f.fields = append(f.fields, c)
		default:
			return f, usagef("--in %q: %%%c is not one of %%k %%v %%d %%-", text, c)
		}
	}
	f.end = lit.String()
	if len(f.fields) == 0 {
		return f, usagef("--in %q has no field: use %%k, %%v or %%d", text)
	}
	return f, nil
}

func (o *publishOptions) parseFormat(f inFormat, text []byte) (sdk.Record, error) {
	r := *o.record([]byte{})
	rest, ok := bytes.CutPrefix(text, []byte(f.lead))
	if !ok {
		return r, usagef("it does not begin with %q", f.lead)
	}
	for i, field := range f.fields {
		part := rest
		if i < len(f.seps) {
			if part, rest, ok = bytes.Cut(rest, []byte(f.seps[i])); !ok {
				return r, usagef("%q is missing", f.seps[i])
			}
		}
		switch field {
		case 'k':
			r.Key = part
		case 'v':
			r.Value = part
		case 'd':
			t, err := parseJSONTime(part)
			if err != nil {
				return r, err
			}
			r.Timestamp = t
		}
	}
	return r, nil
}
