package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// pump appends n batches of the given body to seg as fast as the store takes them, publishing what is acked.
func pump(t testing.TB, n *node, seg base.SegmentID, count, body int) {
	i, ok := n.Info(seg)
	require.True(t, ok)
	var failed atomic.Pointer[error]
	var acked atomic.Int64
	off := i.DurableEnd
	last := off + int64(count)
	for ; off < last; off++ {
		b := makeBatch(1, i.Epoch, off, 1, body, -1, 0)
		for {
			err := n.Append(seg, b, func(end int64, err error) {
				if err != nil {
					failed.Store(&err)
					return
				}
				n.Publish(seg, end)
				acked.Store(end)
			})
			if err == nil {
				break
			}
			require.ErrorIs(t, err, base.CodeBusy)
			time.Sleep(100 * time.Microsecond) // the producer's pace, not a synchronisation
		}
	}
	require.Eventually(t, func() bool { return acked.Load() == last || failed.Load() != nil }, patience, time.Millisecond)
	require.Nil(t, failed.Load())
}

// TestManyBatchesInOneActiveSegmentReadThroughTheFile: what the tail has let go of is read from the file of a segment that is
// still written.
func TestManyBatchesInOneActiveSegmentReadThroughTheFile(t *testing.T) {
	const count, body = 100_000, 40
	o := Options{CacheBytes: 1 << 20, ReserveBytes: -1, WAL: wal.Options{FileBytes: 8 << 20}, CheckpointBytes: 4 << 20}
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	var wg sync.WaitGroup
	for range 2 { // readers beside the appender
		wg.Go(func() {
			for off := int64(0); off < count; {
				_, next, err := n.read(refOf(1), off, 64<<10)
				if err != nil {
					t.Errorf("read at %d: %v", off, err)
					return
				}
				off = next
			}
		})
	}
	pump(t, n, 1, count, body)
	wg.Wait()
	require.Eventually(t, func() bool { return n.Stats().CachedBytes < 2<<20 }, patience, time.Millisecond)
	require.Positive(t, n.Stats().ReadsFile)
	var want bytes.Buffer
	for off := range int64(count) {
		want.Write(makeBatch(1, 0, off, 1, body, -1, 0).Bytes)
	}
	got := n.mustRead(refOf(1), 0, 256<<10)
	require.True(t, bytes.Equal(want.Bytes(), got))
	rng := rand.New(rand.NewPCG(1, 1))
	size := int64(want.Len() / count)
	for range 1000 {
		off := rng.Int64N(count)
		r, err := n.Read(refOf(1), off, 1, nil)
		require.NoError(t, err)
		var b bytes.Buffer
		for _, p := range r.Parts {
			_, err := p.WriteTo(&b)
			require.NoError(t, err)
		}
		r.Release()
		require.True(t, bytes.Equal(want.Bytes()[off*size:(off+1)*size], b.Bytes()), "offset %d", off)
	}
}

func TestAThousandRollsKeepFilesBounded(t *testing.T) {
	o := small()
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(context.Background()))
	var want []byte
	end := int64(0)
	for i := range base.SegmentID(1000) {
		n.openSegment(specOf(i+1, base.Epoch(i), end))
		if i%10 != 9 { // some stay empty
			want = append(want, n.put(i+1, 2, 1500)...)
			end += 2
		}
		wait(t, func(done func(error)) error { return n.Seal(i+1, end, base.CauseDataPressure, done) })
		require.LessOrEqual(t, n.files.figures(), o.MaxOpenFiles+1)
	}
	check := func() {
		require.Len(t, n.Segments(refOf(1)), 1000)
		sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
		require.LessOrEqual(t, n.files.figures(), o.MaxOpenFiles+1)
	}
	check()
	n.restart()
	check()
	// A trim of most, and the rest is still right.
	require.NoError(t, n.Start(context.Background()))
	var ids []base.SegmentID
	for i := range base.SegmentID(900) {
		ids = append(ids, i+1)
	}
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), ids, done) })
	require.Len(t, n.Segments(refOf(1)), 100)
	earliest := n.Segments(refOf(1))[0].Base
	rest := n.mustRead(refOf(1), earliest, 1<<20)
	require.True(t, bytes.HasSuffix(want, rest))
	require.Len(t, rest, 90*1561)
}

// TestOpenFilesAreBounded holds parts of more files than may be open: then readers are told to come back, and the flusher
// goes on.
func TestOpenFilesAreBounded(t *testing.T) {
	o := small()
	o.MaxOpenFiles = 8
	n := start(t, vfs.NewMem(), o)
	for i := range base.SegmentID(30) {
		spec := specOf(i+1, 0, 0)
		spec.Ref = refOf(base.RangeID(i + 1))
		n.openSegment(spec)
		n.put(i+1, 1, 5000)
	}
	require.NoError(t, n.checkpoint())
	require.LessOrEqual(t, n.files.figures(), 8)
	n.restart()
	var held []ReadResult
	busy := 0
	for i := range base.RangeID(30) {
		r, err := n.Read(refOf(i+1), 0, 1<<20, nil)
		if err != nil {
			require.ErrorIs(t, err, base.CodeBusy)
			busy++
			continue
		}
		held = append(held, r)
	}
	require.Len(t, held, 8)
	require.Equal(t, 22, busy)
	follower := SegmentSpec{Ref: refOf(99), Segment: 99}
	n.openSegment(follower)
	n.put(99, 1, 100)
	require.NoError(t, n.checkpoint(), "the flusher has one of its own")
	for _, r := range held {
		_, err := r.Parts[0].WriteTo(io.Discard)
		require.NoError(t, err)
		r.Release()
	}
	for i := range base.RangeID(30) {
		require.Len(t, n.mustRead(refOf(i+1), 0, 1<<20), 5061)
	}
	require.LessOrEqual(t, n.files.figures(), 8)
}

func TestAFullDiskRefusesProducesAndKeepsTheRest(t *testing.T) {
	mem := vfs.NewMem()
	o := small()
	o.ReserveBytes = 256 << 10
	o.WAL.FileBytes = 64 << 10
	n := start(t, mem, o)
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	mem.SetCapacity(3 << 20)
	n.takeToken()
	n.space.probe(n.dirty.Load())
	n.giveToken()
	var want []byte
	var err error
	for off := int64(0); off < 1000; off++ {
		b := makeBatch(1, 0, off, 1, 8000, -1, 0)
		b.AppendMs = 1000 + off*1000 // a look at the disk with each
		if err = n.appendWait(1, b); err != nil {
			if err2 := err; base.CodeOf(err2) == base.CodeBusy {
				off--
				continue
			}
			break
		}
		n.Publish(1, off+1)
		want = append(want, b.Bytes...)
	}
	require.ErrorIs(t, err, base.CodeDiskFull)
	require.Greater(t, len(want), 500_000)
	require.Empty(t, n.fatal)
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20), "reads go on")
	i, _ := n.Info(1)
	wait(t, func(done func(error)) error { return n.Seal(1, i.DurableEnd, base.CauseOperator, done) })
	n.openSegment(specOf(2, 1, i.DurableEnd))
	require.NoError(t, n.checkpoint(), "what was accepted fits")
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	b := makeBatch(1, 1, i.DurableEnd, 1, 8000, -1, 0)
	b.AppendMs = 1 << 40
	require.NoError(t, n.appendWait(2, b), "a trim makes room")
	require.False(t, n.Stats().DiskFull)
	require.True(t, n.space.reserve.Held())
}

func TestTheFlusherOutlivesAFullDisk(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, fault, small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	want := n.put(1, 1, 5000)
	fault.Add(vfs.Rule{Ops: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC, Short: 100})
	err := n.checkpoint()
	require.True(t, isNoSpace(err))
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	n.restart() // Close cannot checkpoint either; what was committed is known when the segment is sealed
	wait(t, func(done func(error)) error { return n.Seal(1, 1, base.CauseRecovery, done) })
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	fault.Clear()
	require.NoError(t, n.checkpoint())
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	require.Empty(t, n.fatal)
}

// TestASegmentIsQueuedOnceWhateverFails: the queue must not grow for as long as the disk is full.
func TestASegmentIsQueuedOnceWhateverFails(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, fault, small())
	newRanges(n, 3)
	fault.Add(vfs.Rule{Ops: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC})
	for off := range int64(5) {
		require.True(t, isNoSpace(n.flushAll()))
		for seg := range base.SegmentID(3) {
			require.NoError(t, n.appendWait(seg+1, makeBatch(1, 0, off+1, 1, 50, header.NoProducer, 0)))
		}
	}
	fault.Clear()
	segs := n.queue.takeSegments()
	require.Len(t, segs, 3)
	for _, g := range segs {
		n.queue.push(g)
	}
	require.NoError(t, n.checkpoint())
	require.Zero(t, n.dirty.Load())
}

// TestReadersBesideEverything is for the race detector: producers, rolls, trims, waiters and readers at once.
func TestReadersBesideEverything(t *testing.T) {
	o := small()
	o.CacheBytes = 200 << 10
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(context.Background()))
	const rounds = 40
	n.openSegment(specOf(1, 0, 0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			off := int64(0)
			for {
				r, err := n.Read(refOf(1), off, 20_000, nil)
				switch {
				case err == nil && r.Next > off:
					var b bytes.Buffer
					for _, p := range r.Parts {
						if _, err := p.WriteTo(&b); err != nil {
							t.Error(err)
						}
					}
					r.Release()
					at := off
					for rest := b.Bytes(); len(rest) > 0; at++ {
						want := makeBatch(1, r.Epoch, at, 1, 900, -1, 0).Bytes
						if !bytes.HasPrefix(rest, want) {
							t.Errorf("wrong bytes at %d", at)
							return
						}
						rest = rest[len(want):]
					}
					off = r.Next
				case err == nil:
					woken := make(chan struct{}, 1)
					cancel := n.Notify(refOf(1), off, func() {
						select {
						case woken <- struct{}{}:
						default:
						}
					})
					select {
					case <-woken:
					case <-done:
						cancel()
						return
					}
				default:
					if base.CodeOf(err) == base.CodeOffsetOutOfRange {
						off = n.Segments(refOf(1))[0].Base // trimmed before we came
						continue
					}
					if base.CodeOf(err) == base.CodeBusy || base.CodeOf(err) == base.CodeNotReplica {
						continue
					}
					t.Errorf("read at %d: %v", off, err)
					return
				}
			}
		})
	}
	for i := range base.SegmentID(rounds) {
		pump(t, n, i+1, 200, 900)
		info, _ := n.Info(i + 1)
		wait(t, func(done func(error)) error { return n.Seal(i+1, info.DurableEnd, base.CauseDataPressure, done) })
		n.openSegment(specOf(i+2, base.Epoch(i+1), info.DurableEnd))
		if i > 5 {
			wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{i - 5}, done) })
		}
		_ = n.All()
		_ = n.Stats()
	}
	close(done)
	wg.Wait()
	require.NoError(t, n.err())
}

func TestIdleSegmentsCostLittle(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	for i := range base.SegmentID(1000) {
		spec := specOf(i+1, 0, 0)
		spec.Ref = base.RangeRef{Topic: base.TopicID{byte(i), byte(i >> 8)}, Range: 1}
		n.openSegment(spec)
		n.put(i+1, 1, 10)
	}
	require.NoError(t, n.checkpoint())
	n.takeToken()
	n.Store.o.CacheBytes = 0
	n.evict()
	n.giveToken()
	require.Zero(t, n.cached.Load())
	for _, g := range n.allSegments() {
		require.Zero(t, g.tail.Len())
	}
	require.LessOrEqual(t, n.files.figures(), n.Store.o.MaxOpenFiles)
}

func TestRecoveryOfAFullLog(t *testing.T) {
	const body = 1024
	size := 8 << 20
	if soak() {
		size = 64 << 20
	}
	mem := vfs.NewMem()
	o := Options{ReserveBytes: -1, CheckpointBytes: 1 << 40, WALBytes: 1 << 40, DirtyBytes: 1 << 40, FlushBytes: 1 << 40, CacheBytes: 1 << 40}
	n := start(t, mem, o)
	for i := range base.SegmentID(8) {
		spec := specOf(i+1, 0, 0)
		spec.Ref = refOf(base.RangeID(i + 1))
		n.openSegment(spec)
	}
	count := size / (body + 61 + 60) / 8
	for i := range base.SegmentID(8) {
		pump(t, n, i+1, count, body)
	}
	killed := mem.Snapshot()
	n.stop()
	began := time.Now()
	n2 := start(t, killed, Options{ReserveBytes: -1})
	took := time.Since(began)
	require.Equal(t, 8*count, n2.Recovery().Batches)
	require.Less(t, took, time.Minute) // 2 s on an idle machine; see BenchmarkRecovery
	t.Logf("recovered %d MiB in %v", n2.Recovery().WAL.Bytes>>20, took)
	for i := range base.RangeID(8) {
		wait(t, func(done func(error)) error {
			return n2.Seal(base.SegmentID(i+1), int64(count), base.CauseRecovery, done)
		})
		require.Len(t, n2.mustRead(refOf(i+1), 0, 1<<20), count*(body+61), fmt.Sprint(i))
	}
}

// TestADroppedFileIsNotOpenedAgain: a reader that found the segment before it was dropped must not keep its space.
func TestADroppedFileIsNotOpenedAgain(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	n.put(1, 1, 1000)
	wait(t, func(done func(error)) error { return n.Seal(1, 1, base.CauseAge, done) })
	require.NoError(t, n.checkpoint())
	g := n.segmentOf(1)
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	_, err := n.files.acquire(g, false)
	require.ErrorIs(t, err, base.CodeNotReplica)
	require.Zero(t, n.files.figures())
}

// TestTopicsAreDroppedWhileTheyAreWritten: nothing of them is left, in memory, on disk or in the counts.
func TestTopicsAreDroppedWhileTheyAreWritten(t *testing.T) {
	mem := vfs.NewMem()
	o := small()
	o.FlushBytes, o.CacheBytes = 4<<10, 64<<10
	n := start(t, mem, o)
	require.NoError(t, n.Start(context.Background()))
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 40 {
				seg := base.SegmentID(1 + w*1000 + i)
				topic := base.TopicID{byte(w + 1), byte(i)}
				spec := SegmentSpec{Ref: base.RangeRef{Topic: topic, Range: 1}, Segment: seg}
				if err := tryError(func(done func(error)) error { return n.OpenSegment(spec, done) }); err != nil {
					t.Error(err)
					return
				}
				for off := range int64(60) {
					b := makeBatch(1, 0, off, 1, 700, 5, int32(off))
					if n.Append(seg, b, func(end int64, err error) { n.Publish(seg, end) }) != nil {
						break
					}
				}
				if err := tryError(func(done func(error)) error { return n.DropTopic(topic, done) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, n.err())
	require.NoError(t, n.checkpoint())
	require.Zero(t, n.dirty.Load())
	require.Zero(t, n.cached.Load())
	require.Zero(t, n.files.figures())
	require.Empty(t, n.All())
	names, err := mem.ReadDir("data/topics")
	require.NoError(t, err)
	require.Len(t, names, 1)
}
