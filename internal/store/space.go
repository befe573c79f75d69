package store

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// probeBytes is how much may be appended between two looks at the free space.
const probeBytes = 1 << 20

// probeMs is how old a look may become while appends come.
const probeMs = 500

// space refuses produces while the disk has no room for them. Every batch needs room twice: in the log, whose next file
// must fit (headroom), and in its segment file, for which everything in memory is waiting.
type space struct {
	fs       vfs.FS
	dir      string
	headroom int64
	reserve  *Reserve
	event    func(Event)

	full        atomic.Bool
	free, total atomic.Int64
	since       atomic.Int64 // bytes appended since the last look
	lookedMs    atomic.Int64
}

// isNoSpace reports whether err says only that the disk is full, so that the same may be tried again. A sync or a rename
// that failed is the end, whatever its reason.
func isNoSpace(err error) bool {
	var sync *vfs.SyncError
	if errors.As(err, &sync) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, base.CodeDiskFull)
}

// admit refuses n more bytes when the disk is full. It looks at the disk itself now and then; nobody else does.
func (sp *space) admit(n, dirty, nowMs int64) error {
	age := nowMs - sp.lookedMs.Load()
	if sp.since.Add(n) > probeBytes || age > probeMs || age < -probeMs || (sp.full.Load() && age > probeMs/10) {
		sp.lookedMs.Store(nowMs)
		sp.probe(dirty)
	}
	if sp.full.Load() {
		return base.Errorf(base.CodeDiskFull, opAppend, "%d bytes are free in %s, of which %d are kept for what was accepted before", sp.free.Load(), sp.dir, dirty+sp.headroom)
	}
	return nil
}

// probe looks at the disk and decides. Leaving the full state takes a little more than staying out of it, so that the
// answer does not flutter.
func (sp *space) probe(dirty int64) {
	sp.since.Store(0)
	free, total, err := sp.fs.Free(sp.dir)
	if err != nil {
		return // the next write will tell
	}
	sp.free.Store(free)
	sp.total.Store(total)
	need := dirty + sp.headroom
	switch {
	case free < need:
		sp.setFull()
	case sp.full.Load() && free >= need+sp.headroom/4+sp.missingReserve():
		if err := sp.reserve.Take(); err != nil {
			return // it did not fit after all
		}
		if sp.full.CompareAndSwap(true, false) {
			sp.event(Event{Kind: EventDiskFreed, Path: sp.dir, Bytes: free})
		}
	}
}

func (sp *space) missingReserve() int64 {
	if sp.reserve.Held() {
		return 0
	}
	return max(0, sp.reserve.bytes)
}

func (sp *space) setFull() {
	if sp.full.CompareAndSwap(false, true) {
		sp.event(Event{Kind: EventDiskFull, Path: sp.dir, Bytes: sp.free.Load(), Detail: "produces are refused; reads, trims and deletes go on"})
	}
}

// noSpace is told when a write has met the full disk: the reserve is given to the next try. It reports whether there was
// a reserve to give.
func (sp *space) noSpace() bool {
	gave := sp.reserve.Give()
	sp.setFull()
	return gave
}
