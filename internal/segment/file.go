package segment

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// The names of a segment's files are path plus one of these.
const (
	LogSuffix   = ".log"
	IndexSuffix = ".idx"
	TimeSuffix  = ".tdx"
)

// FileName is the path of a segment's files, without suffix, in dir.
func FileName(dir string, s Spec) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d", s.Segment, s.Base))
}

// DamageError says that a file does not hold what it must.
type DamageError struct {
	Path   string
	Pos    int64
	Intact Extent // what lies before the damage; Intact.End is an offset below which nothing is concerned
	Detail string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d, above offset %d: %s", e.Path, e.Pos, e.Intact.End, e.Detail)
}

// Is makes a DamageError a base.CodeCorruptData.
func (e *DamageError) Is(target error) bool { return target == error(base.CodeCorruptData) }

// File is an open segment file with its indexes. Append, Save, Sync, Cut and Close are for one goroutine at a time (the
// writer); reads may run concurrently with them, and with each other, until Close.
type File struct {
	fs   vfs.FS
	path string // without suffix
	spec Spec
	file vfs.File
	view atomic.Pointer[view]

	// The writer's own. What the view shows is a copy of pos, end, x and s.
	extent     Extent
	x          index
	s          sums
	index      sidecar
	time       sidecar
	hinted     int64 // writeback was asked for below
	unsynced   bool  // bytes were written that no Sync has covered
	hintBytes  int64
	writevBufs [][]byte
}

// view is what readers see: how far the file is written, and how to find and check what is there. Immutable, but for
// the notes of what was checked already.
type view struct {
	Extent
	x         index
	s         sums
	verified  bits // full blocks whose sum was checked since open
	partialOK atomic.Bool
}

// Open opens the file at path (without suffix), which holds what extent says; beyond it there may be bytes of writes that
// never counted. An empty extent creates the file. A file that is not what extent says is a *DamageError; the file
// can then be opened up to its Intact extent. The caller syncs the directory of a file that was created.
func Open(fs vfs.FS, path string, spec Spec, extent Extent, writebackBytes int64) (*File, error) {
	flag := os.O_RDWR
	if extent.Pos == 0 {
		flag |= os.O_CREATE
	}
	h, err := fs.OpenFile(path+LogSuffix, flag, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &DamageError{Path: path + LogSuffix, Intact: Extent{End: spec.Base}, Detail: "the file is gone"}
	}
	if err != nil {
		return nil, err
	}
	f := &File{fs: fs, path: path, spec: spec, file: h, hintBytes: writebackBytes, hinted: extent.Pos}
	if err := f.load(extent); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return f, nil
}

// Extent is how far the file is written, as readers see it.
func (f *File) Extent() Extent { return f.view.Load().Extent }

// IndexEntries counts the entries of the sparse index.
func (f *File) IndexEntries() int { return f.view.Load().x.chunks.len() }

// PosOf returns where the batch that begins at off lies; off is in the file.
func (f *File) PosOf(off int64) (int64, error) {
	if off == f.spec.Base {
		return 0, nil
	}
	b, err := f.locate(f.view.Load(), off)
	if err == nil && b.base != off {
		err = base.Errorf(base.CodeInvalidArgument, "find batch", "%s has no batch that begins at %d", f.path, off)
	}
	return b.pos, err
}

// Handle is the open file, for sendfile.
func (f *File) Handle() vfs.File { return f.file }

// Memory estimates what the file's indexes hold, in bytes.
func (f *File) Memory() int64 {
	v := f.view.Load()
	return int64(cap(v.x.chunks.closed)*pageEntry + cap(v.x.times.closed)*pageEntry + 4*cap(v.s.full) + 8*len(v.verified) + 512)
}

// Append writes entries behind what is there and then shows them to readers. They must follow each other and what is
// there without a gap. An error leaves everything as it was: the same entries may be written again.
func (f *File) Append(entries []*Entry) error {
	if len(entries) == 0 {
		return nil
	}
	f.writevBufs = f.writevBufs[:0]
	bytes, end := int64(0), f.extent.End
	for _, e := range entries {
		if e.Base != end {
			return base.Errorf(base.CodeInternal, "write segment", "%s ends at %d, a batch at %d cannot follow", f.path, end, e.Base)
		}
		end = e.End
		bytes += int64(len(e.Bytes))
		f.writevBufs = append(f.writevBufs, e.Bytes)
	}
	if f.extent.Pos+bytes > MaxBytes || end-f.spec.Base > MaxRecords {
		return base.Errorf(base.CodeInternal, "write segment", "%s would grow beyond what its index can name", f.path)
	}
	f.unsynced = true
	_, err := f.file.WritevAt(f.writevBufs, f.extent.Pos)
	clear(f.writevBufs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f.note(e)
	}
	f.publish()
	return f.hint()
}

// note takes one written batch into extent, index and sums.
func (f *File) note(e *Entry) {
	rel, pos := uint32(e.Base-f.spec.Base), uint32(f.extent.Pos)
	f.x.addChunk(rel, pos, e.Lo, e.Hi)
	f.x.addTime(rel, pos, e.MaxTimestamp, e.AppendMs)
	f.s.add(f.extent.Pos, e.Bytes)
	f.extent = Extent{End: e.End, Pos: f.extent.Pos + int64(len(e.Bytes))}
}

// snapshot is a view of the writer's figures. verified is what an earlier view of the same bytes has noted.
func (f *File) snapshot(verified bits) *view {
	return &view{Extent: f.extent, x: f.x, s: f.s, verified: verified.grown(len(f.s.full))}
}

// publish shows the writer's figures to readers, by one atomic store.
func (f *File) publish() { f.view.Store(f.snapshot(f.view.Load().verified)) }

// hint asks for the writeback of whole stretches, so that the fsync of a checkpoint finds little left to do.
func (f *File) hint() error {
	if f.hintBytes <= 0 || f.extent.Pos-f.hinted < f.hintBytes {
		return nil
	}
	err := f.file.StartWriteback(f.hinted, f.extent.Pos-f.hinted)
	f.hinted = f.extent.Pos
	return vfs.Synced(err) // the kernel lost what it had taken: as bad as a sync that fails
}

// Sync saves the indexes and makes them and all that was written durable.
func (f *File) Sync() error {
	if err := f.Save(true); err != nil {
		return err
	}
	if err := f.file.SyncData(); err != nil {
		return vfs.Synced(err)
	}
	f.unsynced = false
	return nil
}

// MarkSynced notes that a sync of the whole file system has covered what was written and saved before it.
func (f *File) MarkSynced() { f.unsynced = false }

// Cut makes end, where a seal says that the segment ends, the file's end. No reader may see further. The bytes behind it
// stay until Trim: whoever recorded the longer extent has to record the shorter one first.
func (f *File) Cut(end int64) error {
	if end >= f.extent.End {
		return nil
	}
	v := f.view.Load()
	pos := int64(0)
	if end > f.spec.Base {
		b, err := f.locate(v, end)
		if err != nil {
			return err
		}
		if b.base != end {
			return base.Errorf(base.CodeInvalidArgument, "cut segment", "%s has no batch that begins at %d", f.path, end)
		}
		pos = b.pos
	}
	// The pages of the indexes that reach beyond pos will not be used again: check what they vouch for while they do.
	if err := f.verify(v, 0, pos); err != nil {
		return err
	}
	return f.load(Extent{End: end, Pos: pos})
}

// Trim takes the bytes behind the extent off the file, writes that never counted, and reports whether there were any.
func (f *File) Trim() (bool, error) {
	size, err := f.file.Size()
	if err != nil || size <= f.extent.Pos {
		return false, err
	}
	f.unsynced = true
	return true, f.file.Truncate(f.extent.Pos)
}

// Close closes the file. What was written since the last Sync is not lost by it, but an error of the disk would be.
func (f *File) Close() error { return vfs.Synced(f.file.Close()) }

// checkExtent refuses what no file of this format can be.
func (f *File) checkExtent(e Extent) error {
	records := e.End - f.spec.Base
	if e.Pos < 0 || e.Pos > MaxBytes || records < 0 || records > math.MaxUint32 || (e.Pos == 0) != (records == 0) {
		return base.Errorf(base.CodeCorruptData, "open segment", "%s cannot reach to byte %d, offset %d", f.path, e.Pos, e.End)
	}
	return nil
}
