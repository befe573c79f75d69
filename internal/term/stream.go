package term

import (
	"bufio"
	"reflect"
)

// Stream prints values one at a time, each complete before Item returns it to the buffer; Flush when the
// source pauses, so that a pipe sees records as they come without a write for each.
type Stream struct {
	o     *Output
	w     *bufio.Writer
	query *Query
	cols  []column
	items int
}

// Stream begins a stream on o's writer. Formats that need all rows (sorting) do not apply.
func (o *Output) Stream() (*Stream, error) {
	s := &Stream{o: o, w: bufio.NewWriterSize(o.W, 64<<10)}
	if o.JQ != "" {
		q, err := CompileQuery(o.JQ)
		if err != nil {
			return nil, err
		}
		s.query = q
	}
	return s, nil
}

// Text is the writer for items in the human form, for those that do not go through Item.
func (s *Stream) Text() *bufio.Writer { return s.w }

// Item prints v: as one JSON object on a line, a YAML document, a CSV line, or what text says.
func (s *Stream) Item(v any, text func(*bufio.Writer) error) error {
	s.items++
	switch o := s.o; {
	case s.query != nil:
		return s.query.Run(v, func(result any) error {
			if str, ok := result.(string); ok {
				_, err := s.w.WriteString(o.harmless(str) + "\n")
				return err
			}
			return o.writeJSON(s.w, result, false)
		})
	case !o.Machine():
		return text(s.w)
	case o.Format == FormatCSV, o.Format == FormatTSV, o.Format == FormatName:
		return s.cells(v)
	default:
		return o.object(s.w, v, nil, false)
	}
}

// cells prints a line of CSV or TSV, the header before the first.
func (s *Stream) cells(v any) error {
	rv := reflect.Indirect(reflect.ValueOf(v))
	if s.cols == nil {
		cols, err := s.o.choose(columnsOf(rv.Type()))
		if err != nil {
			return err
		}
		s.cols = cols
	}
	rows := reflect.Append(reflect.MakeSlice(reflect.SliceOf(rv.Type()), 0, 1), rv)
	o := *s.o
	o.NoHeaders = o.NoHeaders || s.items > 1
	return o.cells(s.w, s.cols, rows)
}

// Flush hands everything to the writer.
func (s *Stream) Flush() error { return s.w.Flush() }
