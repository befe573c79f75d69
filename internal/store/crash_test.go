package store

import (
	"bytes"
	"context"
	"fmt"
	oldrand "math/rand"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// soak reports whether the long counts were asked for.
func soak() bool { return os.Getenv("EASTGUARD_SOAK") != "" }

// history is what the script asked of the store and what it was told: what a crash may not contradict.
type history struct {
	mu   sync.Mutex
	segs map[base.SegmentID]*story
}

// story is one segment's part of the history.
type story struct {
	spec      SegmentSpec
	batches   []Batch // submitted, in order
	acked     int64   // end of what was acked
	opened    bool
	fenced    bool  // a fence of its epoch was acked
	seal      int64 // asked for; -1 = not
	sealed    bool  // acked
	drop      bool  // asked for
	dropped   bool  // acked
	topicDrop bool  // ... or asked for with its topic
	published int64
	sequence  int32 // of the producer that writes into this range

	lacks []Batch // below its seal, on other replicas only
}

func (h *history) each(fn func(*story)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range slices.Sorted(func(yield func(base.SegmentID) bool) {
		for id := range h.segs {
			if !yield(id) {
				return
			}
		}
	}) {
		fn(h.segs[id])
	}
}

// snapshot copies what was promised so far.
func (h *history) snapshot() []story {
	var s []story
	h.each(func(x *story) { s = append(s, *x) })
	return s
}

// crashTest runs a script on a file system on which it looks, at every change, at what a crash would leave.
type crashTest struct {
	t    *testing.T
	rng  *rand.Rand
	mem  *vfs.Mem
	n    *node
	h    history
	next base.SegmentID
	life int // of the process; counts kills

	syncFS int // files above which a checkpoint syncs the file system
	every  int // look at each so manieth change
	calls  int
	looked int
	failed atomic.Bool
}

func (c *crashTest) options() Options {
	return Options{
		CacheBytes: 1, MaxOpenFiles: 8, ReserveBytes: -1, FlushBytes: 4 << 10,
		CheckpointBytes: 24 << 10, WALBytes: 1 << 20,
		WAL: wal.Options{FileBytes: 32 << 10, Spare: 1, Linger: time.Millisecond}, syncFSAboveForTesting: c.syncFS,
	}
}

// begin puts the node on a file system whose changes are watched.
func (c *crashTest) begin(mem *vfs.Mem) {
	c.mem = mem
	fault := vfs.NewFault(mem, vfs.Rule{Ops: vfs.OpChanges, Before: c.look})
	c.n = &node{t: c.t, fs: fault, o: c.options(), fatal: make(chan error, 1)}
	require.NoError(c.t, c.n.start())
	require.NoError(c.t, c.n.Start(context.Background()))
}

// look takes what a crash at this moment would leave, recovers it, and holds it against the history.
func (c *crashTest) look(call vfs.Call) {
	c.calls++
	if c.failed.Load() || c.calls%c.every != 0 {
		return
	}
	c.looked++
	promised := c.h.snapshot() // before the clone: what was acked by now must be in it
	keep := []float64{0, 0.5, 1}[c.looked%3]
	clone := c.mem.CrashClone(oldrand.New(oldrand.NewSource(int64(c.calls))), keep)
	if err := c.verify(clone, promised); err != nil {
		c.failed.Store(true)
		c.t.Errorf("crash at change %d, %s %s, keeping %.1f: %v", c.calls, call.Op, call.Path, keep, err)
	}
}

func (c *crashTest) verify(disk *vfs.Mem, promised []story) error {
	var first []byte
	for round := range 2 {
		n := &node{t: c.t, fs: disk, o: c.options(), fatal: make(chan error, 1)}
		var events []Event
		n.o.OnEvent = func(e Event) { events = append(events, e) }
		if err := n.start(); err != nil {
			return fmt.Errorf("recovery %d: %w", round, err)
		}
		tree := dump(disk, "data/topics")
		killed := disk.Snapshot() // what a kill right after the recovery leaves, for the second one
		err := c.compare(n, promised)
		n.stop()
		if round == 1 && err == nil && !bytes.Equal(first, tree) {
			err = fmt.Errorf("the second recovery left other files than the first:\n%s\n%s", first, tree)
		}
		first, disk = tree, killed
		if err != nil {
			return fmt.Errorf("recovery %d: %w\n%v", round, err, events)
		}
	}
	return nil
}

// dump lists names and contents under dir.
func dump(fs vfs.FS, dir string) []byte {
	var out []byte
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := dir + "/" + e.Name
		if e.IsDir {
			out = append(out, dump(fs, path)...)
			continue
		}
		b, err := vfs.ReadFile(fs, path)
		out = fmt.Appendf(out, "%s %d %x %v\n", path, len(b), b, err)
	}
	return out
}

func (c *crashTest) compare(n *node, promised []story) error {
	if i := n.Recovery(); len(i.Damaged) > 0 || n.lossy || i.Void > 0 {
		return fmt.Errorf("a crash is not damage: %+v", i)
	}
	for _, s := range promised {
		err := c.compareSegment(n, s)
		if err == nil && s.sealed {
			err = staysFenced(n, s, promised)
		}
		if err != nil {
			return fmt.Errorf("segment %s (%+v): %w", s.spec.Segment, storyLine(s), err)
		}
	}
	return nil
}

// staysFenced tries to open a segment of an epoch that has been sealed, whatever has become of the one that was.
func staysFenced(n *node, s story, all []story) error {
	if slices.ContainsFunc(all, func(x story) bool { return x.topicDrop && x.spec.Ref == s.spec.Ref }) {
		return nil // its fences went with it
	}
	zombie := s.spec
	zombie.Segment += 1 << 40
	if err := n.OpenSegment(zombie, nil); base.CodeOf(err) != base.CodeFenced {
		return fmt.Errorf("its epoch is open again: %v", err)
	}
	return nil
}

func storyLine(s story) string {
	return fmt.Sprintf("base %d acked %d opened %v seal %d sealed %v drop %v dropped %v", s.spec.Base, s.acked, s.opened, s.seal, s.sealed, s.drop, s.dropped)
}

func (c *crashTest) compareSegment(n *node, s story) error {
	i, ok := n.Info(s.spec.Segment)
	switch {
	case s.dropped && ok:
		return fmt.Errorf("it was dropped and is back")
	case s.opened && !s.drop && !ok:
		return fmt.Errorf("it is gone")
	case !ok:
		return nil
	case s.fenced && !i.Fenced:
		return fmt.Errorf("its fence is gone")
	case s.sealed && (i.SealedEnd != s.seal || i.Commit != i.DurableEnd):
		return fmt.Errorf("sealed at %d, commit %d", i.SealedEnd, i.Commit)
	case i.SealedEnd >= 0 && i.SealedEnd != s.seal:
		return fmt.Errorf("sealed at %d, which nobody asked for", i.SealedEnd)
	case i.SealedEnd >= 0 && i.DurableEnd < min(s.acked, s.seal), i.SealedEnd < 0 && i.DurableEnd < s.acked:
		return fmt.Errorf("acked up to %d, %d is left", s.acked, i.DurableEnd)
	case i.SealedEnd >= 0 && i.DurableEnd > i.SealedEnd:
		return fmt.Errorf("sealed at %d, %d is here", i.SealedEnd, i.DurableEnd)
	case i.Commit < s.spec.Base || i.Commit > i.DurableEnd:
		return fmt.Errorf("commit %d, durable %d", i.Commit, i.DurableEnd)
	}
	return c.compareRecords(n, s, i)
}

// compareRecords reads all of the segment, made visible by a seal as the coordinator would, and the state beside it.
func (c *crashTest) compareRecords(n *node, s story, i SegmentInfo) error {
	if i.SealedEnd < 0 {
		if err := tryError(func(done func(error)) error { return n.Seal(i.Segment, i.DurableEnd, base.CauseRecovery, done) }); err != nil {
			return fmt.Errorf("seal: %w", err)
		}
	}
	var want []byte
	producer := int32(-1)
	end := i.Base
	for _, b := range c.submitted(s.spec.Segment) {
		if b.Header.End() > i.DurableEnd {
			break
		}
		want = append(want, b.Bytes...)
		end = b.Header.End()
		if b.Header.HasProducer() {
			producer = b.Header.LastSequence() + 1
		}
	}
	if end != i.DurableEnd {
		return fmt.Errorf("ends at %d, which is no batch's end (%d is)", i.DurableEnd, end)
	}
	got, err := readSegment(n, i)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes up to %d, want %d", len(got), end, len(want))
	}
	st, err := n.RangeState(i.Segment)
	if err != nil {
		return err
	}
	if _, next, known := st.Producer(1); producer >= 0 && (!known || next != producer) {
		return fmt.Errorf("producer known %v, next %d, want %d", known, next, producer)
	}
	return nil
}

// submitted is all that was ever asked for: a crash may keep more than was acked.
func (c *crashTest) submitted(id base.SegmentID) []Batch {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	return slices.Clone(c.h.segs[id].batches)
}

func readSegment(n *node, i SegmentInfo) ([]byte, error) {
	var out bytes.Buffer
	for off := i.Base; off < i.DurableEnd; {
		r, err := n.Read(i.Ref, off, 3000, nil)
		if err != nil {
			return nil, err
		}
		for _, p := range r.Parts {
			_, err = p.WriteTo(&out)
			if err != nil {
				break
			}
		}
		r.Release()
		if err != nil || r.Segment != i.Segment || r.Next == off {
			return nil, fmt.Errorf("read at %d of [%d, %d): segment %s, next %d: %w", off, i.Base, i.DurableEnd, r.Segment, r.Next, err)
		}
		off = r.Next
	}
	return out.Bytes(), nil
}

func tryError(fn func(done func(error)) error) error {
	ch := make(chan error, 1)
	if err := fn(func(err error) { ch <- err }); err != nil {
		return err
	}
	return <-ch
}

// TestCrashAtEveryChange runs a script of 500 operations and, at every write, sync, rename and whatever else changes
// the disk, recovers what a power failure might leave: all that was acked is there, in order, nothing is invented, and
// recovering again changes nothing.
func TestCrashAtEveryChange(t *testing.T) {
	seeds, every := uint64(2), 61*min(thin, 3)
	if soak() {
		seeds, every = 4, 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crashScript(t, seed, every) })
	}
}

func crashScript(t *testing.T, seed uint64, every int) {
	c := &crashTest{t: t, rng: rand.New(rand.NewPCG(seed, 2)), h: history{segs: map[base.SegmentID]*story{}}, every: every}
	if seed%2 == 1 {
		c.syncFS = 1
	}
	c.begin(vfs.NewMem())
	defer func() { c.n.stop() }()
	topics := byte(0)
	for step := 0; step < 500 && !c.failed.Load(); step++ {
		s := c.active()
		switch k := c.rng.IntN(100); {
		case s == nil || k < 2:
			topics++
			c.open(base.RangeRef{Topic: base.TopicID{topics}, Range: 1}, 0, 0, nil, 0)
		case k < 55:
			c.append(s)
		case k < 65:
			c.drain(s)
		case k < 78:
			c.publish(s)
		case k < 85:
			c.roll(s)
		case k < 88:
			c.fence(s)
		case k < 89:
			c.rollShort(s)
		case k < 90:
			topics++
			c.hold(base.RangeRef{Topic: base.TopicID{topics}, Range: 1})
		case k < 92:
			c.trim()
		case k < 94:
			c.mend()
		case k < 96:
			require.NoError(t, c.n.checkpoint())
		case k < 97:
			c.dropTopic(s)
		case k < 98:
			c.restart(false)
		default:
			c.restart(true)
		}
	}
	c.n.stop()
	t.Logf("%d changes, %d crashes recovered", c.calls, c.looked)
}
