package store

import (
	"encoding/binary"

	"github.com/eastguard/eastguard/internal/base"
)

// encoder appends little-endian fields to b.
type encoder struct{ b []byte }

func (e *encoder) u8(v uint8)          { e.b = append(e.b, v) }
func (e *encoder) u32(v uint32)        { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64)        { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) i64(v int64)         { e.u64(uint64(v)) }
func (e *encoder) uuid(v base.UUID)    { e.b = append(e.b, v[:]...) }
func (e *encoder) bytes(v []byte)      { e.u32(uint32(len(v))); e.b = append(e.b, v...) }
func (e *encoder) ref(r base.RangeRef) { e.uuid(r.Topic); e.u32(uint32(r.Range)) }

// decoder reads from the front of b. After the first short read it returns zeroes and bad is true.
type decoder struct {
	b   []byte
	bad bool
}

var zeroes [16]byte

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || len(d.b) < n {
		d.bad = true
		return zeroes[:min(max(n, 0), len(zeroes))]
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) u8() uint8       { return d.take(1)[0] }
func (d *decoder) u32() uint32     { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *decoder) u64() uint64     { return binary.LittleEndian.Uint64(d.take(8)) }
func (d *decoder) i64() int64      { return int64(d.u64()) }
func (d *decoder) uuid() base.UUID { return base.UUID(d.take(16)) }
func (d *decoder) ref() base.RangeRef {
	return base.RangeRef{Topic: d.uuid(), Range: base.RangeID(d.u32())}
}

// bytes returns a copy of a length-prefixed field, nil for an empty one.
func (d *decoder) bytes() []byte {
	n := d.u32()
	if d.bad || int64(n) > int64(len(d.b)) {
		d.bad = true
		return nil
	}
	return append([]byte(nil), d.take(int(n))...)
}

// count reads a number of items of at least size bytes each, and refuses one that cannot be there.
func (d *decoder) count(size int) int {
	n := d.u32()
	if d.bad || int64(n)*int64(size) > int64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

// bool reads a byte that must be 0 or 1.
func (d *decoder) bool() bool {
	v := d.u8()
	if v > 1 {
		d.bad = true
	}
	return v == 1
}

func (e *encoder) bool(v bool) {
	if v {
		e.u8(1)
		return
	}
	e.u8(0)
}
