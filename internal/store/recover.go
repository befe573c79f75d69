package store

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// RecoveryInfo is what Open found.
type RecoveryInfo struct {
	WAL         wal.Recovery
	Skipped     int // records that the catalogue included already
	Batches     int // records replayed into segments
	Void        int // batches behind one that the log never took
	Damaged     []base.SegmentID
	Quarantined []string
	Took        time.Duration
}

// Recovery tells what Open found.
func (s *Store) Recovery() RecoveryInfo { return s.recovery }

const opRecover = "open store"

// Open recovers the store in o.DataDir, whose identity was opened before, and makes it ready. It starts nothing in the
// background but the log; see Start. FORMAT.md lists the steps; their numbers are in the comments below.
func Open(o Options, id Identity) (*Store, error) {
	o.ensureDefaults()
	s := &Store{
		o: o, id: id,
		topics:         map[base.TopicID]map[base.RangeID]*rangeLog{},
		segs:           map[base.SegmentID]*segmentLog{},
		dropping:       map[base.SegmentID]*segmentLog{},
		droppingTopics: map[base.TopicID]bool{},
	}
	s.boot.Store(id.Boot)
	s.queue.wake = make(chan struct{}, 1)
	s.flusher.token = make(chan struct{}, 1)
	s.flusher.newNames = map[string]struct{}{}
	s.files = newFileCache(o.MaxOpenFiles, s.openFile, s.fail)
	r := &recovery{Store: s, suspects: map[*segmentLog][]error{}, forgot: map[*segmentLog]bool{}, homeless: map[*segmentLog][][]byte{}, started: time.Now()}
	if err := r.run(); err != nil {
		r.undo()
		return nil, base.Wrap(base.CodeInternal, opRecover, err)
	}
	return s, nil
}

// openFile is the file cache's way to a segment's file.
func (s *Store) openFile(g *segmentLog) (*segment.File, error) {
	return segment.Open(s.o.FS, s.path(g), g.fileSpec(), *g.flushed.Load(), s.o.WritebackBytes)
}

// recovery is a store while it is opened.
type recovery struct {
	*Store
	started  time.Time
	fresh    bool   // there is no catalogue
	included uint64 // LSN up to which the catalogue includes the log
	openedAt map[*segmentLog]wal.LSN
	suspects map[*segmentLog][]error  // what is wrong with files that the log may yet say were dropped
	forgot   map[*segmentLog]bool     // true: its state's file is there and of no use
	homeless map[*segmentLog][][]byte // batches whose segment has lost what comes before them
	dirtied  bool                     // something was found that the next start should not have to find again
}

func (r *recovery) run() error {
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.readCatalogue(); err != nil { // 1
		return err
	}
	for _, g := range r.allSegments() {
		if err := r.checkFile(g); err != nil { // 2
			return err
		}
		if err := r.loadState(g); err != nil { // 3
			return err
		}
	}
	if err := r.replayLog(); err != nil { // 4
		return err
	}
	if err := r.judgeDamage(); err != nil { // 5
		return err
	}
	r.settle()                                // 6
	if err := r.unlinkDropped(); err != nil { // 7
		return err
	}
	if err := r.quarantineUnknown(); err != nil { // 8
		return err
	}
	if err := r.countQuarantined(); err != nil {
		return err
	}
	if r.fresh || r.dirtied || r.logIsWide() { // 9
		if err := r.checkpoint(); err != nil && !isNoSpace(err) {
			return err
		}
	}
	r.recovery.Took = time.Since(r.started)
	r.event(Event{Kind: EventRecovered, Bytes: r.recovery.WAL.Bytes, Detail: fmt.Sprintf(
		"%d segments, %d batches replayed in %v", len(r.segs), r.recovery.Batches, r.recovery.Took.Round(time.Millisecond),
	)})
	return nil
}

// logIsWide reports whether the log's files take more of the disk than a checkpoint leaves to them. Each start begins a
// file: a node that dies again and again before it has written enough for a checkpoint would fill its disk with them.
func (r *recovery) logIsWide() bool {
	return r.wal.Stats().Start < r.wal.Reach(r.o.CheckpointBytes+r.o.WAL.FileBytes)
}

// undo closes what a failed recovery has opened.
func (r *recovery) undo() {
	if r.wal != nil {
		_ = r.wal.Close()
	}
	r.files.close()
}

func (r *recovery) prepare() error {
	for _, name := range []string{walName, topicsName} {
		if err := r.o.FS.MkdirAll(r.file(name), 0o700); err != nil {
			return err
		}
	}
	reserve, err := OpenReserve(r.o.FS, r.o.DataDir, r.o.ReserveBytes)
	if err != nil {
		return err
	}
	r.space = &space{
		fs: r.o.FS, dir: r.o.DataDir, reserve: reserve, event: r.event,
		headroom: r.o.WAL.FileBytes + r.o.FlushBytes,
	}
	if r.space.probe(0); r.space.full.Load() {
		reserve.Give() // the log's next file and what is in the log alone may need it
	}
	return nil
}

func (r *recovery) readCatalogue() error {
	b, err := vfs.ReadFile(r.o.FS, r.file(catalogueName))
	if errors.Is(err, fs.ErrNotExist) {
		r.fresh = true
		return nil
	}
	if err != nil {
		return err
	}
	r.included, err = r.decodeCatalogue(b)
	r.applied.Store(r.included)
	return err
}

// checkFile holds a segment's file against what the catalogue says of it. A file that lost its end is still good for what
// it has. Whether the loss is one turns out when the log has been read: it may say that the segment was dropped.
func (r *recovery) checkFile(g *segmentLog) error {
	extent := *g.flushed.Load()
	if extent.Pos == 0 {
		return nil
	}
	info, err := r.o.FS.Stat(r.path(g) + segment.LogSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && g.finished && info.Size == extent.Pos {
		return nil // nothing will be written to it: its readers find out what it holds
	}
	f, err := r.openFile(g)
	if err == nil {
		if g.finished {
			r.flusher.trims = append(r.flusher.trims, g)
		}
		return f.Close()
	}
	var d *segment.DamageError
	if !errors.As(err, &d) {
		return err
	}
	g.reset(d.Intact, g.commit.Load(), g.sealed.Load())
	g.damaged, g.intact = true, d.Intact.End
	r.suspects[g] = append(r.suspects[g], err)
	return nil
}

// loadState reads the state of an active segment's producers; a sealed one's is read when it is asked for.
func (r *recovery) loadState(g *segmentLog) error {
	if g.sealed.Load() >= 0 || !g.stateSaved {
		return nil
	}
	st, err := r.readState(g)
	if errors.Is(err, base.CodeCorruptData) || errors.Is(err, fs.ErrNotExist) {
		// Better no memory than a wrong one: who is not known gets UnknownProducer, never a duplicate.
		r.suspects[g] = append(r.suspects[g], err)
		r.forgot[g] = !errors.Is(err, fs.ErrNotExist)
		g.state, g.stateDirty = rangestate.NewForgetful(), true
		return nil
	}
	g.state = st
	return err
}

// settle makes every segment's figures agree with what was found.
func (r *recovery) settle() {
	for _, g := range r.allSegments() {
		g.rng.mu.Lock()
		end := g.sealed.Load()
		if end >= 0 { // the catalogue may know of a seal and of a file that was not cut yet
			g.durable.Store(min(end, g.durable.Load()))
			g.appended = min(end, g.appended)
		}
		commit := min(g.commit.Load(), g.provable())
		if end >= 0 {
			commit = g.provable()
		}
		g.commit.Store(max(commit, g.spec.Base))
		if g.state != nil {
			g.state.Commit(g.commit.Load())
		}
		if g.sealed.Load() >= 0 && !g.finished {
			r.enqueue(g)
		}
		g.rng.mu.Unlock()
		if end >= 0 && g.flushed.Load().End > end {
			r.clipBytes(g, end)
		}
	}
}

// clipBytes leaves out of a sealed segment's size what its file holds above the end and the flusher has yet to cut off. If
// the file cannot tell, the figure is put right then.
func (r *recovery) clipBytes(g *segmentLog, end int64) {
	h, err := r.files.acquire(g, false)
	if err != nil {
		return
	}
	defer r.files.release(h)
	if pos, err := h.file.PosOf(end); err == nil {
		g.rng.mu.Lock()
		g.bytes = pos
		g.rng.mu.Unlock()
	}
}
