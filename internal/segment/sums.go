package segment

import (
	"hash/crc32"
	"sync/atomic"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums are the checksums of a file's blocks. The last block is checked as far as it is written.
type sums struct {
	full    []uint32 // one for each block of BlockBytes that is complete; grows, never changes
	partial uint32   // of the bytes behind them; 0 when there are none
}

// add goes on over b, which lies at pos.
func (s *sums) add(pos int64, b []byte) {
	for len(b) > 0 {
		room := BlockBytes - int(pos%BlockBytes)
		part := b[:min(room, len(b))]
		s.partial = crc32.Update(s.partial, castagnoli, part)
		if len(part) == room {
			s.full = append(s.full, s.partial)
			s.partial = 0
		}
		pos += int64(len(part))
		b = b[len(part):]
	}
}

// bits is a set of small numbers that only grows. Setting a bit that another goroutine sets is harmless.
type bits []atomic.Uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool {
	return i/64 < len(b) && b[i/64].Load()&(1<<(i%64)) != 0
}

func (b bits) set(i int) {
	if i/64 < len(b) {
		b[i/64].Or(1 << (i % 64))
	}
}

// grown returns a set for n numbers with what b holds.
func (b bits) grown(n int) bits {
	if n <= 64*len(b) {
		return b
	}
	g := newBits(max(n, 128*len(b)))
	for i := range b {
		g[i].Store(b[i].Load())
	}
	return g
}
