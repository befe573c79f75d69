package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/vfs"
)

// quarantine moves a file or directory out of the way, under the number of this boot, and says so. Nothing here is ever
// deleted: that metadata does not know a file proves nothing about the file.
func (s *Store) quarantine(path string) error {
	rel, err := filepath.Rel(s.o.DataDir, path)
	if err != nil {
		return err
	}
	to := filepath.Join(s.o.DataDir, quarantineName, strconv.FormatUint(s.boot.Load(), 10), rel)
	if err := s.o.FS.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := s.o.FS.Rename(path, to); err != nil {
		return err
	}
	if err := errors.Join(s.o.FS.SyncDir(filepath.Dir(to)), s.o.FS.SyncDir(filepath.Dir(path))); err != nil {
		return err
	}
	s.recovery.Quarantined = append(s.recovery.Quarantined, to)
	s.event(Event{Kind: EventQuarantined, Path: to, Detail: "the catalogue does not know it, or it is damaged"})
	return nil
}

// countQuarantined counts the files that this and earlier starts have put aside and that nobody has taken away since.
func (r *recovery) countQuarantined() error {
	n, err := countFiles(r.o.FS, r.file(quarantineName))
	r.quarantined.Store(n)
	return err
}

func countFiles(fs vfs.FS, dir string) (n int64, err error) {
	entries, err := fs.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		if !e.IsDir {
			n++
			continue
		}
		below, err := countFiles(fs, filepath.Join(dir, e.Name))
		if err != nil {
			return n, err
		}
		n += below
	}
	return n, err
}

// quarantineUnknown looks at every name under topics/ and moves away what the catalogue does not account for.
func (r *recovery) quarantineUnknown() error {
	known := r.knownFiles()
	topics, err := r.o.FS.ReadDir(r.topicsDir())
	if err != nil {
		return err
	}
	for _, t := range topics {
		dir := filepath.Join(r.topicsDir(), t.Name)
		switch {
		case t.Name == stampName:
		case !t.IsDir || known[dir] == nil:
			err = r.quarantineOrRemove(dir)
		default:
			err = r.quarantineInTopic(dir, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) quarantineInTopic(dir string, known map[string]map[string]bool) error {
	ranges, err := r.o.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range ranges {
		path := filepath.Join(dir, e.Name)
		names := known[path]
		if !e.IsDir || names == nil {
			if err := r.quarantineOrRemove(path); err != nil {
				return err
			}
			continue
		}
		files, err := r.o.FS.ReadDir(path)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !names[f.Name] {
				if err := r.quarantineOrRemove(filepath.Join(path, f.Name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// quarantineOrRemove removes what this program writes before it renames: such a file was never the truth.
func (r *recovery) quarantineOrRemove(path string) error {
	if strings.HasSuffix(path, tmpSuffix) {
		return r.o.FS.Remove(path)
	}
	return r.quarantine(path)
}

// knownFiles lists the directories that may exist, and for each range's the names in it.
func (r *recovery) knownFiles() map[string]map[string]bool {
	known := map[string]map[string]bool{}
	for t, ranges := range r.topics {
		known[r.topicDir(t)] = map[string]bool{}
		for _, rng := range ranges {
			known[r.rangeDir(rng.ref)] = map[string]bool{}
		}
	}
	for _, g := range r.segs {
		dir, name := filepath.Split(r.path(g))
		for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix, stateSuffix} {
			known[filepath.Clean(dir)][name+suffix] = true
		}
	}
	return known
}

// salvage keeps, out of the way, batches whose segment has lost what comes before them: they were acked and may be the
// only copies, but the segment cannot hold them.
func (r *recovery) salvage(g *segmentLog, batches [][]byte) error {
	if len(batches) == 0 {
		return nil
	}
	dir := r.file(filepath.Join(quarantineName, strconv.FormatUint(r.id.Boot, 10)))
	if err := r.o.FS.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%d-%d.salvaged", g.spec.Segment, g.spec.Base))
	if err := vfs.WriteFileAtomic(r.o.FS, name, slices.Concat(batches...), 0o600); err != nil {
		return err
	}
	r.recovery.Quarantined = append(r.recovery.Quarantined, name)
	r.event(Event{Kind: EventQuarantined, Ref: g.spec.Ref, Segment: g.spec.Segment, Path: name, Detail: "acked batches behind damage"})
	return nil
}

// noteRot is told of a block that does not match its sum. The rest of the file goes on being read, but the copy no longer
// vouches for an extent.
func (s *Store) noteRot(g *segmentLog, d *segment.DamageError) {
	g.rng.mu.Lock()
	first := !g.rotten
	if first || d.Intact.End < g.intact {
		g.intact = d.Intact.End
	}
	g.rotten = true
	g.rng.mu.Unlock()
	if first {
		s.event(Event{Kind: EventDamage, Ref: g.spec.Ref, Segment: g.spec.Segment, Path: d.Path, Detail: d.Error()})
	}
}
