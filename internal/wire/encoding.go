package wire

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// Messages with a fixed layout implement these two, hotAppender by value so that nobody encodes one as CBOR by
// leaving out an ampersand; all other messages are CBOR.
type (
	hotAppender interface{ appendTo(dst []byte) []byte }
	hotDecoder  interface{ decode(b []byte) error }
)

// encMode sorts map keys, so that equal messages have equal bytes (golden files, checksums).
var encMode = must(cbor.CoreDetEncOptions().EncMode())

// decMode bounds what a peer can make this process allocate: the message is at most MaxMessage bytes, an array or
// map cannot claim more elements than these limits, nor nest deeper. A key that stands twice is refused, because
// two readers could see two different messages in it.
var decMode = must(cbor.DecOptions{
	DupMapKey:         cbor.DupMapKeyEnforcedAPF,
	MaxArrayElements:  1 << 18,
	MaxMapPairs:       1 << 16,
	MaxNestedLevels:   16,
	IndefLength:       cbor.IndefLengthForbidden,
	TagsMd:            cbor.TagsForbidden,
	ExtraReturnErrors: cbor.ExtraDecErrorNone, // a field from a newer peer is skipped
	UTF8:              cbor.UTF8RejectInvalid,
}.DecMode())

func must[M any](mode M, err error) M {
	if err != nil {
		panic(err) // options are constants of this package
	}
	return mode
}

// Encode returns the bytes of a message: a struct of this package or a pointer to one.
func Encode(m any) []byte { return Append(nil, m) }

// Append writes a message at the end of dst. Hot messages do not allocate when dst has room.
func Append(dst []byte, m any) []byte {
	if hot, ok := m.(hotAppender); ok {
		return hot.appendTo(dst)
	}
	b, err := encMode.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("wire: encode %T: %v", m, err)) // only a type that is no message of this package
	}
	if dst == nil {
		return b
	}
	return append(dst, b...)
}

// Decode reads a message into m, a pointer to a struct of this package, whatever m held before. Errors are
// CodeCorruptFrame. Slices of hot messages may alias b.
func Decode(b []byte, m any) error {
	var err error
	if hot, ok := m.(hotDecoder); ok {
		err = hot.decode(b)
	} else {
		// A field that is left out has its zero value, and not that of the message that m was used for last.
		reflect.ValueOf(m).Elem().SetZero()
		err = decMode.Unmarshal(b, m)
	}
	if err != nil {
		return base.Errorf(base.CodeCorruptFrame, "decode "+messageName(m), "%w", err)
	}
	return nil
}

// messageName turns *wire.ProduceRequest into "produce request".
func messageName(m any) string {
	t := reflect.TypeOf(m)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var b strings.Builder
	for i, r := range t.Name() {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
