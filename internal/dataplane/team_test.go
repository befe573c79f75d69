package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
)

// team is a few planes on stores of their own, with data lanes between them and one coordinator over them.
type team struct {
	t       testing.TB
	lanes   teamLanes
	net     *teamNet // the same, unless a test brought its own
	coord   *teamCoord
	members map[base.NodeID]*member
	config  base.TopicConfig
}

// teamLanes connect a team.
type teamLanes interface {
	links(m *member, boot uint64) Links
	join(node base.NodeID, boot uint64, p *Plane)
	leave(node base.NodeID)
	close()
}

// member is one node over its process starts.
type member struct {
	*team
	node base.NodeID
	mem  *vfs.Mem
	disk base.DiskID

	boot  atomic.Uint64
	fault *vfs.Fault // of this start
	store *store.Store
	plane atomic.Pointer[Plane] // nil while it is not running
	fatal error
}

// teamOptions are what a test may set of it.
type teamOptions struct {
	nodes  int
	config base.TopicConfig
	fsync  time.Duration                 // of every disk
	slow   map[base.NodeID]time.Duration // of some
	lanes  teamLanes                     // nil: a teamNet
}

// teamBubble runs a test with a team in virtual time. Segment 1 is led by n1 and followed by n2 and n3.
func teamBubble(t *testing.T, o teamOptions, test func(t *testing.T, m *team)) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, o)
		defer m.close()
		test(t, m)
	})
}

func newTeam(t testing.TB, o teamOptions) *team {
	if o.config.SegmentBytes == 0 {
		o.config = roomy
	}
	m := &team{t: t, lanes: o.lanes, members: make(map[base.NodeID]*member), config: o.config}
	if m.lanes == nil {
		m.net = newTeamNet()
		m.lanes = m.net
	}
	m.coord = newTeamCoord(m)
	for i := range max(o.nodes, 3) {
		node := base.NodeID(fmt.Sprintf("n%d", i+1))
		one := &member{team: m, node: node, mem: vfs.NewMem()}
		m.members[node] = one
		delay := o.fsync
		if d, slow := o.slow[node]; slow {
			delay = d
		}
		one.start(delay)
	}
	m.coord.create(testRef, "n1", "n2", "n3")
	return m
}

// start begins a process of the node on what its disk holds.
func (m *member) start(fsync time.Duration) {
	t := m.t
	m.fault = vfs.NewFault(m.mem, vfs.Rule{Ops: vfs.OpSyncData, Delay: fsync})
	id, lock, err := store.OpenIdentity(m.fault, "/data", "/meta", store.IdentityRequest{Node: m.node, Rand: rand.New(rand.NewSource(int64(m.node[1])))})
	require.NoError(t, err)
	m.disk = id.Disk
	m.boot.Store(id.Boot)
	m.store, err = store.Open(store.Options{FS: m.fault, DataDir: "/data", ReserveBytes: -1}, *id)
	require.NoError(t, err)
	require.NoError(t, m.store.Start(context.Background()))
	fenced := make(chan error)
	require.NoError(t, m.store.FenceAllLed(func(err error) { fenced <- err }))
	require.NoError(t, <-fenced)
	_ = lock
	p := New(Options{
		Node: m.node, Disk: m.disk, Boot: id.Boot, Log: m.store, Links: m.lanes.links(m, id.Boot),
		RequestRoll: func(ctx context.Context, r RollRequest) (meta.Assignment, error) { return m.coord.roll(ctx, m.node, r) },
		LoadState:   m.loadState, FetchTail: m.fetchTail,
		OnFatal: func(err error) { m.fatal = err },
	})
	require.NoError(t, p.Start(context.Background()))
	m.plane.Store(p)
	m.lanes.join(m.node, id.Boot, p)
}

func (m *member) loadState(_ context.Context, from base.Replica, ref base.RangeRef, seg base.SegmentID, end int64) ([]byte, error) {
	if p := m.members[from.Node].plane.Load(); p != nil {
		return p.StateAt(ref, seg, end)
	}
	return nil, base.Errorf(base.CodeUnreachable, "load", "%s is not running", from.Node)
}

func (m *member) fetchTail(_ context.Context, from base.Replica, q TailRequest) (store.Tail, error) {
	if one := m.members[from.Node]; one.plane.Load() != nil {
		return one.store.Tail(q.Segment, q.From, q.End, q.MaxBytes)
	}
	return store.Tail{}, base.Errorf(base.CodeUnreachable, "fetch tail", "%s is not running", from.Node)
}

// kill ends the process at once: what it had not made durable may be lost.
func (m *member) kill() {
	p := m.plane.Swap(nil)
	m.lanes.leave(m.node)
	m.mem = m.mem.CrashClone(rand.New(rand.NewSource(1)), 0.5)
	require.NoError(m.t, p.Close()) // what it still writes is on a disk that nobody reads any more
	require.NoError(m.t, m.store.Close())
	require.NoError(m.t, m.fatal)
}

func (m *team) close() {
	for _, one := range m.members {
		if p := one.plane.Load(); p != nil {
			require.NoError(m.t, p.Close())
		}
	}
	m.coord.close()
	m.lanes.close()
	for _, one := range m.members {
		if one.plane.Load() != nil {
			require.NoError(m.t, one.store.Close())
		}
		require.NoError(m.t, one.fatal)
	}
}

// writer sends numbered batches of one record to a range, several at a time, and remembers what was acked. Each has a
// producer of its own, so that it is appended once however often it is sent.
type writer struct {
	m      *team
	ref    base.RangeRef
	id     int64
	size   int
	window int

	mu    sync.Mutex
	acked map[int64]int32 // number by offset
}

func (m *team) writer(ref base.RangeRef, id int64, size, window int) *writer {
	return &writer{m: m, ref: ref, id: id, size: size, window: window, acked: make(map[int64]int32)}
}

// write appends batches n times, each until it is acked: as a producer would, it follows the leader and sends again what
// has no answer yet.
func (w *writer) write(from, n int) {
	slots := make(chan struct{}, w.window)
	var done sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			w.one(int32(from + i))
		})
	}
	done.Wait()
}

// one appends one batch until it is acked.
func (w *writer) one(seq int32) {
	for try := 0; ; try++ {
		res, err := w.try(seq)
		if err == nil {
			w.mu.Lock()
			if was, twice := w.acked[res.Base]; twice && was != seq {
				w.m.t.Errorf("offset %d was acked for %d and for %d", res.Base, was, seq)
			}
			w.acked[res.Base] = seq
			w.mu.Unlock()
			return
		}
		if try > 2000 {
			w.m.t.Errorf("batch %d was never acked: %v", seq, err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *writer) try(seq int32) (AppendResult, error) {
	p := w.m.coord.leader(w.ref)
	if p == nil {
		return AppendResult{}, base.Errorf(base.CodeUnreachable, "append", "the leader is not running")
	}
	answer := make(chan outcome, 1)
	p.Append(AppendRequest{
		Ref: w.ref, Bytes: makeBatch(1, w.id+int64(seq), 0, w.size), Deadline: time.Now().Add(5 * time.Second),
	}, func(res AppendResult, err error) { answer <- outcome{res, err} })
	out := <-answer
	if out.err == nil && !w.m.running(p) {
		return AppendResult{}, base.Errorf(base.CodeUnreachable, "append", "the leader was killed") // before it could say so
	}
	return out.AppendResult, out.err
}

// running reports whether a plane is that of a process that has not been killed.
func (m *team) running(p *Plane) bool {
	for _, one := range m.members {
		if one.plane.Load() == p {
			return true
		}
	}
	return false
}

// check reads every acked record from every replica of its segment that is running, whatever it has been through, and
// holds what is there against what was acked. What has ended is the same everywhere, acked or not.
func (w *writer) check() {
	t := w.m.t
	chain := w.m.coord.chain(w.ref)
	active := chain[len(chain)-1]
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seg := range chain {
		var first map[int64]int64
		for _, r := range seg.Replicas {
			one := w.m.members[r.Node]
			startedAnew := one.boot.Load() != bootOfNode(seg, r.Node)
			if one.plane.Load() == nil || startedAnew && seg.Segment == active.Segment {
				continue
			}
			info, _ := one.store.Info(seg.Segment)
			end := min(seg.End, info.DurableEnd)
			if seg.Segment == active.Segment {
				end = info.Commit
			}
			producers := one.read(w.ref, seg, end)
			if first == nil {
				first = producers
			}
			if end == seg.End {
				require.Equal(t, first, producers, "%s, segment %s", r.Node, seg.Segment)
			}
			for off, seq := range w.acked {
				if off >= seg.Base && (off < seg.End || seg.Segment == active.Segment && off < end) {
					require.Equal(t, w.id+int64(seq), producers[off], "%s, segment %s of [%d, %d), offset %d; its copy ends at %d", r.Node, seg.Segment, seg.Base, seg.End, off, end)
				}
			}
		}
	}
	last := int64(-1)
	for off := range w.acked {
		last = max(last, off)
	}
	if p := w.m.members[active.Leader().Node].plane.Load(); p != nil {
		s, ok := p.Range(context.Background(), w.ref)
		require.True(t, ok)
		require.Greater(t, s.Commit, last, "all that was acked is committed")
	}
}

func bootOfNode(asg meta.Assignment, node base.NodeID) uint64 {
	for i, r := range asg.Replicas {
		if r.Node == node {
			return asg.Boots[i]
		}
	}
	return 0
}

// read returns the producers by offset of one segment's copy below end.
func (m *member) read(ref base.RangeRef, seg meta.Assignment, end int64) map[int64]int64 {
	producers := make(map[int64]int64)
	for at := seg.Base; at < end; {
		got, err := m.store.Read(ref, at, 1<<20, nil)
		require.NoError(m.t, err, "%s, segment %s at %d", m.node, seg.Segment, at)
		require.Greater(m.t, got.Next, at, "%s, segment %s stops at %d, not %d", m.node, seg.Segment, at, end)
		for _, part := range got.Parts {
			var buf bytes.Buffer
			_, err := part.WriteTo(&buf)
			require.NoError(m.t, err)
			for b := buf.Bytes(); len(b) > 0; {
				h, err := header.Parse(b)
				require.NoError(m.t, err)
				producers[h.BaseOffset] = h.ProducerID
				b = b[h.Size():]
			}
		}
		at = got.Next
		got.Release()
	}
	return producers
}
