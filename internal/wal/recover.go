package wal

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Recovery is what Open found.
type Recovery struct {
	Damage   []Damage
	Start    LSN // of the oldest file held; what lay below it has been trimmed
	End      LSN // everything below is durable, except what Damage names
	Replayed int // entries given to replay
	Bytes    int64
	Took     time.Duration
}

// Damage is a stretch of the log that had been durable and cannot be read back. It may be empty: a file whose
// header or size is wrong is damage even if every frame in it is whole.
type Damage struct {
	File   string
	LSN    LSN // its beginning
	End    LSN // where the log can be read again
	Detail string
}

// noLimit is the end of a file that no later one bounds.
const noLimit = LSN(math.MaxUint64)

// recovery walks the files of a log. The numbers in its comments are the steps of FORMAT.md.
type recovery struct {
	o      Options
	replay func(LSN, uint8, []byte) error
	found  []*found
	spares []spare
	seq    uint64 // the highest number in any name

	at       LSN // the walk has come this far
	entryEnd LSN // the last entry ended here
	report   Recovery
}

// found is one file of the log as recovery found it.
type found struct {
	*reader
	name    string
	seq     uint64
	id      fileID
	known   bool // base is known, from the header or from a frame
	header  header
	broken  string // what is wrong with header or size
	damaged bool
	blank   bool // nothing has been written to it since its header
}

func (r *recovery) run() error {
	defer r.closeFiles()
	if err := r.list(); err != nil { // 1
		return err
	}
	for _, f := range r.found { // 2
		if err := r.identify(f); err != nil {
			return err
		}
	}
	if err := r.checkOrder(); err != nil {
		return err
	}
	for i, f := range r.found { // 3 to 5
		if err := r.walk(f, r.limit(i)); err != nil {
			return err
		}
	}
	r.report.End = r.at
	return r.syncAll() // 6
}

func (r *recovery) closeFiles() {
	for _, f := range r.found {
		_ = f.file.Close() // only read, or synced already
	}
}

// list opens the files of the log, oldest first.
func (r *recovery) list() error {
	entries, err := r.o.FS.ReadDir(r.o.Dir)
	if err != nil {
		return base.Wrap(base.CodeInternal, "open wal", err)
	}
	for _, e := range entries {
		if seq, id, ok := parseLogName(e.Name); ok {
			r.seq = max(r.seq, seq)
			if err := r.open(e.Name, seq, id); err != nil {
				return base.Wrap(base.CodeInternal, "open wal", err)
			}
			continue
		}
		if seq, ok := parseSpareName(e.Name); ok {
			r.seq = max(r.seq, seq)
			info, err := r.o.FS.Stat(filepath.Join(r.o.Dir, e.Name))
			if err != nil {
				return base.Wrap(base.CodeInternal, "open wal", err)
			}
			r.spares = append(r.spares, spare{name: e.Name, size: info.Size})
			continue
		}
		if strings.HasSuffix(e.Name, damagedSuffix) || e.Name == "uuid" { // the store's stamp: whose directory it is
			continue
		}
		r.o.Logger.Warn("wal directory holds a file that is not of the log; left alone", "dir", r.o.Dir, "file", e.Name)
	}
	slices.SortFunc(r.found, func(a, b *found) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

func (r *recovery) open(name string, seq uint64, id fileID) error {
	file, err := r.o.FS.OpenFile(filepath.Join(r.o.Dir, name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f := &found{reader: &reader{file: file, seed: id.seed()}, name: name, seq: seq, id: id}
	r.found = append(r.found, f)
	f.size, err = file.Size()
	return err
}

// identify reads a file's header, or finds out from its frames what the header would say.
func (r *recovery) identify(f *found) error {
	h, ok := decodeHeader(f.bytes(0, min(headerUsed, f.size)))
	switch {
	case ok && h.uuid != r.o.UUID:
		return base.Errorf(base.CodeCorruptData, "open wal", "%s belongs to disk %s, this is disk %s", filepath.Join(r.o.Dir, f.name), h.uuid, r.o.UUID).
			WithHint("the directory was copied or mounted from elsewhere; give this node its own data, or mount the right disk")
	case ok && h.version != version:
		return base.Errorf(base.CodeUnsupportedVersion, "open wal", "%s has format version %d, this broker writes %d", filepath.Join(r.o.Dir, f.name), h.version, version).
			WithHint("start the version of the broker that wrote it")
	case !ok || h.seq != f.seq || h.id != f.id:
		f.broken = "its header is damaged"
		f.known = f.guessBase()
	case h.size != f.size:
		f.broken = fmt.Sprintf("it has %d bytes and should have %d", f.size, h.size)
		f.base, f.known = h.base, true
	default:
		f.base, f.known = h.base, true
	}
	f.header = h
	return nil
}

// guessBase finds the position of the file's first byte by any frame in it: a frame states its own position.
func (f *found) guessBase() bool {
	h, off, ok := f.anyHeader()
	if ok {
		f.base = h.lsn - LSN(off-headerBytes)
	}
	return ok
}

func (f *found) holdsFrameHeader() bool {
	_, _, ok := f.anyHeader()
	return ok
}

// checkOrder refuses a directory whose files were not written by one log, and finds where the log begins: at 0 if
// the oldest file does not say.
func (r *recovery) checkOrder() error {
	if len(r.found) > 0 && r.found[0].known {
		r.at = r.found[0].base
		r.report.Start, r.entryEnd = r.at, r.at
	}
	var last *found
	for _, f := range r.found {
		if !f.known {
			continue
		}
		if last != nil && f.base < last.base {
			return base.Errorf(base.CodeCorruptData, "open wal", "%s begins at %d, before %s, which precedes it and begins at %d", f.name, f.base, last.name, last.base).
				WithHint("files of another time were mixed into %s; restore the directory as a whole", r.o.Dir)
		}
		last = f
	}
	return nil
}

// limit is where file i ended as the next file says: what lies there or above is not of the log.
func (r *recovery) limit(i int) LSN {
	for _, f := range r.found[i+1:] {
		if f.known {
			return f.base
		}
	}
	return noLimit
}

// walk replays one file up to its limit, or to the end of the log.
func (r *recovery) walk(f *found, limit LSN) error {
	switch {
	case !f.known:
		r.lose(f, limit)
		return nil
	case f.base > r.at:
		r.damage(f, f.base, "the file before it is missing or unreadable")
	}
	if err := r.walkFrames(f, limit); err != nil {
		return err
	}
	if f.broken == "" {
		return nil
	}
	if limit == noLimit { // nobody knows what else it held, so its positions are not used again
		r.damage(f, f.position(max(f.size, f.header.size)), f.broken)
	} else {
		r.damage(f, r.at, f.broken)
	}
	return nil
}

// lose reports a file of which nothing can be read. It began where the last entry before it ended; how much it held
// is bounded by its successor, and without one by the size of the largest entry.
func (r *recovery) lose(f *found, limit LSN) {
	f.base = r.at
	r.at = r.entryEnd
	if limit == noLimit {
		limit = r.at + maxEntry + LSN(r.o.FileBytes)
	}
	r.damage(f, limit, f.broken)
}

func (r *recovery) walkFrames(f *found, limit LSN) error {
	stated, scanned := limit, limit != noLimit // the next file's header states that all of this one is durable
	for r.at < limit {
		h, payload, ok := f.frameAt(r.at)
		if ok && h.end() <= limit {
			if err := r.take(h, payload); err != nil {
				return err
			}
			continue
		}
		if !scanned { // 4
			stated, scanned = f.statedAbove(r.at), true
			f.blank = r.at == f.base && !f.holdsFrameHeader()
		}
		if r.at >= stated && !f.unreadableFrom(f.offset(r.at)) { // 5
			return nil
		}
		resume, ok := f.next(r.at + align)
		switch {
		case limit != noLimit && (!ok || resume > limit):
			resume = limit
		case !ok: // unreadable to its end: what it held is unknown, so its positions are not used again
			limit = f.position(f.size)
			resume = limit
		}
		r.damage(f, resume, "bytes that had been durable are not what was written")
	}
	return nil
}

// take replays one frame.
func (r *recovery) take(f frame, payload []byte) error {
	r.at = f.end()
	if f.typ == typeMark {
		return nil
	}
	r.entryEnd = r.at
	r.report.Replayed++
	r.report.Bytes += int64(len(payload))
	return r.replay(r.at, f.kind, payload)
}

// damage reports what lies from the present position to resume, and goes on there.
func (r *recovery) damage(f *found, resume LSN, detail string) {
	d := Damage{File: f.name, LSN: r.at, End: resume, Detail: detail}
	r.o.Logger.Error("wal is damaged", "file", d.File, "lsn", uint64(d.LSN), "end", uint64(d.End), "detail", d.Detail)
	r.report.Damage = append(r.report.Damage, d)
	f.damaged = true
	r.at = resume
}

// syncAll makes durable what was read: after the death of the process alone, the end of the log may have been read
// from the kernel's memory.
func (r *recovery) syncAll() error {
	for _, f := range r.found {
		if err := f.file.SyncData(); err != nil {
			return base.Wrap(base.CodeInternal, "open wal", err)
		}
	}
	return nil
}
