package store

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a store with its identity, as a process would have it.
type node struct {
	t     testing.TB
	fs    vfs.FS
	o     Options
	id    *Identity
	locks io.Closer
	*Store
	fatal chan error
}

// small are options that make everything happen soon.
func small() Options {
	return Options{
		CacheBytes: 1 << 20, MaxOpenFiles: 16, ReserveBytes: -1, FlushBytes: 64 << 10,
		WAL: wal.Options{FileBytes: 256 << 10}, CheckpointBytes: 256 << 10, WALBytes: 4 << 20,
	}
}

func start(t testing.TB, fs vfs.FS, o Options) *node {
	t.Helper()
	n := &node{t: t, fs: fs, o: o, fatal: make(chan error, 1)}
	require.NoError(t, n.start())
	t.Cleanup(n.stop)
	return n
}

func (n *node) start() (err error) {
	n.o.FS, n.o.DataDir = n.fs, "data"
	n.o.OnFatal = func(err error) {
		select {
		case n.fatal <- err:
		default:
		}
	}
	n.id, n.locks, err = OpenIdentity(n.fs, "data", "meta", IdentityRequest{Node: "n1"})
	if err != nil {
		return err
	}
	n.Store, err = Open(n.o, *n.id)
	if err != nil {
		_ = n.locks.Close()
		n.locks = nil
	}
	return err
}

func (n *node) stop() {
	if n.Store != nil {
		_ = n.Store.Close()
		n.Store = nil
	}
	if n.locks != nil {
		_ = n.locks.Close()
		n.locks = nil
	}
}

// restart ends the store in order and starts it again.
func (n *node) restart() {
	n.t.Helper()
	n.stop()
	require.NoError(n.t, n.start())
}

const patience = 20 * time.Second

// wait calls fn with a done callback and waits for that.
func wait(t testing.TB, fn func(done func(error)) error) {
	t.Helper()
	require.NoError(t, try(t, fn))
}

func try(t testing.TB, fn func(done func(error)) error) error {
	t.Helper()
	c := make(chan error, 1)
	if err := fn(func(err error) { c <- err }); err != nil {
		return err
	}
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("done was not called")
		return nil
	}
}

var topicA = base.TopicID{0xa, 1}

func refOf(r base.RangeID) base.RangeRef { return base.RangeRef{Topic: topicA, Range: r} }

func (n *node) openSegment(spec SegmentSpec) {
	n.t.Helper()
	wait(n.t, func(done func(error)) error { return n.OpenSegment(spec, done) })
}

func specOf(seg base.SegmentID, epoch base.Epoch, baseOffset int64) SegmentSpec {
	return SegmentSpec{Ref: refOf(1), Segment: seg, Epoch: epoch, Base: baseOffset, CreatedMs: 1000, LeaderHere: true}
}

// makeBatch builds a batch that the broker would accept. What fills it depends on seed, so that one batch is not like
// another.
func makeBatch(seed uint64, epoch base.Epoch, baseOffset int64, records, body int, producer int64, sequence int32) Batch {
	rng := rand.New(rand.NewPCG(seed, uint64(baseOffset)))
	b := make([]byte, header.Size+body)
	for i := header.Size; i < len(b); i++ {
		b[i] = byte(rng.Uint32())
	}
	h := header.Header{
		BaseOffset: baseOffset, Length: int32(len(b) - 12), Epoch: int32(epoch), Magic: header.Magic,
		LastOffsetDelta: int32(records - 1), Records: int32(records), FirstTimestamp: 5000 + baseOffset, MaxTimestamp: 5000 + baseOffset,
		ProducerID: producer, BaseSequence: sequence,
	}
	if producer == header.NoProducer {
		h.ProducerEpoch, h.BaseSequence = -1, -1
	}
	h.Put(b)
	header.Seal(b)
	h, err := header.Check(b, 0)
	if err != nil {
		panic(err)
	}
	return Batch{Bytes: b, Header: h, AppendMs: 7000 + baseOffset, SpanLo: 1, SpanHi: 2}
}

// appendWait appends and waits for the disk, without publishing.
func (n *node) appendWait(seg base.SegmentID, b Batch) error {
	n.t.Helper()
	return try(n.t, func(done func(error)) error {
		return n.Append(seg, b, func(end int64, err error) {
			if err == nil && end != b.Header.End() {
				err = base.Errorf(base.CodeInternal, "test", "end is %d", end)
			}
			done(err)
		})
	})
}

// put appends a plain batch at the segment's end, publishes it and returns its bytes.
func (n *node) put(seg base.SegmentID, records, body int) []byte {
	n.t.Helper()
	i, ok := n.Info(seg)
	require.True(n.t, ok)
	b := makeBatch(1, i.Epoch, i.Base+i.Records, records, body, header.NoProducer, 0)
	require.NoError(n.t, n.appendWait(seg, b))
	n.Publish(seg, b.Header.End())
	return b.Bytes
}

// read reads a range from off to its commit as consumers do and returns the bytes.
func (n *node) read(ref base.RangeRef, off int64, maxBytes int) ([]byte, int64, error) {
	var out bytes.Buffer
	for {
		r, err := n.Read(ref, off, maxBytes, nil)
		if err != nil {
			return out.Bytes(), off, err
		}
		for _, p := range r.Parts {
			if _, err := p.WriteTo(&out); err != nil {
				r.Release()
				return out.Bytes(), off, err
			}
		}
		r.Release()
		if r.Next == off {
			return out.Bytes(), off, nil
		}
		off = r.Next
	}
}

func (n *node) mustRead(ref base.RangeRef, off int64, maxBytes int) []byte {
	n.t.Helper()
	b, _, err := n.read(ref, off, maxBytes)
	require.NoError(n.t, err)
	return b
}

// sameBytes compares without printing kilobytes when they differ.
func sameBytes(t testing.TB, want, got []byte, what ...any) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	t.Fatalf("%d bytes, want %d; the first %d are the same %v", len(got), len(want), at, what)
}
