package segment

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// The bounds of a dump, whatever the files say of themselves.
const (
	maxDumpBatch    = 64 << 20
	maxDumpIndex    = 256 << 20
	maxDumpProblems = 100
)

// Dumped is one batch as a dump finds it.
type Dumped struct {
	Pos     int64
	Header  header.Header
	Bytes   []byte // all of it, valid during the call
	Problem string // what is wrong with it; "": nothing
}

// DumpInfo is what a dump comes to. It describes what is in the files: whether there should be more is for the node's
// catalogue to say, and what lies behind the catalogue's end never counted.
type DumpInfo struct {
	Path         string // of the .log
	Segment      base.SegmentID
	Base         int64
	Epoch        base.Epoch // of its batches
	Bytes        int64
	Batches      int64
	Records      int64
	End          int64  // behind the last batch that follows those before it
	Trailing     int64  // bytes behind the last batch that could be read
	CRC          uint32 // CRC32C of the bytes of all batches: what a whole copy's checksum is
	IndexEntries int
	TimeEntries  int
	Summed       int64 // bytes that the index has sums of
	BadBlocks    []int64
	Problems     []string // the first hundred
	Notes        []string // what is no damage: a broker mends it without a loss
}

// dump is one under way.
type dump struct {
	DumpInfo
	fs     vfs.FS
	file   vfs.File
	chunks []IndexEntry
	times  []TimeEntry
	sums   sums
	next   int   // chunk that the walk has not met yet
	behind int64 // where batches go on if the damaged ones before tell the truth of themselves; End where none was met
}

// Dump reads the files of one segment, found by the name of any of them, as they lie on the disk: every batch, held
// against its own checksum and against what may follow what, then the indexes and block sums against the batches. It
// writes nothing, needs no catalogue, and follows no length that it has not checked. each may be nil; its error ends the
// dump.
func Dump(fs vfs.FS, path string, each func(Dumped) error) (DumpInfo, error) {
	d := &dump{fs: fs}
	if err := d.open(path); err != nil {
		return d.DumpInfo, err
	}
	defer func() { _ = d.file.Close() }()
	if err := d.readIndexes(); err != nil {
		return d.DumpInfo, err
	}
	if err := d.walk(each); err != nil {
		return d.DumpInfo, err
	}
	return d.DumpInfo, d.checkSums()
}

// open finds out whose file it is by its name, and opens the batches.
func (d *dump) open(path string) error {
	path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(path, LogSuffix), IndexSuffix), TimeSuffix)
	d.Path = path + LogSuffix
	if n, err := fmt.Sscanf(filepath.Base(path), "%d-%d", &d.Segment, &d.Base); n != 2 || err != nil || d.Base < 0 {
		return base.Errorf(base.CodeInvalidArgument, "dump segment", "%s is not named like a segment: SEGMENT-BASE.log", filepath.Base(path))
	}
	var err error
	if d.file, err = d.fs.OpenFile(d.Path, os.O_RDONLY, 0); err != nil {
		return err
	}
	if d.Bytes, err = d.file.Size(); err != nil {
		return errors.Join(err, d.file.Close())
	}
	d.End, d.behind, d.Epoch = d.Base, d.Base, -1
	return nil
}

func (d *dump) problem(format string, args ...any) string {
	p := fmt.Sprintf(format, args...)
	if len(d.Problems) < maxDumpProblems {
		d.Problems = append(d.Problems, p)
	}
	return p
}

// readIndexes takes the pages of both indexes as far as they can be read.
func (d *dump) readIndexes() error {
	err := d.readPages(IndexSuffix, kindIndex, func(p *page) {
		for i := range p.entries {
			d.chunks = append(d.chunks, p.indexEntry(i))
		}
		for i := range p.sums {
			d.sums.full = append(d.sums.full, p.sum(i))
		}
		d.sums.partial, d.Summed = p.partial, p.to
	})
	if err != nil {
		return err
	}
	err = d.readPages(TimeSuffix, kindTime, func(p *page) {
		for i := range p.entries {
			d.times = append(d.times, p.timeEntry(i))
		}
	})
	d.IndexEntries, d.TimeEntries = len(d.chunks), len(d.times)
	return err
}

func (d *dump) readPages(suffix string, kind byte, take func(*page)) error {
	name := strings.TrimSuffix(d.Path, LogSuffix) + suffix
	info, err := d.fs.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.Notes = append(d.Notes, fmt.Sprintf("there is no %s yet: a broker builds it from the batches", filepath.Base(name)))
		return nil
	case err != nil:
		return err
	case info.Size > maxDumpIndex:
		d.problem("%s has %d bytes, more than an index can have", filepath.Base(name), info.Size)
		return nil
	}
	b, err := vfs.ReadFile(d.fs, name)
	if err != nil {
		return err
	}
	for at := int64(0); len(b) > 0; {
		p, rest, err := decodePage(b)
		switch {
		case err != nil:
			d.problem("%s: %v", filepath.Base(name), err)
			return nil
		case p.kind != kind || p.segment != d.Segment || p.base != d.Base || p.from != at || p.to <= p.from:
			d.problem("%s: a page for bytes [%d, %d) of segment %s cannot be here", filepath.Base(name), p.from, p.to, p.segment)
			return nil
		case kind == kindIndex && p.sums != int(p.to/BlockBytes-p.from/BlockBytes):
			d.problem("%s: a page for bytes [%d, %d) with %d sums", filepath.Base(name), p.from, p.to, p.sums)
			return nil
		}
		take(&p)
		at, b = p.to, rest
	}
	return nil
}

// walk goes from batch to batch. Behind one that cannot be read it goes on where the index says that another begins.
func (d *dump) walk(each func(Dumped) error) error {
	var buf []byte
	for pos := int64(0); pos < d.Bytes; {
		b, found, err := d.batchAt(pos, buf)
		if err != nil {
			return err
		}
		buf = b.Bytes[:0]
		if !found {
			resume, ok := d.chunkBehind(pos)
			if !ok {
				d.Trailing = d.Bytes - pos
				return nil
			}
			pos = resume
			continue
		}
		d.meet(&b)
		if each != nil {
			if err := each(b); err != nil {
				return err
			}
		}
		pos += int64(len(b.Bytes))
	}
	return nil
}

// batchAt reads the batch at pos, and reports whether there is one.
func (d *dump) batchAt(pos int64, buf []byte) (b Dumped, found bool, err error) {
	head := make([]byte, header.Size)
	b.Pos = pos
	if n, err := d.file.ReadAt(head, pos); n < len(head) {
		if err != nil && !errors.Is(err, io.EOF) {
			return b, false, err
		}
		d.problem("%d bytes at %d are too few for a batch", n, pos)
		return b, false, nil
	}
	h, err := header.Parse(head)
	if err != nil {
		d.problem("byte %d: %v", pos, err)
		return b, false, nil
	}
	size := int64(h.Size())
	if size > maxDumpBatch || pos+size > d.Bytes {
		d.problem("byte %d: a batch of %d bytes, %d are left", pos, size, d.Bytes-pos)
		return b, false, nil
	}
	b.Header, b.Bytes = h, grow(buf, int(size))
	if n, err := d.file.ReadAt(b.Bytes, pos); n < len(b.Bytes) {
		return b, false, fmt.Errorf("read %s at %d: %w", d.Path, pos, err)
	}
	return b, true, nil
}

// grow returns n bytes, of b's own if it has them.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// meet holds a batch against what came before it, and against the index.
func (d *dump) meet(b *Dumped) {
	h := b.Header
	if d.Epoch < 0 {
		d.Epoch = base.Epoch(h.Epoch)
	}
	_, err := header.Check(b.Bytes, 0)
	follows := h.BaseOffset == d.End || h.BaseOffset == d.behind
	switch {
	case err != nil:
		b.Problem = d.problem("byte %d, offset %d: %v", b.Pos, h.BaseOffset, err)
	case !follows:
		b.Problem = d.problem("byte %d: offset %d where %d must follow", b.Pos, h.BaseOffset, d.End)
	case h.Epoch != int32(d.Epoch):
		b.Problem = d.problem("byte %d, offset %d: epoch %d in a segment of epoch %d", b.Pos, h.BaseOffset, h.Epoch, d.Epoch)
	}
	d.CRC = crc32.Update(d.CRC, castagnoli, b.Bytes)
	d.Batches++
	d.Records += int64(h.Records)
	switch {
	case err == nil:
		d.End, d.behind = h.End(), h.End()
	case follows:
		d.behind = h.End()
	}
	for ; d.next < len(d.chunks) && int64(d.chunks[d.next].Pos) <= b.Pos; d.next++ {
		if c := d.chunks[d.next]; int64(c.Pos) != b.Pos || d.Base+int64(c.Rel) != h.BaseOffset {
			d.problem("the index has offset %d at byte %d, where there is none", d.Base+int64(c.Rel), c.Pos)
		}
	}
}

// chunkBehind finds where the index says that a batch begins behind pos.
func (d *dump) chunkBehind(pos int64) (int64, bool) {
	for _, c := range d.chunks[min(d.next, len(d.chunks)):] {
		if int64(c.Pos) > pos {
			return int64(c.Pos), true
		}
	}
	return 0, false
}

// checkSums holds the blocks against the sums that the index has.
func (d *dump) checkSums() error {
	block := make([]byte, BlockBytes)
	if d.Summed > d.Bytes {
		d.problem("the file ends at byte %d, and the index has sums of %d bytes: the rest is missing", d.Bytes, d.Summed)
	}
	for i := int64(0); i*BlockBytes < d.Summed; i++ {
		want, n := d.sums.partial, d.Summed-i*BlockBytes
		if int(i) < len(d.sums.full) {
			want, n = d.sums.full[i], BlockBytes
		}
		got, err := d.file.ReadAt(block[:n], i*BlockBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		sum := crc32.Checksum(block[:got], castagnoli)
		switch {
		case int64(got) < n:
			d.BadBlocks = append(d.BadBlocks, i)
		case sum != want:
			d.BadBlocks = append(d.BadBlocks, i)
			d.problem("block %d, from byte %d: crc %#08x, %#08x was written", i, i*BlockBytes, sum, want)
		}
	}
	return nil
}
