package rangestate

import "encoding/binary"

// decoder reads from the front of b. After the first error it returns zeroes, so that callers check once.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = corrupt(format, args...)
	}
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || len(d.b) < n {
		d.fail("it ends inside an item")
		return make([]byte, 8)[:n]
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) u8() byte   { return d.take(1)[0] }
func (d *decoder) i16() int16 { return int16(binary.LittleEndian.Uint16(d.take(2))) }
func (d *decoder) i32() int32 { return int32(binary.LittleEndian.Uint32(d.take(4))) }
func (d *decoder) i64() int64 { return int64(binary.LittleEndian.Uint64(d.take(8))) }

func (d *decoder) producers(s *State, n int) {
	if n == 0 || n > MaxProducers || n*producerBytes > len(d.b) {
		d.fail("%d producers in %d bytes", n, len(d.b))
		return
	}
	for range n {
		p := &producer{id: d.i64(), epoch: d.i16(), lastMs: d.i64(), n: int8(d.u8())}
		if p.n < 0 || p.n > Window {
			d.fail("a window of %d batches", uint8(p.n))
		}
		if d.err != nil {
			return
		}
		for i := range p.n {
			p.window[i] = batch{id: p.id, epoch: p.epoch, base: d.i64(), ms: d.i64(), first: d.i32(), last: d.i32(), prev: -1}
		}
		if s.producers[p.id] != nil {
			d.fail("producer %d is listed twice", p.id)
			return
		}
		s.insert(p)
	}
}

func (d *decoder) pending(s *State, n int) {
	if n == 0 || n > len(d.b)/pendingBytes {
		d.fail("%d pending batches in %d bytes", n, len(d.b))
		return
	}
	last := s.commit
	for range n {
		b := batch{id: d.i64(), epoch: d.i16(), base: d.i64(), ms: d.i64(), first: d.i32(), last: d.i32()}
		if b.base < last || b.base >= s.end {
			d.fail("a pending batch at %d in [%d, %d)", b.base, last, s.end)
		}
		if d.err != nil {
			return
		}
		last = b.base + 1
		s.push(b)
	}
}
