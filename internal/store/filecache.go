package store

import (
	"container/list"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/segment"
)

// minOpenFiles is the least that the store can work with.
const minOpenFiles = 8

// maxIdleIndexes bounds the memory of the indexes of files that are open for the next reader only. Of small batches a
// file of 1 GiB has 6 MiB of index.
const maxIdleIndexes = 32 << 20

// fileCache holds the open segment files, at most max of them but for the flusher, which may go one above. A file is open
// while somebody holds a reference, while it is dirty (written and not synced: an error of the disk must meet the
// descriptor that wrote), and afterwards until room is needed, for descriptors or for indexes in memory: the one not used
// for longest goes first.
type fileCache struct {
	max  int
	open func(*segmentLog) (*segment.File, error)
	fail func(error) error

	mu     sync.Mutex
	idle   *list.List             // of *openFile without references and clean, least recently used first
	memory int64                  // of their indexes
	all    map[*openFile]struct{} // those that an acquire can find
	closed bool
}

// openFile is one open file, or one that is being opened.
type openFile struct {
	cache *fileCache
	seg   *segmentLog
	ready chan struct{} // closed when file or err is set
	file  *segment.File
	err   error

	// Guarded by cache.mu.
	refs     int
	dirty    bool
	detached bool          // no longer in seg.handle: closed with its last reference
	elem     *list.Element // in cache.idle
	memory   int64         // of the indexes, as counted when it became idle
}

func newFileCache(max int, open func(*segmentLog) (*segment.File, error), fail func(error) error) *fileCache {
	return &fileCache{max: max, open: open, fail: fail, idle: list.New(), all: map[*openFile]struct{}{}}
}

// acquire returns the segment's file, opened if need be, with a reference. Readers are refused with CodeBusy when every
// open file is in use; the flusher is not.
func (c *fileCache) acquire(g *segmentLog, flusher bool) (*openFile, error) {
	c.mu.Lock()
	if h := g.handle; h != nil {
		c.refLocked(h)
		c.mu.Unlock()
		<-h.ready
		if h.err != nil {
			return nil, h.err
		}
		return h, nil
	}
	if g.gone {
		c.mu.Unlock()
		return nil, base.Errorf(base.CodeNotReplica, "open segment file", "segment %s has been removed from this node", g.spec.Segment)
	}
	if c.closed {
		c.mu.Unlock()
		return nil, base.Errorf(base.CodeShuttingDown, "open segment file", "the store is closed")
	}
	var victim *openFile
	if len(c.all) >= c.max {
		if victim = c.evictLocked(); victim == nil && !flusher {
			c.mu.Unlock()
			return nil, base.Errorf(base.CodeBusy, "open segment file", "all of %d open files are in use", c.max).
				WithHint("raise max_open_files, or retry")
		}
	}
	h := &openFile{cache: c, seg: g, ready: make(chan struct{}), refs: 1}
	g.handle = h
	c.all[h] = struct{}{}
	c.mu.Unlock()

	c.closeFile(victim)
	h.file, h.err = c.open(g)
	close(h.ready)
	if h.err != nil {
		c.mu.Lock()
		c.detachLocked(h)
		c.mu.Unlock()
		return nil, h.err
	}
	return h, nil
}

// ref takes one more reference to a file that the caller holds.
func (c *fileCache) ref(h *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refLocked(h)
}

func (c *fileCache) refLocked(h *openFile) {
	h.refs++
	c.unidleLocked(h)
}

func (c *fileCache) unidleLocked(h *openFile) {
	if h.elem != nil {
		c.idle.Remove(h.elem)
		h.elem = nil
		c.memory -= h.memory
	}
}

// evictLocked takes the least recently used idle file out of the cache; the caller closes it.
func (c *fileCache) evictLocked() *openFile {
	e := c.idle.Front()
	if e == nil {
		return nil
	}
	h := e.Value.(*openFile)
	c.detachLocked(h)
	return h
}

// detachLocked makes h one that the next acquire does not find.
func (c *fileCache) detachLocked(h *openFile) {
	if h.detached {
		return
	}
	h.detached = true
	delete(c.all, h)
	if h.seg.handle == h {
		h.seg.handle = nil
	}
	c.unidleLocked(h)
}

// release gives a reference back.
func (c *fileCache) release(h *openFile) {
	c.mu.Lock()
	h.refs--
	victims := c.settleLocked(h)
	c.mu.Unlock()
	for _, v := range victims {
		c.closeFile(v)
	}
}

// settleLocked puts a file without references where it belongs, and returns those that are to be closed.
func (c *fileCache) settleLocked(h *openFile) (victims []*openFile) {
	switch {
	case h.refs > 0:
		return nil
	case h.detached:
		return []*openFile{h}
	case h.dirty && !c.closed:
		return nil
	}
	if len(c.all) > c.max || c.closed { // the flusher's one above, or there is no next time
		c.detachLocked(h)
		return []*openFile{h}
	}
	if h.elem == nil {
		h.elem = c.idle.PushBack(h)
		h.memory = h.file.Memory()
		c.memory += h.memory
	}
	for c.memory > maxIdleIndexes && c.idle.Len() > 1 {
		victims = append(victims, c.evictLocked())
	}
	return victims
}

// setDirty pins the file until it is synced. It is the flusher's to call, with a reference.
func (c *fileCache) setDirty(h *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.dirty = true
}

// setClean ends what setDirty began; the reference is still the caller's to release.
func (c *fileCache) setClean(h *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.dirty = false
}

// forget closes the segment's file as soon as nobody holds it: the segment is gone.
func (c *fileCache) forget(g *segmentLog) {
	c.mu.Lock()
	g.gone = true
	h := g.handle
	if h == nil {
		c.mu.Unlock()
		return
	}
	h.dirty = false
	idle := h.refs == 0
	c.detachLocked(h)
	c.mu.Unlock()
	if idle {
		c.closeFile(h)
	}
}

// closeFile closes a file that nobody can reach any more. A failed close may hide a failed write, so it is the end.
func (c *fileCache) closeFile(h *openFile) {
	if h == nil || h.file == nil {
		return
	}
	if err := h.file.Close(); err != nil {
		_ = c.fail(base.Wrap(base.CodeInternal, "close segment file", err))
	}
}

// close closes what nobody holds and lets the rest go with its last reference.
func (c *fileCache) close() {
	c.mu.Lock()
	c.closed = true
	var unused []*openFile
	for h := range c.all {
		if h.refs == 0 {
			unused = append(unused, h)
		}
	}
	for _, h := range unused {
		c.detachLocked(h)
	}
	c.mu.Unlock()
	for _, h := range unused {
		c.closeFile(h)
	}
}

// figures tells how many files are open.
func (c *fileCache) figures() (open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}
