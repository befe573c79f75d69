package store

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// probeBytes is how much may be appended before another look at the free space is asked for.
const probeBytes = 1 << 20

// probeMs is how old a look may become while appends come.
const probeMs = 500

// space refuses produces while the disk has no room for them. Every batch needs room twice: in the log, whose next file
// must fit (headroom), and in its segment file, for which everything in memory is waiting.
//
// Only the flusher looks at the disk, and takes and gives the reserve; those who append read what it has found.
type space struct {
	fs       vfs.FS
	dir      string
	headroom int64
	reserve  *Reserve
	event    func(Event)

	full        atomic.Bool
	free, total atomic.Int64
	spare       atomic.Int64 // of the last look: what was free beyond what it had to hold already
	since       atomic.Int64 // bytes appended since the last look
	lookedMs    atomic.Int64 // when the last look was asked for, by the clock of the appends
	due         atomic.Bool  // a look is asked for
	met         atomic.Bool  // a write to the log has met the full disk
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

// admit refuses n more bytes when the disk is full, or may be by now: then it is Busy until the flusher has looked. It
// reports whether the flusher is to be woken for a look.
func (sp *space) admit(n, dirty, nowMs int64) (look bool, err error) {
	since := sp.since.Add(n)
	age := nowMs - sp.lookedMs.Load()
	spent := since > n && 2*since > sp.spare.Load() // what a look allows it allows to one batch at least
	if spent || since > probeBytes || age > probeMs || age < -probeMs {
		sp.lookedMs.Store(nowMs)
		look = !sp.due.Swap(true)
	}
	switch {
	case sp.full.Load():
		sp.since.Add(-n)
		return look, base.Errorf(base.CodeDiskFull, opAppend, "%d bytes are free in %s, of which %d are kept for what was accepted before", sp.free.Load(), sp.dir, dirty+sp.headroom)
	case spent:
		sp.since.Add(-n)
		return look, base.Errorf(base.CodeBusy, opAppend, "the free space in %s is being looked at", sp.dir)
	}
	return look, nil
}

// tend does what was asked for since the last time; while the disk is full, a look each time. It is the flusher's.
func (sp *space) tend(dirty int64) {
	if sp.met.Swap(false) {
		sp.noSpace()
		return
	}
	if sp.due.Load() || sp.full.Load() {
		sp.probe(dirty)
	}
}

// probe looks at the disk and decides. Leaving the full state takes a little more than staying out of it, so that the
// answer does not flutter.
func (sp *space) probe(dirty int64) {
	sp.due.Store(false) // what is asked for from here on gets a look of its own
	since := sp.since.Load()
	free, total, err := sp.fs.Free(sp.dir)
	if err != nil {
		sp.spare.Store(maxFree) // the next write will tell
		return
	}
	sp.free.Store(free)
	sp.total.Store(total)
	need := dirty + sp.headroom
	sp.spare.Store(min(free, maxFree) - need)
	sp.since.Add(-since)
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

// maxFree stands for a file system that does not know how much is free.
const maxFree = 1 << 60

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

// metFull is told by the log's goroutine that a write has met the full disk; giving the reserve is left to the flusher.
func (s *Store) metFull() {
	s.space.setFull()
	s.space.met.Store(true)
	s.queue.nudge()
}

// noSpace gives the reserve to the next try. It reports whether there was a reserve to give.
func (sp *space) noSpace() bool {
	gave := sp.reserve.Give()
	sp.setFull()
	return gave
}
