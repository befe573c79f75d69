package segment

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/eastguard/eastguard/internal/base"
)

// A page of .idx or .tdx describes the file's bytes [from, to); all numbers little-endian. Pages follow each other
// without a gap; nothing else is in the file.
//
//	 0        4      5      6          8          16     24     32     40     48
//	+--------+------+------+----------+----------+------+------+------+------+-----------+
//	| "EGIX" | ver  | kind | reserved | segment  | base | from | to   | end  | entries u32|
//	+--------+------+------+----------+----------+------+------+------+------+-----------+
//	 52          56          60
//	+-----------+-----------+------------------+----------------+--------+
//	| sums u32  | partial   | entries x 24     | sums x 4       | crc32c |
//	+-----------+-----------+------------------+----------------+--------+
const (
	pageVersion  = 1
	pageHead     = 60
	pageEntry    = 24
	kindIndex    = 1
	kindTime     = 2
	pageOverhead = pageHead + 4
)

// page is the head of one page, decoded, with its payload.
type page struct {
	kind     byte
	segment  base.SegmentID
	base     int64
	from, to int64 // file positions
	end      int64 // offset behind the batch that ends at to
	entries  int
	sums     int
	partial  uint32 // checksum of the file's bytes from the last whole block to to
	payload  []byte // entries, then sums
}

// encode appends the page to b; fill appends the payload.
func (p page) encode(b []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, 'E', 'G', 'I', 'X', pageVersion, p.kind, 0, 0)
	b = le.AppendUint64(b, uint64(p.segment))
	b = le.AppendUint64(b, uint64(p.base))
	b = le.AppendUint64(b, uint64(p.from))
	b = le.AppendUint64(b, uint64(p.to))
	b = le.AppendUint64(b, uint64(p.end))
	b = le.AppendUint32(b, uint32(p.entries))
	b = le.AppendUint32(b, uint32(p.sums))
	b = le.AppendUint32(b, p.partial)
	b = fill(b)
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// decodePage reads the page at the front of b and returns what follows it. Anything that is not exactly a page is an
// error: then the rest of the index is built from the file.
func decodePage(b []byte) (p page, rest []byte, err error) {
	if len(b) < pageOverhead {
		return p, nil, corruptIndex("%d bytes are too few for a page", len(b))
	}
	le := binary.LittleEndian
	if string(b[:4]) != "EGIX" || b[4] != pageVersion {
		return p, nil, corruptIndex("a page begins with %q version %d", b[:4], b[4])
	}
	p = page{
		kind:    b[5],
		segment: base.SegmentID(le.Uint64(b[8:])),
		base:    int64(le.Uint64(b[16:])),
		from:    int64(le.Uint64(b[24:])),
		to:      int64(le.Uint64(b[32:])),
		end:     int64(le.Uint64(b[40:])),
		partial: le.Uint32(b[56:]),
	}
	entries, sums := int64(le.Uint32(b[48:])), int64(le.Uint32(b[52:]))
	size := pageOverhead + entries*pageEntry + sums*4
	if size > int64(len(b)) {
		return p, nil, corruptIndex("a page of %d bytes in %d", size, len(b))
	}
	body := b[:size-4]
	if got, want := crc32.Checksum(body, castagnoli), le.Uint32(b[size-4:]); got != want {
		return p, nil, corruptIndex("a page's crc is %#08x, %#08x is stored", got, want)
	}
	p.entries, p.sums, p.payload = int(entries), int(sums), body[pageHead:]
	return p, b[size:], nil
}

func corruptIndex(format string, args ...any) error {
	return base.Errorf(base.CodeCorruptData, "read index", format, args...)
}

func appendIndexEntry(b []byte, e *IndexEntry) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, e.Rel)
	b = le.AppendUint32(b, e.Pos)
	b = le.AppendUint64(b, e.Lo)
	return le.AppendUint64(b, e.Hi)
}

func appendTimeEntry(b []byte, e *TimeEntry) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(e.MaxTimestamp))
	b = le.AppendUint64(b, uint64(e.AppendMs))
	b = le.AppendUint32(b, e.Rel)
	return le.AppendUint32(b, e.Pos)
}

func (p *page) indexEntry(i int) IndexEntry {
	b := p.payload[i*pageEntry:][:pageEntry]
	le := binary.LittleEndian
	return IndexEntry{Rel: le.Uint32(b), Pos: le.Uint32(b[4:]), Lo: le.Uint64(b[8:]), Hi: le.Uint64(b[16:])}
}

func (p *page) timeEntry(i int) TimeEntry {
	b := p.payload[i*pageEntry:][:pageEntry]
	le := binary.LittleEndian
	return TimeEntry{MaxTimestamp: int64(le.Uint64(b)), AppendMs: int64(le.Uint64(b[8:])), Rel: le.Uint32(b[16:]), Pos: le.Uint32(b[20:])}
}

func (p *page) sum(i int) uint32 {
	return binary.LittleEndian.Uint32(p.payload[p.entries*pageEntry+4*i:])
}
