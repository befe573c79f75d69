package segment

import (
	"os"

	"github.com/eastguard/eastguard/internal/vfs"
)

// sidecar is the writer's note of one index file: what it describes and how long it is. What lies behind len is garbage
// of a future that did not come, and will be overwritten.
type sidecar struct {
	saved   int64 // file position up to which its pages describe the segment
	len     int64
	entries int // closed entries in the pages
	sums    int // full sums in the pages
}

// Save writes what the indexes learnt since the last Save, as one page each. The open chunk is closed by it. With sync,
// the pages are durable on return; their files' names are when the directory has been synced.
func (f *File) Save(sync bool) error {
	if err := f.saveIndex(sync); err != nil {
		return err
	}
	return f.saveTime(sync)
}

func (f *File) saveIndex(sync bool) error {
	c := &f.index
	if c.saved == f.extent.Pos {
		return nil
	}
	f.x.chunks.close()
	fresh, sums := f.x.chunks.closed[c.entries:], f.s.full[c.sums:]
	p := f.page(kindIndex, c, len(fresh))
	p.sums, p.partial = len(sums), f.s.partial
	b := p.encode(nil, func(b []byte) []byte {
		for i := range fresh {
			b = appendIndexEntry(b, &fresh[i])
		}
		for _, s := range sums {
			b = append(b, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
		}
		return b
	})
	if err := writeAt(f.fs, f.path+IndexSuffix, b, c.len, sync); err != nil {
		return err
	}
	*c = sidecar{saved: f.extent.Pos, len: c.len + int64(len(b)), entries: len(f.x.chunks.closed), sums: len(f.s.full)}
	return nil
}

func (f *File) saveTime(sync bool) error {
	c := &f.time
	if c.saved == f.extent.Pos {
		return nil
	}
	f.x.times.close()
	fresh := f.x.times.closed[c.entries:]
	b := f.page(kindTime, c, len(fresh)).encode(nil, func(b []byte) []byte {
		for i := range fresh {
			b = appendTimeEntry(b, &fresh[i])
		}
		return b
	})
	if err := writeAt(f.fs, f.path+TimeSuffix, b, c.len, sync); err != nil {
		return err
	}
	*c = sidecar{saved: f.extent.Pos, len: c.len + int64(len(b)), entries: len(f.x.times.closed)}
	return nil
}

func (f *File) page(kind byte, c *sidecar, entries int) page {
	return page{kind: kind, segment: f.spec.Segment, base: f.spec.Base, from: c.saved, to: f.extent.Pos, end: f.extent.End, entries: entries}
}

func writeAt(fs vfs.FS, name string, b []byte, at int64, sync bool) (err error) {
	h, err := fs.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := h.Close(); err == nil {
			err = vfs.Synced(e)
		}
	}()
	if _, err := h.WriteAt(b, at); err != nil {
		return err
	}
	if sync {
		return vfs.Synced(h.SyncData())
	}
	return nil
}
