package store

import (
	"reflect"

	"github.com/eastguard/eastguard/sdk"
)

// What an entry of a log keeps in memory, about: its own place and that of the texts that no other entry has.
var (
	eventSize   = sizeOf[Event]()
	logLineSize = sizeOf[LogLine]()
	attrSize    = sizeOf[sdk.LogAttr]()
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// rounding is what the allocator adds to a text, on the average.
const rounding = 8

func (e *Event) size() int { return eventSize + len(e.Subject) + len(e.Detail) + 2*rounding }

func (l *LogLine) size() int {
	n := logLineSize + len(l.Message) + rounding + len(l.Attrs)*attrSize
	for _, a := range l.Attrs {
		n += len(a.Key) + len(a.Value) + 2*rounding
	}
	return n
}
