package store

import (
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/segment"
)

// rangeLog is what the node knows of one range, whatever its segments.
type rangeLog struct {
	ref base.RangeRef

	// mu guards the fields below and the fields of the range's segments that say so.
	mu        sync.Mutex
	fenced    base.Epoch // appends of this epoch and below are refused, for ever; grows
	trimmedTo int64      // end of the highest segment that was dropped; grows
	inflow    meter      // of what was appended
	dropped   bool       // the drop of the topic was asked for: its record is in the log, or nothing comes before it

	// list holds the durable segments by base, for readers. A new slice replaces it; mu is held for that.
	list atomic.Pointer[[]*segmentLog]

	waiting waiters

	hasDir bool // made, its name among those to be synced or synced; the flusher's
}

// segmentLog is one segment. Its fields are in groups by who may touch them.
type segmentLog struct {
	spec SegmentSpec // State is left out. Immutable
	boot uint64      // in which it was opened here. Immutable
	rng  *rangeLog

	// Guarded by rng.mu.
	opened     bool // its record is durable
	dropped    bool
	broken     bool // the log took a batch not, for lack of space: what was queued behind it is void
	appended   int64
	bytes      int64 // of batches up to appended; also where the next one will lie in the file
	firstMs    int64
	lastMs     int64
	maxTime    int64
	state      *rangestate.State // as of appended; nil = empty, or in .state (see stateOnDisk)
	stateDirty bool              // state is not in .state as of flushed
	stateSaved bool              // there is a .state
	sealing    int64             // a seal at this end was asked for; -1 = none. Appends are refused from then on
	cause      base.Cause
	damaged    bool   // what this copy held at and above intact is gone: it ends there
	rotten     bool   // a block does not match its sum; the others may be read
	intact     int64  // valid when damaged or rotten
	queued     bool   // in the flush queue
	flushSeq   uint64 // the tail's entries below it are in the file
	finished   bool   // sealed, and all that belongs in its files is there, synced
	mending    bool   // sealed and short, and being given what it lacks

	// Written under rng.mu, read by anybody.
	durable atomic.Int64 // end of what the log made durable
	commit  atomic.Int64 // readers may see below; at most durable, or inMemory where the topic wants no more
	sealed  atomic.Int64 // -1 while active
	// What the log has taken, durable or not; and how long the last batch was on its way to being durable, in ns.
	inMemory, syncedIn atomic.Int64
	checksum           atomic.Pointer[uint32] // of a whole sealed copy; nil until somebody asked
	flushed            atomic.Pointer[segment.Extent]

	tail segment.Tail // pushed under rng.mu, read without

	// Guarded by fileCache.mu.
	handle *openFile
	gone   bool // unlinked, or about to be: not to be opened again, or its space would not be freed
}

// entryOverhead is what an entry in memory costs beside its bytes.
const entryOverhead = 320

func newSegmentLog(rng *rangeLog, spec SegmentSpec, boot uint64) *segmentLog {
	spec.State = nil
	s := &segmentLog{spec: spec, boot: boot, rng: rng, appended: spec.Base, sealing: -1}
	s.durable.Store(spec.Base)
	s.inMemory.Store(spec.Base)
	s.commit.Store(spec.Base)
	s.sealed.Store(-1)
	s.flushed.Store(&segment.Extent{End: spec.Base})
	return s
}

func (s *segmentLog) fileSpec() segment.Spec {
	return segment.Spec{Segment: s.spec.Segment, Epoch: s.spec.Epoch, Base: s.spec.Base}
}

// segments is the range's segments by base, as of now; not to be changed.
func (r *rangeLog) segments() []*segmentLog {
	if l := r.list.Load(); l != nil {
		return *l
	}
	return nil
}

// insert shows a segment to readers. mu is held.
func (r *rangeLog) insert(s *segmentLog) {
	list := append(slices.Clone(r.segments()), s)
	slices.SortFunc(list, func(a, b *segmentLog) int {
		if a.spec.Base != b.spec.Base {
			return int(max(-1, min(1, a.spec.Base-b.spec.Base)))
		}
		return int(a.spec.Epoch) - int(b.spec.Epoch)
	})
	r.list.Store(&list)
}

// remove hides a segment from readers. mu is held.
func (r *rangeLog) remove(s *segmentLog) {
	list := slices.DeleteFunc(slices.Clone(r.segments()), func(x *segmentLog) bool { return x == s })
	r.list.Store(&list)
}

// earliest is the lowest offset that may be read here.
func (r *rangeLog) earliest(list []*segmentLog) int64 {
	if len(list) > 0 {
		return list[0].spec.Base
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trimmedTo
}

// find returns the segment that holds off or, at a boundary, the newest that begins there; nil if none begins at or
// below off.
func find(list []*segmentLog, off int64) *segmentLog {
	i, _ := slices.BinarySearchFunc(list, off, func(s *segmentLog, off int64) int {
		if s.spec.Base <= off {
			return -1
		}
		return 1
	})
	if i == 0 {
		return nil
	}
	return list[i-1]
}

// The directories of a store.
func (s *Store) topicsDir() string              { return filepath.Join(s.o.DataDir, topicsName) }
func (s *Store) topicDir(t base.TopicID) string { return filepath.Join(s.topicsDir(), t.String()) }
func (s *Store) rangeDir(r base.RangeRef) string {
	return filepath.Join(s.topicDir(r.Topic), strconv.FormatUint(uint64(r.Range), 10))
}

func (s *Store) path(g *segmentLog) string {
	return segment.FileName(s.rangeDir(g.spec.Ref), g.fileSpec())
}

// rangeOf returns the range's log, nil when the node knows nothing of it.
func (s *Store) rangeOf(ref base.RangeRef) *rangeLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.topics[ref.Topic][ref.Range]
}

// makeRange returns the range's log, a new one if need be; nil when its topic was dropped.
func (s *Store) makeRange(ref base.RangeRef) *rangeLog {
	if r := s.rangeOf(ref); r != nil {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDropped(ref.Topic) {
		return nil
	}
	ranges := s.topics[ref.Topic]
	if ranges == nil {
		ranges = map[base.RangeID]*rangeLog{}
		s.topics[ref.Topic] = ranges
	}
	if ranges[ref.Range] == nil {
		ranges[ref.Range] = &rangeLog{ref: ref, fenced: -1}
	}
	return ranges[ref.Range]
}

// segmentOf returns a segment, opened or about to be; nil when there is none.
func (s *Store) segmentOf(id base.SegmentID) *segmentLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.segs[id]
}

func segmentNotFound(op string, id base.SegmentID) error {
	return base.Errorf(base.CodeSegmentNotFound, op, "segment %s is not held by this node", id)
}
