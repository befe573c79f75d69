package term

import "encoding/json"

// Text is a string in a document that may also be null, or not there at all: null and empty are different
// things, and a record's key is absent when another field holds it in base64. The zero Text is absent; give
// its field the omitzero option.
type Text struct {
	s     string
	state textState
}

type textState uint8

const (
	textAbsent textState = iota
	textNull
	textString
)

// Null is a Text that is null.
func Null() Text { return Text{state: textNull} }

// String is a Text that is s.
func String(s string) Text { return Text{s: s, state: textString} }

// IsZero reports whether the text is absent.
func (t Text) IsZero() bool { return t.state == textAbsent }

// String is the text, empty when it is null or absent.
func (t Text) String() string { return t.s }

// Bytes is the text as bytes: nil when it is null or absent, and not nil when it is empty.
func (t Text) Bytes() []byte {
	if t.state != textString {
		return nil
	}
	return append([]byte{}, t.s...)
}

// MarshalJSON prints a string or null.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.state != textString {
		return []byte("null"), nil
	}
	return json.Marshal(t.s)
}

// UnmarshalJSON reads a string or null.
func (t *Text) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Null()
		return nil
	}
	t.state = textString
	return json.Unmarshal(b, &t.s)
}
