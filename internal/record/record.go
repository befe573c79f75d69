package record

import "github.com/eastguard/eastguard/internal/header"

// Codec is the compression of a batch's records.
type Codec = header.Codec

// Header is one header of a record. A nil Value is null, which is not the same as empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record. A nil Key or Value is null, an empty one is empty; both travel as what they are.
type Record struct {
	Key         []byte
	Value       []byte
	Headers     []Header
	TimestampMs int64
	Offset      int64 // set by a Reader; a Builder ignores it
}
