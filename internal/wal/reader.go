package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/eastguard/eastguard/internal/vfs"
)

// reader reads one file of the log through a window, so that recovery needs the memory of one frame and not of one
// file. A part of the file that the disk refuses to read is taken as zeros and remembered.
type reader struct {
	file vfs.File
	size int64 // as found, which may not be what the header says
	base LSN   // position of the first frame
	seed uint32

	window     []byte
	at         int64   // file offset of window[0]
	unreadable []int64 // offsets of pages
}

const windowBytes = 256 << 10

func (r *reader) offset(lsn LSN) int64 { return headerBytes + int64(lsn-r.base) }

// position is the LSN of a file offset.
func (r *reader) position(off int64) LSN { return r.base + LSN(off-headerBytes) }

// bytes returns n bytes at off, valid until the next call; nil if the file ends before.
func (r *reader) bytes(off, n int64) []byte {
	if off < 0 || n > r.size-off {
		return nil
	}
	if off < r.at || off+n > r.at+int64(len(r.window)) {
		r.fill(off, n)
	}
	return r.window[off-r.at:][:n]
}

func (r *reader) fill(off, n int64) {
	r.at = off
	n = min(max(n, windowBytes), r.size-off)
	if int64(cap(r.window)) < n {
		r.window = make([]byte, n)
	}
	r.window = r.window[:n]
	if got, err := r.file.ReadAt(r.window, off); got == len(r.window) || errors.Is(err, io.EOF) && got == len(r.window) {
		return
	}
	r.fillByPage()
}

// fillByPage reads what can be read of the window.
func (r *reader) fillByPage() {
	for in := int64(0); in < int64(len(r.window)); {
		off := r.at + in
		b := r.window[in:min(int64(len(r.window)), in+pageBytes-off%pageBytes)]
		if got, _ := r.file.ReadAt(b, off); got < len(b) {
			clear(b)
			r.unreadable = append(r.unreadable, off&^(pageBytes-1))
		}
		in += int64(len(b))
	}
}

// unreadableFrom reports whether a page that ends above off could not be read.
func (r *reader) unreadableFrom(off int64) bool {
	for _, page := range r.unreadable {
		if page+pageBytes > off {
			return true
		}
	}
	return false
}

// frameAt returns the frame at lsn and its payload, valid until the next call; ok is false unless every byte that
// matters is as it was written.
func (r *reader) frameAt(lsn LSN) (f frame, payload []byte, ok bool) {
	off := r.offset(lsn)
	h := r.bytes(off, frameHeader)
	if h == nil {
		return f, nil, false
	}
	f, ok = decodeFrame(h, r.seed)
	if !ok || f.lsn != lsn || f.length > maxEntry {
		return f, nil, false
	}
	payload = r.bytes(off+frameHeader, int64(f.length))
	if payload == nil || crc32.Checksum(payload, castagnoli) != f.body {
		return f, nil, false
	}
	return f, payload, true
}

// next finds the first whole frame at or above lsn.
func (r *reader) next(lsn LSN) (LSN, bool) {
	off, ok := r.search(r.offset(lsn), func(b []byte, off int64) bool {
		// Eight bytes that hold their own position: a test that nearly everything that is not a frame fails.
		if LSN(binary.LittleEndian.Uint64(b[8:])) != r.position(off) {
			return false
		}
		_, ok := decodeFrame(b, r.seed)
		return ok
	}, func(off int64) bool {
		_, _, ok := r.frameAt(r.position(off))
		return ok
	})
	return r.position(off), ok
}

// anyHeader finds the first frame header in the file, whatever became of its payload, by its checksum alone.
func (r *reader) anyHeader() (f frame, off int64, ok bool) {
	off, ok = r.search(headerBytes, func(b []byte, off int64) bool {
		if b[20] != byte(typeMark) && b[20] != byte(typeEntry) { // cheaper than the checksum
			return false
		}
		f, ok = decodeFrame(b, r.seed)
		return ok && f.lsn >= LSN(off-headerBytes)
	}, func(int64) bool { return true })
	return f, off, ok
}

// search finds the first place at or above off, where a frame could be, that looks right and then proves right.
// looks is given the bytes of a frame header; proves may read elsewhere.
func (r *reader) search(off int64, looks func(b []byte, off int64) bool, proves func(off int64) bool) (int64, bool) {
	for off+frameHeader <= r.size {
		n := min(windowBytes, r.size-off)
		b := r.bytes(off, n)
		past := off + (n-frameHeader)&^(align-1) + align
		if bytes.Equal(b, zeros[:n]) { // most of a file that is not full
			off = past
			continue
		}
		for len(b) >= frameHeader && !looks(b[:frameHeader], off) {
			b, off = b[min(align, len(b)):], off+align
		}
		if off >= past {
			continue
		}
		if proves(off) {
			return off, true
		}
		off += align
	}
	return 0, false
}

// statedAbove is the highest durable LSN that a whole frame at or above lsn states; 0 without one.
func (r *reader) statedAbove(lsn LSN) LSN {
	var durable LSN
	for {
		at, ok := r.next(lsn)
		if !ok {
			return durable
		}
		f, payload, _ := r.frameAt(at)
		if f.typ == typeMark {
			durable = max(durable, LSN(binary.LittleEndian.Uint64(payload)))
		}
		lsn = f.end()
	}
}
