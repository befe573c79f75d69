package store

import (
	"os"
	"path/filepath"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// syncFSAbove is the number of files, or of directories with new names, above which one sync of the file system is cheaper
// than a sync of each.
const syncFSAbove = 64

const opCheckpoint = "checkpoint"

// checkpoint makes all of the log so far unnecessary, and trims it.
func (s *Store) checkpoint() error {
	s.takeToken()
	defer s.giveToken()
	return s.checkpointLocked()
}

// checkpointLocked goes in this order, each step relying on the ones before:
//
//  1. note how far the log is in the state
//  2. write every segment's batches up to there, idle segments' too, so that none can hold the log back
//  3. sync the files, the states of producers and the names of new files and directories
//  4. write the catalogue, which says how far each file reaches
//  5. take off the files of sealed segments what lies above their ends, which the catalogue knows now
//  6. trim the log up to what was noted
func (s *Store) checkpointLocked() error {
	if err := s.err(); err != nil {
		return err // a sync that failed is never tried again
	}
	covered := s.sinceCheckpoint.Load()
	lsn := s.applied.Load()
	if err := s.unlinkDropped(); err != nil {
		return err
	}
	if err := s.flushAll(); err != nil {
		return err
	}
	states, err := s.syncAll()
	if err != nil {
		return err
	}
	if err := s.writeCatalogue(lsn); err != nil {
		return base.Wrap(base.CodeInternal, opCheckpoint, err)
	}
	s.forgetStates(states)
	if err := s.trimFiles(); err != nil {
		return base.Wrap(base.CodeInternal, opCheckpoint, err)
	}
	if !s.logClosed {
		if err := s.wal.TrimTo(wal.LSN(lsn)); err != nil {
			return base.Wrap(base.CodeInternal, opCheckpoint, err)
		}
	}
	s.sinceCheckpoint.Add(-covered)
	s.checkpoints.Add(1)
	s.space.probe(s.dirty.Load())
	s.event(Event{Kind: EventCheckpoint, Bytes: covered})
	return nil
}

// savedState is a range's state on its way to its file.
type savedState struct {
	seg   *segmentLog
	bytes []byte
}

// syncAll makes everything that the catalogue is about to rely on durable: one by one, or by one sync of the whole
// file system when there is much.
func (s *Store) syncAll() ([]savedState, error) {
	states := s.changedStates()
	whole := 3*len(s.flusher.dirtyFiles)+len(states) > s.o.syncFSAboveForTesting
	for _, st := range states {
		if err := s.writeState(st, !whole); err != nil {
			s.statesUnsaved(states)
			return nil, err
		}
	}
	if err := s.syncFiles(whole); err != nil {
		s.statesUnsaved(states)
		return nil, err
	}
	for _, st := range states {
		name := s.path(st.seg) + stateSuffix
		if err := s.o.FS.Rename(name+tmpSuffix, name); err != nil {
			return nil, base.Wrap(base.CodeInternal, "rename range state", vfs.Synced(err))
		}
	}
	if err := s.syncNames(whole || len(s.flusher.newNames) > s.o.syncFSAboveForTesting); err != nil {
		return nil, err
	}
	for _, st := range states {
		st.seg.rng.mu.Lock()
		st.seg.stateSaved = true
		st.seg.rng.mu.Unlock()
	}
	return states, nil
}

// changedStates takes the states that differ from what their files say, as of what is in the segment files. The log has
// the rest.
func (s *Store) changedStates() []savedState {
	var states []savedState
	for _, g := range s.allSegments() {
		g.rng.mu.Lock()
		if g.state != nil && g.stateDirty && g.opened {
			st := g.state.Clone()
			st.Commit(min(g.commit.Load(), g.flushed.Load().End))
			st.Rollback(g.flushed.Load().End)
			g.stateDirty = st.End() < g.state.End()
			states = append(states, savedState{g, st.Encode()})
		}
		g.rng.mu.Unlock()
	}
	return states
}

func (s *Store) writeState(st savedState, sync bool) (err error) {
	if err := s.makeName(st.seg.rng); err != nil {
		return err
	}
	f, err := s.o.FS.OpenFile(s.path(st.seg)+stateSuffix+tmpSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return base.Wrap(base.CodeInternal, "write range state", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = base.Wrap(base.CodeInternal, "write range state", vfs.Synced(e))
		}
	}()
	if _, err = f.WriteAt(st.bytes, 0); err == nil && sync {
		err = vfs.Synced(f.SyncData())
	}
	if err != nil {
		return base.Wrap(base.CodeInternal, "write range state", err)
	}
	return nil
}

func (s *Store) statesUnsaved(states []savedState) {
	for _, st := range states {
		st.seg.rng.mu.Lock()
		st.seg.stateDirty = true
		st.seg.rng.mu.Unlock()
	}
}

// forgetStates takes the states of sealed segments out of memory: they are on disk now and will not change.
func (s *Store) forgetStates(states []savedState) {
	for _, st := range states {
		g := st.seg
		g.rng.mu.Lock()
		if g.finished && !g.stateDirty {
			g.state = nil
		}
		g.rng.mu.Unlock()
	}
}

func (s *Store) syncFiles(whole bool) error {
	files := s.flusher.dirtyFiles
	if whole {
		for _, h := range files {
			if err := h.file.Save(false); err != nil {
				return base.Wrap(base.CodeInternal, "save index", err)
			}
		}
		if err := s.o.FS.SyncFS(s.topicsDir()); err != nil {
			return base.Wrap(base.CodeInternal, "sync file system", vfs.Synced(err))
		}
		s.syncs.Add(1)
	}
	for len(s.flusher.dirtyFiles) > 0 {
		h := s.flusher.dirtyFiles[0]
		if whole {
			h.file.MarkSynced()
			s.files.setClean(h)
			s.files.release(h)
		} else if err := s.syncFile(h); err != nil {
			return err
		}
		s.flusher.dirtyFiles = s.flusher.dirtyFiles[1:]
	}
	s.flusher.dirtyFiles = nil
	return nil
}

// tmpSuffix is what vfs.WriteFileAtomic, and this package, write to before they rename.
const tmpSuffix = ".tmp"

// writeCatalogue replaces the catalogue.
func (s *Store) writeCatalogue(lsn uint64) error {
	return vfs.WriteFileAtomic(s.o.FS, filepath.Join(s.o.DataDir, catalogueName), s.encodeCatalogue(lsn), 0o600)
}
