package dataplane

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const boot = 7

// fakeLog is a log in memory whose disk is a switch: open, every append is durable at once (on a goroutine of its
// own, as the real one's); held, appends wait until the test lets them go.
type fakeLog struct {
	mu        sync.Mutex
	held      bool
	pending   []func()
	segments  map[base.SegmentID]*fakeSegment
	refuse    error // of the next appends
	refuseSeg base.SegmentID
	lose      error // the disk's answer to the next appends
	openErr   error
	sealErr   error
	read      func(base.SegmentID) // states lie on a disk, which takes this long; nil: they are in memory
	readErr   error                // its answer
	calls     chan func()
	done      sync.WaitGroup
	published map[base.SegmentID]int64
}

type fakeSegment struct {
	info    store.SegmentInfo
	state   *rangestate.State
	batches []store.Batch
	end     int64 // appended
}

func newFakeLog(t *testing.T) *fakeLog {
	l := &fakeLog{segments: make(map[base.SegmentID]*fakeSegment), calls: make(chan func(), 100_000), published: make(map[base.SegmentID]int64)}
	l.done.Go(func() {
		for call := range l.calls {
			call()
		}
	})
	t.Cleanup(func() { close(l.calls); l.done.Wait() })
	return l
}

// after runs a callback as the disk's answer.
func (l *fakeLog) after(f func()) {
	if l.held {
		l.pending = append(l.pending, f)
		return
	}
	l.calls <- f
}

func (l *fakeLog) hold() { l.mu.Lock(); l.held = true; l.mu.Unlock() }

// refuseOnly makes one segment refuse its appends.
func (l *fakeLog) refuseOnly(seg base.SegmentID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuseSeg, l.refuse = seg, err
}

// release lets n answers go; all of them, and those to come, when n is negative.
func (l *fakeLog) release(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 {
		n, l.held = len(l.pending), false
	}
	for _, f := range l.pending[:n] {
		l.calls <- f
	}
	l.pending = l.pending[n:]
}

func (l *fakeLog) Append(seg base.SegmentID, b store.Batch, done func(int64, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil && (l.refuseSeg == 0 || l.refuseSeg == seg) {
		return l.refuse
	}
	s := l.segments[seg]
	if s == nil {
		return base.Errorf(base.CodeSegmentNotFound, "append", "no segment %s", seg)
	}
	if h, err := header.Check(b.Bytes, 0); err != nil || h != b.Header || h.BaseOffset != s.end || base.Epoch(h.Epoch) != s.info.Epoch {
		panic("batch does not fit the segment")
	}
	s.batches = append(s.batches, b)
	s.end = b.Header.End()
	s.state.Append(b.Header, b.Header.BaseOffset, b.AppendMs)
	end, lost := s.end, l.lose
	l.after(func() {
		if lost != nil {
			done(0, lost)
			return
		}
		l.mu.Lock()
		s.info.DurableEnd = end
		l.mu.Unlock()
		done(end, nil)
	})
	return nil
}

func (l *fakeLog) Publish(seg base.SegmentID, commit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published[seg] = commit
	l.segments[seg].info.Commit = commit
}

func (l *fakeLog) OpenSegment(spec store.SegmentSpec, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.openErr
	if err == nil && l.segments[spec.Segment] == nil {
		state := rangestate.New()
		if spec.State != nil {
			var bad error
			if state, bad = rangestate.Decode(spec.State); bad != nil {
				panic(bad)
			}
		}
		l.segments[spec.Segment] = &fakeSegment{
			info:  store.SegmentInfo{SegmentSpec: spec, State: base.StateActive, DurableEnd: spec.Base, Commit: spec.Base, SealedEnd: -1, Boot: boot},
			state: state, end: spec.Base,
		}
	}
	l.after(func() { done(err) })
	return nil
}

func (l *fakeLog) Seal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealErr != nil {
		return l.sealErr
	}
	s := l.segments[seg]
	s.info.SealedEnd, s.info.SealedCause, s.info.State, s.info.Commit = end, cause, base.StateSealed, end
	l.after(func() { done(nil) })
	return nil
}

func (l *fakeLog) ForceSeal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error {
	return l.Seal(seg, end, cause, done)
}

func (l *fakeLog) HoldSealed(spec store.SegmentSpec, end int64, cause base.Cause, done func(error)) error {
	if err := l.OpenSegment(spec, func(error) {}); err != nil {
		return err
	}
	return l.Seal(spec.Segment, end, cause, done)
}

func (l *fakeLog) Mend(seg base.SegmentID, batches []store.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segments[seg]
	for _, b := range batches {
		s.batches = append(s.batches, b)
		s.end = b.Header.End()
		s.info.DurableEnd = s.end
	}
	return nil
}

func (l *fakeLog) DropSegments(_ base.RangeRef, segs []base.SegmentID, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range segs {
		delete(l.segments, s)
	}
	l.after(func() { done(nil) })
	return nil
}

func (l *fakeLog) DropTopic(topic base.TopicID, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range l.segments {
		if s.info.Ref.Topic == topic {
			delete(l.segments, id)
		}
	}
	l.after(func() { done(nil) })
	return nil
}

func (l *fakeLog) Fence(_ base.RangeRef, _ base.Epoch, seg base.SegmentID, done func(store.FenceAnswer, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := store.FenceAnswer{Kind: store.FenceExtent}
	if s := l.segments[seg]; s != nil {
		a.Listed, a.End, a.Unbroken = true, s.end, s.info.Boot == boot
	}
	l.after(func() { done(a, nil) })
	return nil
}

func (l *fakeLog) Info(seg base.SegmentID) (store.SegmentInfo, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.segments[seg]; s != nil {
		return s.info, true
	}
	return store.SegmentInfo{}, false
}

func (l *fakeLog) Segments(ref base.RangeRef) (list []store.SegmentInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if s.info.Ref == ref {
			list = append(list, s.info)
		}
	}
	slices.SortFunc(list, func(a, b store.SegmentInfo) int { return cmp.Compare(a.Base, b.Base) })
	return list
}

func (l *fakeLog) RangeState(seg base.SegmentID) (*rangestate.State, error) {
	l.mu.Lock()
	slow := l.read
	l.mu.Unlock()
	if slow != nil {
		slow(seg)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segments[seg]
	switch {
	case l.readErr != nil:
		return nil, l.readErr
	case s == nil:
		return nil, errors.New("no such segment")
	}
	state := s.state.Clone()
	state.Commit(s.info.Commit)
	state.Rollback(s.info.DurableEnd)
	return state, nil
}

func (l *fakeLog) HeldState(seg base.SegmentID) (*rangestate.State, bool) {
	l.mu.Lock()
	onDisk := l.read != nil
	l.mu.Unlock()
	if onDisk {
		return nil, false
	}
	state, err := l.RangeState(seg)
	return state, err == nil
}

// fakeCoord answers roll requests as the coordinator would: it seals at the end that was asked for and numbers the
// successor. While silent it does not answer.
type fakeCoord struct {
	mu        sync.Mutex
	silent    bool
	refusal   error // of every request; nil: they are granted
	asked     []RollRequest
	next      base.SegmentID
	config    base.TopicConfig
	replica   base.Replica   // where successors go; zero = here
	replicas  []base.Replica // of successors; nil = replica alone
	recovered int64          // the end that a recovery comes to
}

func (c *fakeCoord) requestRoll(_ context.Context, asked RollRequest) (meta.Assignment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, asked)
	if c.silent {
		return meta.Assignment{}, context.DeadlineExceeded
	}
	if c.refusal != nil {
		return meta.Assignment{}, c.refusal
	}
	end := asked.End
	if asked.End < 0 {
		end = c.recovered
	}
	c.next++
	next := assignment(c.next, asked.Epoch+1, end, asked.Segment, c.config)
	if c.replica.Node != "" {
		next.Replicas = []base.Replica{c.replica}
	}
	if c.replicas != nil {
		next.Replicas = slices.DeleteFunc(slices.Clone(c.replicas), func(r base.Replica) bool {
			return slices.Contains(asked.Lost, r.Node) || slices.Contains(asked.Late, r.Node)
		})
	}
	return next, nil
}

func (c *fakeCoord) requests() []RollRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]RollRequest(nil), c.asked...)
}

var (
	testTopic = base.TopicID{1}
	testRef   = base.RangeRef{Topic: testTopic, Range: 1}
	here      = base.Replica{Node: "n1", Disk: base.DiskID{9}}
)

func assignment(seg base.SegmentID, epoch base.Epoch, at int64, prev base.SegmentID, c base.TopicConfig) meta.Assignment {
	return meta.Assignment{
		Ref: testRef, Name: "t", Config: c, Version: base.Version(epoch), Segment: seg, Epoch: epoch, Base: at,
		End: meta.NoEnd, State: base.StateActive, Replicas: []base.Replica{here}, Prev: prev,
	}
}

var roomy = base.TopicConfig{SegmentBytes: 1 << 30, SegmentAge: time.Hour}

// rig is a plane on a fake log and a fake coordinator.
type rig struct {
	t     *testing.T
	log   *fakeLog
	coord *fakeCoord
	plane *Plane
	rolls []Rolled
	fatal []error
}

func newRig(t *testing.T, edit func(*Options)) *rig {
	r := &rig{t: t, log: newFakeLog(t), coord: &fakeCoord{next: 100, config: roomy}}
	o := Options{
		Node: here.Node, Disk: here.Disk, Boot: boot, Log: r.log, RequestRoll: r.coord.requestRoll,
		OnRoll:  func(x Rolled) { r.rolls = append(r.rolls, x) },
		OnFatal: func(err error) { r.fatal = append(r.fatal, err) },
	}
	if edit != nil {
		edit(&o)
	}
	r.plane = New(o)
	if err := r.plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// close ends the plane; inside a synctest bubble everything must have ended before the bubble does.
func (r *rig) close() {
	r.log.release(-1)
	if err := r.plane.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) assign(a meta.Assignment) meta.Confirmation {
	r.t.Helper()
	c, err := r.plane.Tell(r.t.Context(), meta.Orders{Assignments: []meta.Assignment{a}})
	if err != nil || len(c) != 1 {
		r.t.Error("assignment not answered", c, err) // not Fatal: tests tell from goroutines of their own
		return meta.Confirmation{}
	}
	return c[0]
}

// outcome is one append's answer, delivered once.
type outcome struct {
	AppendResult
	err error
}

func (r *rig) append(b []byte, deadline time.Duration) <-chan outcome {
	answers := make(chan outcome, 2) // room for a second answer, which would be a bug that a test can see
	req := AppendRequest{Ref: testRef, Bytes: b, SpanHi: ^uint64(0)}
	if deadline > 0 {
		req.Deadline = time.Now().Add(deadline)
	}
	r.plane.Append(req, func(res AppendResult, err error) { answers <- outcome{res, err} })
	return answers
}

// batch makes a batch of n records whose bytes the broker has no reason to read.
func makeBatch(n int, producer int64, seq int32, body int) []byte {
	body = max(body, 7*n)
	b := make([]byte, header.Size+body)
	header.Header{
		Length: int32(len(b) - 12), Magic: header.Magic, LastOffsetDelta: int32(n - 1), Records: int32(n),
		ProducerID: producer, BaseSequence: seq,
	}.Put(b)
	header.Seal(b)
	return b
}

func plain(n int) []byte { return makeBatch(n, header.NoProducer, -1, 10) }

func specOf(a meta.Assignment) store.SegmentSpec {
	return store.SegmentSpec{Ref: a.Ref, Segment: a.Segment, Epoch: a.Epoch, Base: a.Base, LeaderHere: true}
}
