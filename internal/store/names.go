package store

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// makeRangeDir makes sure that the range has a directory. That its name is durable is left to the next syncNames, which
// comes before a catalogue that relies on it; until then the log has all that is written there. A directory that is
// there already may be one that a process made which was killed: its name is as good as new.
func (s *Store) makeRangeDir(rng *rangeLog) error {
	if rng.hasDir {
		return nil
	}
	for _, dir := range []string{s.topicDir(rng.ref.Topic), s.rangeDir(rng.ref)} {
		if err := s.o.FS.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return base.Wrap(base.CodeInternal, "make range directory", err)
		}
	}
	s.flusher.newNames[s.topicsDir()] = struct{}{}
	s.flusher.newNames[s.topicDir(rng.ref.Topic)] = struct{}{}
	rng.hasDir = true
	return nil
}

// makeName prepares for a new file in the range's directory.
func (s *Store) makeName(rng *rangeLog) error {
	if err := s.makeRangeDir(rng); err != nil {
		return err
	}
	s.flusher.newNames[s.rangeDir(rng.ref)] = struct{}{}
	return nil
}

// syncNames makes the names of new directories and files durable.
func (s *Store) syncNames(whole bool) error {
	if whole {
		if err := s.o.FS.SyncFS(s.topicsDir()); err != nil {
			return base.Wrap(base.CodeInternal, "sync file system", vfs.Synced(err))
		}
		s.syncs.Add(1)
		clear(s.flusher.newNames)
		return nil
	}
	for _, dir := range slices.Sorted(maps.Keys(s.flusher.newNames)) {
		if err := s.syncDir(dir); err != nil {
			return err
		}
		delete(s.flusher.newNames, dir)
	}
	return nil
}

// syncDir syncs a directory that may have been removed since.
func (s *Store) syncDir(dir string) error {
	if err := s.o.FS.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return base.Wrap(base.CodeInternal, "sync directory", vfs.Synced(err))
	}
	s.syncs.Add(1)
	return nil
}
