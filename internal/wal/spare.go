package wal

import (
	"errors"
	"os"
	"time"

	"github.com/eastguard/eastguard/internal/vfs"
)

// A file that was written before, if only with zeros, takes a sync that changes no metadata. Trimmed files are such
// files; before the first one is trimmed the filler makes one, in the time that the log leaves it. When the log
// needs a file and there is none, it makes one that is only preallocated, and does not wait for the filler.

const (
	fillChunk = int64(len(zeros))
	fillPause = time.Millisecond      // at least, between two chunks
	fillYield = 20 * time.Millisecond // when the log writes faster than the filler
)

// askForSpare wakes the filler once a quarter of the file is used and no other is ready.
func (l *Log) askForSpare(t *tail) {
	if t.off > t.file.size/4 && !l.files.haveSpare() {
		nudge(l.refill)
	}
}

// fillSpares is the filler.
func (l *Log) fillSpares() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.refill:
		}
		if l.files.haveSpare() || l.Err() != nil {
			continue
		}
		var full noSpaceError
		if err := l.fillSpare(); errors.As(err, &full) {
			l.o.Logger.Warn("no space to prepare the next wal file", "dir", l.o.Dir, "error", err)
		} else if err != nil {
			l.fail(err)
		}
	}
}

// fillSpare makes one spare file. One that is left unfinished by Close is as good as a preallocated one.
func (l *Log) fillSpare() error {
	sp, err := l.files.create(l.o.FileBytes, 0)
	if err != nil {
		return err
	}
	f, err := l.o.FS.OpenFile(l.files.path(sp.name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(l.fill(f, sp.size), f.Close()); err != nil {
		return err
	}
	l.files.giveBack(sp)
	return nil
}

// fill writes zeros to f, a chunk at a time, until it is full or the log closes.
func (l *Log) fill(f vfs.File, size int64) error {
	for off := int64(0); off < size; off += fillChunk {
		started := time.Now()
		if _, err := f.WriteAt(zeros[:min(fillChunk, size-off)], off); err != nil {
			return err
		}
		if err := f.SyncData(); err != nil {
			return err
		}
		if !l.pauseFill(time.Since(started)) {
			break
		}
	}
	return nil
}

// pauseFill leaves the disk to the log for three times as long as the filler had it, and for as long as the log is
// the busier of the two; false means that the log closes.
func (l *Log) pauseFill(had time.Duration) bool {
	wait := max(3*had, fillPause)
	for {
		before := l.written.Load()
		select {
		case <-l.stop:
			return false
		case <-time.After(wait):
		}
		if l.written.Load()-before < fillChunk {
			return true
		}
		wait = fillYield
	}
}
