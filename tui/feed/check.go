package feed

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// What a message may hold, whoever has sent or recorded it. Brokers stay far below: their names have 249 bytes at most, and
// lines of their logs 4 KiB. Without this a broker that is none, or a recording that somebody has written, decides how much
// of this machine's memory is left.
const (
	maxName = 1 << 10 // bytes of a name, a state, an address
	maxText = 8 << 10 // of what is said in sentences
	maxPart = 4 << 10 // elements of a list that is a part of a row
)

// sentences are the types whose texts are for people.
var sentences = map[reflect.Type]bool{
	reflect.TypeFor[sdk.Event](): true, reflect.TypeFor[sdk.LogLine](): true, reflect.TypeFor[sdk.LogAttr](): true,
	reflect.TypeFor[sdk.HealthCheck](): true, reflect.TypeFor[sdk.SegmentDetail](): true, reflect.TypeFor[sdk.RangeDetail](): true,
	reflect.TypeFor[store.Stream](): true, reflect.TypeFor[store.Conn](): true, reflect.TypeFor[store.Refused](): true,
}

// whole are the lists that are rows of their own wherever they stand: each goes into a table, which has its own bound.
var whole = map[reflect.Type]bool{reflect.TypeFor[[]sdk.SegmentDetail](): true}

// check finds what no broker says.
func check(m *store.Message) error {
	return checkValue(reflect.ValueOf(m).Elem(), maxName, 0)
}

// cut is a text of somebody else, an error say, as far as a message may hold it.
func cut(text string) string {
	if len(text) <= maxName {
		return text
	}
	return strings.ToValidUTF8(text[:maxName], "") + "…"
}

// checkValue looks at a value; text is how long those may be that it has itself, and rows in how many lists it stands.
func checkValue(v reflect.Value, text, rows int) error {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > text {
			return fmt.Errorf("a text of %d bytes, where %d are the most", v.Len(), text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkValue(v.Elem(), text, rows)
		}
	case reflect.Struct:
		shape := shapeOf(v.Type())
		for _, i := range shape.fields {
			if err := checkValue(v.Field(i), shape.text, rows); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice, reflect.Array:
		return checkList(v, text, rows)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := errors.Join(checkValue(it.Key(), text, rows), checkValue(it.Value(), text, rows)); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func checkList(v reflect.Value, text, rows int) error {
	if rows > 0 && v.Len() > maxPart && !whole[v.Type()] {
		return fmt.Errorf("a list of %d, where %d are the most", v.Len(), maxPart)
	}
	if !speaks(v.Type().Elem()) {
		return nil
	}
	for i := range v.Len() {
		if err := checkValue(v.Index(i), text, rows+1); err != nil {
			return err
		}
	}
	return nil
}

// shape is what there is to look at in a struct: most fields are numbers.
type shape struct {
	text   int   // how long its texts may be
	fields []int // that hold text or lists
}

var shapes sync.Map // by type

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{text: maxName}
	if sentences[t] {
		s.text = maxText
	}
	for i := range t.NumField() {
		if speaks(t.Field(i).Type) {
			s.fields = append(s.fields, i)
		}
	}
	shapes.Store(t, s)
	return s
}

// speaks reports whether values of a type hold text or lists.
func speaks(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return true
	case reflect.Pointer, reflect.Array:
		return speaks(t.Elem())
	case reflect.Struct:
		return t != reflect.TypeFor[time.Time]() && len(shapeOf(t).fields) > 0
	default:
		return false
	}
}
