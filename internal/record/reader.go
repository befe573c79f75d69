package record

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// Reader iterates over the records of batches. It is not safe for concurrent use.
//
// Keys, values and header values of the records alias the batch given to Reset or, when it was compressed, a buffer
// of the Reader: they are good until the next Reset, unless Detach is called.
type Reader struct {
	limit   int
	head    header.Header
	data    []byte // records not yet read
	next    int32  // index of the record at the front of data
	err     error
	decoded []byte   // kept from batch to batch
	headers []Header // of all records of the batch
	keys    map[string]string
}

// headerBytes is what a decoded header takes, besides the bytes that it points to.
const headerBytes = int64(unsafe.Sizeof(Header{}))

// maxKeys bounds the header keys that a Reader remembers, so that the usual few are not allocated again.
const maxKeys = 128

// DefaultMaxDecoded is enough for every batch that a broker accepts, decompressed.
const DefaultMaxDecoded = 128 << 20

// NewReader makes a Reader that refuses batches whose records take more than maxDecodedBytes when decompressed, or
// whose headers would take more than that again: an empty one is two bytes in a batch and headerBytes here. 0 means
// DefaultMaxDecoded.
func NewReader(maxDecodedBytes int) *Reader {
	if maxDecodedBytes <= 0 {
		maxDecodedBytes = DefaultMaxDecoded
	}
	return &Reader{limit: maxDecodedBytes, keys: make(map[string]string)}
}

// Reset begins a batch: it checks its header and CRC and decompresses its records.
func (r *Reader) Reset(batch []byte) error {
	r.data, r.next, r.err, r.head = nil, 0, nil, header.Header{}
	clear(r.headers)
	r.headers = r.headers[:0]
	h, err := header.Check(batch, 0)
	if err == nil {
		r.head = h
		r.data, err = r.unpack(batch[header.Size:])
	}
	r.err = err
	return err
}

func (r *Reader) unpack(packed []byte) ([]byte, error) {
	if r.head.Codec() == header.None {
		return packed, nil
	}
	out, err := decompress(r.decoded, packed, r.head.Codec(), r.limit)
	if err != nil {
		return nil, base.Wrap(base.CodeCorruptBatch, "decompress batch", err)
	}
	r.decoded = out
	return out, nil
}

// Detach gives the records of this batch to the caller for good: the next Reset takes new memory.
func (r *Reader) Detach() { r.decoded, r.headers = nil, nil }

// Header is the batch's header.
func (r *Reader) Header() header.Header { return r.head }

// Err is why Next stopped before the end.
func (r *Reader) Err() error { return r.err }

// Next returns the next record, or false at the end or at a record that cannot be decoded; Err tells which.
func (r *Reader) Next() (Record, bool) {
	if r.err != nil || r.next >= r.head.Records {
		return Record{}, false
	}
	c := cursor{b: r.data}
	size := c.varint()
	if c.bad || size < 0 || size > int64(len(c.b)) {
		return r.corrupt("its length is wrong")
	}
	rest := c.b[size:]
	c.b = c.b[:size]
	rec := r.decode(&c)
	switch {
	case r.err != nil:
		return Record{}, false
	case c.bad || len(c.b) != 0:
		return r.corrupt("its fields do not add up to its length")
	case rec.Offset != r.head.BaseOffset+int64(r.next):
		return r.corrupt("its offset is %d, not the next one", rec.Offset)
	case r.next == r.head.Records-1 && len(rest) != 0:
		return r.corrupt("%d bytes follow the last one", len(rest))
	}
	r.data = rest
	r.next++
	return rec, true
}

func (r *Reader) corrupt(format string, args ...any) (Record, bool) {
	e := base.Errorf(base.CodeCorruptBatch, "read batch", format, args...)
	r.err = base.Errorf(base.CodeCorruptBatch, "read batch", "record %d of %d: %s", r.next, r.head.Records, e.Msg)
	return Record{}, false
}

// decode reads a record's fields; c.bad tells whether they were there.
func (r *Reader) decode(c *cursor) Record {
	c.skip(1) // attributes
	rec := Record{
		TimestampMs: r.head.FirstTimestamp + c.varint(),
		Offset:      r.head.BaseOffset + c.varint(),
		Key:         c.bytes(),
		Value:       c.bytes(),
	}
	if r.head.LogAppendTime() {
		rec.TimestampMs = r.head.MaxTimestamp
	}
	if n := c.varint(); n != 0 {
		rec.Headers = r.decodeHeaders(c, n)
	}
	return rec
}

// decodeHeaders appends a record's headers to those of the batch, in one slice that grows by doubling.
func (r *Reader) decodeHeaders(c *cursor, n int64) []Header {
	const least = 2 // bytes of a header: two lengths
	if n < 0 || n > int64(len(c.b)/least) {
		c.bad = true
		return nil
	}
	at := len(r.headers)
	if most := int64(r.limit) / headerBytes; n > most-int64(at) {
		r.corrupt("the batch has more than %d headers up to here", most)
		return nil
	}
	for range n {
		key := c.bytes()
		if key == nil {
			c.bad = true // Kafka has no null header keys either
			return nil
		}
		r.headers = append(r.headers, Header{Key: r.intern(key), Value: c.bytes()})
	}
	return r.headers[at:len(r.headers):len(r.headers)]
}

func (r *Reader) intern(key []byte) string {
	if s, ok := r.keys[string(key)]; ok {
		return s
	}
	s := string(key)
	if len(r.keys) < maxKeys && len(s) <= 64 {
		r.keys[s] = s
	}
	return s
}

// cursor reads fields from the front of b. After the first that is not there it is bad and reads only zeroes.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) varint() int64 {
	// Lengths and deltas below 64 are one byte.
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return int64(v>>1) ^ -int64(v&1)
	}
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

// bytes reads a length and what it counts: nil for null, never nil for empty.
func (c *cursor) bytes() []byte {
	n := c.varint()
	switch {
	case n == -1 && !c.bad:
		return nil
	case n < 0 || n > math.MaxInt32 || n > int64(len(c.b)):
		c.fail()
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	if b == nil { // an empty slice of nothing, once the cursor is bad
		b = []byte{}
	}
	return b
}

func (c *cursor) skip(n int) {
	if len(c.b) < n {
		c.fail()
		return
	}
	c.b = c.b[n:]
}

func (c *cursor) fail() { c.b, c.bad = nil, true }
