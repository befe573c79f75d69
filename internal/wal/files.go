package wal

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/eastguard/eastguard/internal/vfs"
)

// files is the set of a log's files: those that hold log, oldest first, and spare ones to write next. The log's
// flusher adds to the live ones, whoever calls TrimTo takes away from them; the lists are under mu, the I/O is not.
type files struct {
	o Options

	mu     sync.Mutex
	live   []live
	spares []spare
	seq    uint64 // the highest number in use

	trim chan struct{} // of capacity one; holds the right to trim, so that files go oldest first
}

// live is a file that holds log.
type live struct {
	name    string
	base    LSN
	size    int64
	damaged bool
}

// spare is a file whose contents mean nothing.
type spare struct {
	name string
	size int64
}

// file is the file being written.
type file struct {
	vfs.File
	seed uint32
	base LSN
	size int64
}

func newFiles(o Options) *files { return &files{o: o, trim: make(chan struct{}, 1)} }

func (s *files) path(name string) string { return filepath.Join(s.o.Dir, name) }

func (s *files) nextSeq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	return s.seq
}

// begin opens a file for the log from base on, with room for need bytes of frames. When it returns, the file's
// header and its name are durable: a file that has the name of one in use always has a header.
func (s *files) begin(from LSN, need, fill int64) (*file, error) {
	sp, err := s.take(need, fill)
	if err != nil {
		return nil, err
	}
	return s.dress(sp, from)
}

// take finds a spare file with room for need bytes of frames, or makes one.
func (s *files) take(need, fill int64) (spare, error) {
	size := s.o.FileBytes
	if need > size-headerBytes { // a file of its own
		return s.create(pages(headerBytes+need), 0)
	}
	s.mu.Lock()
	if n := len(s.spares); n > 0 {
		sp := s.spares[n-1]
		s.spares = s.spares[:n-1]
		s.mu.Unlock()
		return sp, nil
	}
	s.mu.Unlock()
	sp, err := s.create(size, min(fill, size))
	for short := size; short > pages(headerBytes+need) && isNoSpaceError(err); { // a short file is better than none: what frees space is logged, too
		short = max(pages(short/shorter), pages(headerBytes+need))
		sp, err = s.create(short, 0)
	}
	return sp, err
}

// shorter is how much shorter each file is that is tried when there is no space.
const shorter = 64

func isNoSpaceError(err error) bool {
	var full noSpaceError
	return errors.As(err, &full)
}

func pages(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

func (s *files) giveBack(sp spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spares = append(s.spares, sp)
}

// create makes a spare file of its final size and writes zeros to its first fill bytes. Nothing of it is durable
// yet: whoever writes to it next syncs it, and recovery removes a spare file of a wrong size.
func (s *files) create(size, fill int64) (spare, error) {
	sp := spare{name: spareName(s.nextSeq()), size: size}
	f, err := s.o.FS.OpenFile(s.path(sp.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return spare{}, err
	}
	err = f.Preallocate(0, size)
	for off := int64(0); err == nil && off < fill; off += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), fill-off)], off)
	}
	if isNoSpace(err) {
		err = noSpaceError{err}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return spare{}, errors.Join(err, s.o.FS.Remove(s.path(sp.name)))
	}
	return sp, nil
}

// noSpaceError is a full disk, met before anything that mattered was written: the log is as it was. A disk that is
// full when something is synced is another matter, and not this error.
type noSpaceError struct{ error }

func (e noSpaceError) Unwrap() error { return e.error }

// zeros is what files are filled with.
var zeros [256 << 10]byte

// dress turns a spare file into the log's next one: header, name, directory, each durable before the next.
func (s *files) dress(sp spare, from LSN) (*file, error) {
	id, err := s.o.newID()
	if err != nil {
		return nil, err
	}
	h := header{seq: s.nextSeq(), id: id, base: from, size: sp.size, uuid: s.o.UUID}
	name := logName(h.seq, h.id)

	f, err := s.o.FS.OpenFile(s.path(sp.name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(h.encode(), 0); isNoSpace(err) {
		s.giveBack(sp)
		return nil, errors.Join(noSpaceError{err}, f.Close())
	}
	if err == nil {
		err = f.SyncData()
	}
	if err == nil {
		err = s.o.FS.Rename(s.path(sp.name), s.path(name))
	}
	if err == nil {
		err = s.o.FS.SyncDir(s.o.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = append(s.live, live{name: name, base: from, size: sp.size})
	return &file{File: f, seed: h.id.seed(), base: from, size: sp.size}, nil
}

// trimTo recycles the files that lie wholly below lsn, oldest first. Each step is durable before the next: after a
// crash the files that are left are the newest ones without a gap, and no file is written to again while a name
// that a crash may bring back says that it holds log.
func (s *files) trimTo(lsn LSN) error {
	s.trim <- struct{}{}
	defer func() { <-s.trim }()
	for {
		old, ok := s.oldestBelow(lsn)
		if !ok {
			return nil
		}
		if err := s.retire(old); err != nil {
			return err
		}
	}
}

// oldestBelow takes the oldest file out of the list if the next one begins at or below lsn.
func (s *files) oldestBelow(lsn LSN) (live, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) < 2 || s.live[1].base > lsn {
		return live{}, false
	}
	old := s.live[0]
	s.live = s.live[1:]
	return old, true
}

// reach goes back from the newest file.
func (s *files) reach(bytes int64) (begin LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.live) - 1; i >= 0; i-- {
		bytes -= s.live[i].size
		if bytes < 0 && i < len(s.live)-1 {
			break
		}
		begin = s.live[i].base
	}
	return begin
}

func (s *files) retire(old live) error {
	sp := spare{size: old.size}
	var err error
	switch {
	case old.damaged: // evidence, and perhaps a bad disk: set aside, not used again
		err = s.o.FS.Rename(s.path(old.name), s.path(old.name+damagedSuffix))
	case old.size == s.o.FileBytes && s.wantSpare():
		sp.name = spareName(s.nextSeq())
		err = s.o.FS.Rename(s.path(old.name), s.path(sp.name))
	default:
		err = s.o.FS.Remove(s.path(old.name))
	}
	if err == nil {
		err = s.o.FS.SyncDir(s.o.Dir)
	}
	if err == nil && sp.name != "" {
		s.giveBack(sp)
	}
	return err
}

const damagedSuffix = ".damaged"

func (s *files) wantSpare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spares) < s.o.Spare
}

func (s *files) haveSpare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spares) > 0
}

// adopt takes over what recovery found and puts t where the log goes on: in the last file if nothing was ever
// written to it, else in a new one.
func (s *files) adopt(r *recovery, t *tail) error {
	s.seq = r.seq
	for _, f := range r.found {
		s.live = append(s.live, live{name: f.name, base: f.base, size: f.size, damaged: f.damaged})
	}
	if err := s.sortSpares(r.spares); err != nil {
		return err
	}
	if n := len(r.found); n > 0 && r.found[n-1].blank && !r.found[n-1].damaged {
		last := r.found[n-1]
		f, err := s.o.FS.OpenFile(s.path(last.name), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		t.use(&file{File: f, seed: last.seed, base: last.base, size: last.size})
		return nil
	}
	f, err := s.begin(r.at, reserveBytes, firstFill)
	if err == nil {
		t.use(f)
	}
	return err
}

// sortSpares keeps the spare files that are of use and removes the others.
func (s *files) sortSpares(spares []spare) error {
	for _, sp := range spares {
		if sp.size == s.o.FileBytes && len(s.spares) < s.o.Spare {
			s.spares = append(s.spares, sp)
			continue
		}
		if err := s.o.FS.Remove(s.path(sp.name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *files) figures(st *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Files, st.Spares = len(s.live), len(s.spares)
	for _, l := range s.live {
		st.Bytes += l.size
	}
	for _, sp := range s.spares {
		st.Bytes += sp.size
	}
	if len(s.live) > 0 {
		st.Start = s.live[0].base
	}
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
