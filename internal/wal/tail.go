package wal

import "fmt"

// tail is the end of the log: the file being written and the place in it. Whoever holds it, and nobody else, may
// write; it lies in a channel of capacity one, Log.tail.
type tail struct {
	file   *file
	off    int64 // where the next frame goes
	end    LSN   // the same place as a position
	padded int64 // below it every page of the file has been written since the file was begun

	unsynced []*commit // written, and no sync under way covers them
	covered  []*commit // the slice of those that a sync covers, to be used again
	layout   layout
}

func (t *tail) use(f *file) {
	t.file, t.off, t.end, t.padded = f, headerBytes, f.base, headerBytes
}

// reserveBytes is kept free behind entries, for the mark that states them durable and for one more: a commit that
// is written while the one before it is synced has the marks of both behind it.
const reserveBytes = 2 * markBytes

// room is what entries may still take in the file.
func (t *tail) room() int64 { return t.file.size - t.off - reserveBytes }

// startSync takes the commits that a sync begun now covers.
func (t *tail) startSync() []*commit {
	covered := t.unsynced
	t.unsynced, t.covered = t.covered[:0], covered
	return covered
}

// write writes the commit's frames. Whatever it returns, c belongs to the tail's unsynced commits afterwards.
func (t *tail) write(c *commit) error {
	t.unsynced = append(t.unsynced, c)
	t.layout.reset(t.end)
	t.layout.reserve(c.entries)
	for i := range c.entries {
		t.layout.entry(&c.entries[i], t.file.seed)
	}
	err := t.flush()
	c.end = t.end
	return err
}

// mark writes the frame that states durable. It is not synced: it need only outlive the process.
func (t *tail) mark(durable LSN) error {
	t.layout.reset(t.end)
	t.layout.mark(t.file.seed, durable)
	return t.flush()
}

// flush writes the layout at the tail, in whole pages: what follows the last frame in its page is written as zeros.
// A page that is written for the first time since the file was recycled may lie on the disk only, and the kernel
// would have to read it first if it were given a part of it.
func (t *tail) flush() error {
	n := int64(t.layout.lsn - t.end)
	after := t.off + n
	if after > t.file.size {
		return fmt.Errorf("frames would end at %d in a file of %d bytes", after, t.file.size) // room and reserveBytes rule it out
	}
	if after > t.padded {
		t.padded = (after + pageBytes - 1) &^ (pageBytes - 1)
		t.layout.pad(t.padded - after)
	}
	bufs := t.layout.finish()
	_, err := t.file.WritevAt(bufs, t.off)
	t.layout.release()
	t.off, t.end = after, t.end+LSN(n)
	return err
}

// layout lays frames out as buffers for one vectored write: headers, padding and small payloads gathered in one
// buffer, larger payloads as they lie in the callers' memory.
type layout struct {
	lsn  LSN    // after what is laid out
	buf  []byte // never grows while bufs point into it
	from int    // buf[from:] is not in bufs yet
	bufs [][]byte
}

// gatherBytes is the size below which copying a payload is cheaper than an iovec of its own.
const gatherBytes = 1024

func (l *layout) reset(at LSN) {
	l.lsn, l.buf, l.from, l.bufs = at, l.buf[:0], 0, l.bufs[:0]
	l.grow(markBytes)
}

func (l *layout) grow(n int) {
	if cap(l.buf) < n {
		l.buf = make([]byte, 0, n+n/4)
	}
}

// reserve makes room for what entries need in the buffer.
func (l *layout) reserve(entries []entry) {
	n := 0
	for i := range entries {
		n += frameHeader + align
		for _, p := range entries[i].parts {
			if len(p) < gatherBytes {
				n += len(p)
			}
		}
	}
	l.grow(n)
}

func (l *layout) entry(e *entry, seed uint32) {
	f := frame{body: e.body, lsn: l.lsn, length: e.length, typ: typeEntry, kind: e.kind}
	l.buf = f.append(l.buf, seed)
	for _, p := range e.parts {
		if len(p) < gatherBytes {
			l.buf = append(l.buf, p...)
			continue
		}
		l.cut()
		l.bufs = append(l.bufs, p)
	}
	l.buf = append(l.buf, zeros[:-int(e.length)&(align-1)]...)
	l.lsn = f.end()
}

func (l *layout) mark(seed uint32, durable LSN) {
	l.buf = appendMark(l.buf, seed, l.lsn, durable)
	l.lsn += markBytes
}

// cut turns what was gathered since the last cut into one of the buffers to write.
func (l *layout) cut() {
	if l.from < len(l.buf) {
		l.bufs = append(l.bufs, l.buf[l.from:])
		l.from = len(l.buf)
	}
}

// pad adds n zeros, less than a page, that are not part of the log.
func (l *layout) pad(n int64) {
	l.cut()
	if n > 0 {
		l.bufs = append(l.bufs, zeros[:n])
	}
}

func (l *layout) finish() [][]byte {
	l.cut()
	return l.bufs
}

// release lets go of the callers' memory, and of a buffer that an unusual commit made large.
func (l *layout) release() {
	clear(l.bufs)
	if cap(l.buf) > 1<<20 {
		l.buf = nil
	}
}
