package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestAppendPublishReadRestart(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	var want []byte
	for i := range 50 {
		want = append(want, n.put(1, 1+i%3, 100*i)...)
	}
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000))
	require.NoError(t, n.checkpoint())
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000), "a checkpoint changes nothing for readers")
	n.restart()
	i, ok := n.Info(1)
	require.True(t, ok)
	require.Equal(t, i.DurableEnd, i.Commit, "the commit of the checkpoint can be proven")
	sameBytes(t, want, n.mustRead(refOf(1), 0, 4000))
	require.Zero(t, n.Recovery().Batches, "an orderly end leaves nothing to replay")
}

func TestNothingAboveTheCommitIsRead(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	b := makeBatch(1, 0, 0, 2, 10, header.NoProducer, 0)
	require.NoError(t, n.appendWait(1, b))
	r, err := n.Read(refOf(1), 0, 1000, nil)
	require.NoError(t, err)
	require.Empty(t, r.Parts)
	_, err = n.Read(refOf(1), 1, 1000, nil)
	require.ErrorIs(t, err, base.CodeBehind)
	n.Publish(1, 2)
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 0, 1000))
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 1, 1000), "the batch that holds the offset")
	n.Publish(1, 1)
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 0, 1000), "a commit never goes back")
}

func TestAppendIsHeldAgainstItsSegment(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	require.ErrorIs(t, n.appendWait(2, makeBatch(1, 3, 10, 1, 1, -1, 0)), base.CodeSegmentNotFound)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 11, 1, 1, -1, 0)), base.CodeInvalidArgument)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 4, 10, 1, 1, -1, 0)), base.CodeInvalidArgument)
	require.NoError(t, n.appendWait(1, makeBatch(1, 3, 10, 1, 1, -1, 0)))
}

func TestOpenSegmentIsIdempotent(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	n.openSegment(specOf(1, 3, 10))
	other := specOf(1, 3, 11)
	require.ErrorIs(t, n.OpenSegment(other, nil), base.CodePreconditionFailed)
	require.Len(t, n.Segments(refOf(1)), 1)
	n.restart()
	require.ErrorIs(t, n.OpenSegment(specOf(1, 3, 10), nil), base.CodeFenced, "a segment is appended to by the process that opened it")
	require.Len(t, n.All(), 1)
}

func TestFence(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	n.put(1, 4, 10)
	fence := func(epoch base.Epoch, seg base.SegmentID) (a FenceAnswer) {
		wait(t, func(done func(error)) error {
			return n.Fence(refOf(1), epoch, seg, func(x FenceAnswer, err error) { a = x; done(err) })
		})
		return a
	}
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 14, Unbroken: true}, fence(2, 1))
	n.put(1, 1, 10)
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 15, Unbroken: true}, fence(3, 1))
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 15, 1, 1, -1, 0)), base.CodeFenced)
	require.Equal(t, FenceAnswer{Kind: FenceExtent}, fence(5, 99), "a segment that was never listed")

	n.restart()
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 3, 15, 1, 1, -1, 0)), base.CodeFenced)
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 15}, fence(3, 1), "not unbroken any more")
	require.ErrorIs(t, n.OpenSegment(specOf(4, 5, 15), nil), base.CodeFenced, "fenced before it was listed")
	n.openSegment(specOf(5, 6, 15))
	require.NoError(t, n.appendWait(5, makeBatch(1, 6, 15, 1, 1, -1, 0)))
}

func TestFenceAllLedCoversEarlierBootsOnly(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	follower := specOf(2, 0, 0)
	follower.Ref, follower.LeaderHere = refOf(2), false
	n.openSegment(follower)
	n.put(1, 1, 1)
	for range 2 {
		n.restart()
		require.ErrorIs(t, n.appendWait(1, makeBatch(1, 0, 1, 1, 1, -1, 0)), base.CodeFenced)
		wait(t, n.FenceAllLed)
		i, _ := n.Info(1)
		require.True(t, i.Fenced)
		i, _ = n.Info(2)
		require.False(t, i.Fenced)
		require.ErrorIs(t, n.appendWait(2, makeBatch(1, 0, 0, 1, 1, -1, 0)), base.CodeFenced, "a follower's copy is of one start, too")
	}
	i, _ := n.Info(1)
	require.NotEqual(t, n.id.Boot, i.Boot)
}

func TestSealAndSuccessor(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	first := n.put(1, 5, 100)
	void := makeBatch(1, 0, 5, 2, 100, -1, 0)
	require.NoError(t, n.appendWait(1, void)) // durable, never committed
	seal := func(end int64) error {
		return try(t, func(done func(error)) error { return n.Seal(1, end, base.CauseAge, done) })
	}
	require.ErrorIs(t, seal(4), base.CodeInvalidArgument, "below the commit")
	require.NoError(t, seal(5))
	require.NoError(t, seal(5))
	require.ErrorIs(t, seal(7), base.CodePreconditionFailed)
	require.ErrorIs(t, n.appendWait(1, makeBatch(1, 0, 7, 1, 1, -1, 0)), base.CodeSegmentMoved)
	r, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.NoError(t, err)
	require.True(t, r.Sealed)
	require.Equal(t, int64(5), r.Next)
	require.Equal(t, int64(5), r.End)
	r, err = n.Read(refOf(1), 5, 1<<20, nil)
	require.NoError(t, err)
	require.True(t, r.Sealed)
	_, err = n.Read(refOf(1), 6, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)

	n.openSegment(specOf(2, 1, 5))
	second := n.put(2, 1, 50)
	want := append(append([]byte{}, first...), second...)
	check := func() {
		sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
		i, _ := n.Info(1)
		require.Equal(t, base.StateSealed, i.State)
		require.Equal(t, int64(5), i.SealedEnd)
		require.Equal(t, int64(5), i.Commit)
		require.Equal(t, base.CauseAge, i.SealedCause)
		require.Equal(t, int64(len(first)), i.Bytes)
	}
	check()
	require.NoError(t, n.checkpoint())
	check()
	n.restart()
	check()
	size, err := n.fs.Stat("data/topics/" + topicA.String() + "/1/1-0.log")
	require.NoError(t, err)
	require.Equal(t, int64(len(first)), size.Size, "what was void is cut off the file")
}

func TestSealCutsWhatTheFlusherHadWritten(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	first := n.put(1, 5, 5000)
	for i := range 4 {
		require.NoError(t, n.appendWait(1, makeBatch(1, 0, int64(5+i), 1, 9000, -1, 0)))
	}
	require.NoError(t, n.checkpoint())
	wait(t, func(done func(error)) error { return n.Seal(1, 5, base.CauseRecovery, done) })
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
	require.NoError(t, n.checkpoint())
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
	require.Zero(t, n.dirty.Load())
	i, _ := n.Info(1)
	require.Equal(t, int64(len(first)), i.Bytes)
	n.restart()
	sameBytes(t, first, n.mustRead(refOf(1), 0, 1<<20))
}

func TestDropSegmentsFreesTheDiskAndKeepsReaders(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	var want []byte
	for range 20 {
		want = append(want, n.put(1, 1, 10_000)...)
	}
	wait(t, func(done func(error)) error { return n.Seal(1, 20, base.CauseAge, done) })
	n.openSegment(specOf(2, 1, 20))
	n.put(2, 1, 10)
	require.NoError(t, n.checkpoint())
	// All from the file, held while it is dropped.
	n.takeToken()
	n.Store.o.CacheBytes = 0
	n.evict()
	n.giveToken()
	r, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.NoError(t, err)
	require.Equal(t, 1, len(r.Parts))

	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1, 77}, done) })
	var got bytes.Buffer
	_, err = r.Parts[0].WriteTo(&got)
	require.NoError(t, err)
	require.Equal(t, want, got.Bytes())
	r.Release()
	_, err = n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeOffsetOutOfRange)
	require.Len(t, n.Segments(refOf(1)), 1)
	names, err := mem.ReadDir("data/topics/" + topicA.String() + "/1")
	require.NoError(t, err)
	for _, e := range names {
		require.Contains(t, e.Name, "2-20")
	}
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	n.restart()
	_, err = n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeOffsetOutOfRange, "a trim is remembered")
}

func TestDropTopicFreesAll(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	require.NoError(t, n.Start(context.Background()))
	for i := range base.SegmentID(5) {
		spec := specOf(i+1, 0, 0)
		spec.Ref = refOf(base.RangeID(i + 1))
		n.openSegment(spec)
		n.put(i+1, 1, 30_000)
	}
	require.NoError(t, n.checkpoint())
	n.put(1, 1, 10)
	var woken atomic.Int32
	n.Notify(refOf(1), 2, func() { woken.Add(1) })
	wait(t, func(done func(error)) error { return n.DropTopic(topicA, done) })
	require.Equal(t, int32(1), woken.Load())
	require.Empty(t, n.All())
	_, err := n.Read(refOf(1), 0, 1<<20, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)
	names, err := mem.ReadDir("data/topics")
	require.NoError(t, err)
	require.Len(t, names, 1, "the stamp only")
	require.Zero(t, n.dirty.Load())
	require.Zero(t, n.cached.Load())
	n.restart()
	require.Empty(t, n.All())
	require.Zero(t, n.files.figures())
}

func TestNotify(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	var woken atomic.Int32
	wake := func() { woken.Add(1) }
	n.Notify(refOf(9), 0, wake)
	require.Equal(t, int32(1), woken.Swap(0), "an unknown range: look again")
	n.Notify(refOf(1), 0, wake)
	cancel := n.Notify(refOf(1), 0, wake)
	cancel()
	n.Notify(refOf(1), 5, wake)
	n.put(1, 3, 1)
	require.Equal(t, int32(1), woken.Swap(0))
	n.Notify(refOf(1), 2, wake)
	require.Equal(t, int32(1), woken.Swap(0), "at once")
	wait(t, func(done func(error)) error { return n.Seal(1, 3, base.CauseIdle, done) })
	require.Equal(t, int32(1), woken.Swap(0), "the one that waited at 5")
	n.openSegment(specOf(2, 1, 3))
	n.Notify(refOf(1), 3, wake)
	require.Zero(t, woken.Load())
	require.NoError(t, n.Store.Close())
	require.Equal(t, int32(1), woken.Load(), "the end of the store wakes everybody")
}

func TestOffsetByTime(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for range 30 {
		n.put(1, 1, 5000)
	}
	wait(t, func(done func(error)) error { return n.Seal(1, 30, base.CauseAge, done) })
	n.openSegment(specOf(2, 1, 30))
	for range 30 {
		n.put(2, 1, 5000)
	}
	check := func() {
		for _, want := range []int64{0, 1, 29, 30, 31, 59} {
			off, ts, ok, err := n.OffsetByTime(refOf(1), 5000+want)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, want, off)
			require.Equal(t, 5000+want, ts)
		}
		off, _, ok, err := n.OffsetByTime(refOf(1), 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Zero(t, off)
		_, _, ok, err = n.OffsetByTime(refOf(1), 5060)
		require.NoError(t, err)
		require.False(t, ok)
	}
	check()
	require.NoError(t, n.checkpoint())
	check()
	n.put(2, 1, 10)
	n.restart()
	off, _, ok, err := n.OffsetByTime(refOf(1), 5060)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(60), off)
}

func TestRangeStateSurvives(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for i := range 5 {
		b := makeBatch(1, 0, int64(i), 1, 10, 77, int32(i))
		require.NoError(t, n.appendWait(1, b))
		if i < 3 {
			n.Publish(1, b.Header.End())
		}
	}
	check := func(seg base.SegmentID, next int32) {
		st, err := n.RangeState(seg)
		require.NoError(t, err)
		_, seq, ok := st.Producer(77)
		require.True(t, ok)
		require.Equal(t, next, seq)
	}
	check(1, 5)
	n.restart()
	check(1, 5)
	wait(t, func(done func(error)) error { return n.Seal(1, 4, base.CauseRecovery, done) })
	check(1, 4)
	n.restart()
	check(1, 4)
	st, err := n.RangeState(1)
	require.NoError(t, err)
	next := specOf(2, 1, 4)
	next.State = st.Encode()
	n.openSegment(next)
	check(2, 4)
	n.restart()
	check(2, 4)
	require.NoError(t, n.checkpoint())
	n.restart()
	check(2, 4)
	_, err = n.RangeState(3)
	require.ErrorIs(t, err, base.CodeSegmentNotFound)
}

// Of a segment that is being written the state is in memory; of one that has ended, once a checkpoint has been, on the disk
// alone. Both are the same.
func TestAStateThatIsHeldNeedsNoDisk(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	_, held := n.HeldState(2)
	require.False(t, held, "it is not here")
	for i := range 3 {
		require.NoError(t, n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10, 77, int32(i))))
	}
	before, held := n.HeldState(1)
	require.True(t, held)
	require.NoError(t, n.checkpoint())
	_, held = n.HeldState(1)
	require.True(t, held, "it goes on")
	wait(t, func(done func(error)) error { return n.Seal(1, 3, base.CauseAge, done) })
	require.Eventually(t, func() bool {
		require.NoError(t, n.checkpoint())
		_, held := n.HeldState(1)
		return !held
	}, 10*time.Second, time.Millisecond)
	after, err := n.RangeState(1)
	require.NoError(t, err)
	before.Commit(3)
	require.Equal(t, before.Checksum(), after.Checksum())
}

func TestSpanLeavesBatchesOut(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	for i := range uint64(100) {
		b := makeBatch(1, 0, int64(i), 1, 5000, -1, 0)
		b.SpanLo, b.SpanHi = i<<32, i<<32+1
		require.NoError(t, n.appendWait(1, b))
		n.Publish(1, int64(i+1))
	}
	span := keyspace.Span{Start: 40 << 32, End: 42 << 32}
	total := func() (bytes int) {
		for off := int64(0); off < 100; {
			r, err := n.Read(refOf(1), off, 20_000, &span)
			require.NoError(t, err)
			require.Greater(t, r.Next, off)
			bytes += r.Bytes
			r.Release()
			off = r.Next
		}
		return bytes
	}
	require.Equal(t, 2*5061, total())
	require.NoError(t, n.checkpoint())
	n.restart()
	require.Less(t, total(), 5*5061)
	require.GreaterOrEqual(t, total(), 2*5061)
}

func TestBackPressure(t *testing.T) {
	o := small()
	o.DirtyBytes = 200 << 10
	n := start(t, vfs.NewMem(), o) // not started: nothing is flushed
	n.openSegment(specOf(1, 0, 0))
	var err error
	for i := range 100 {
		if err = n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10_000, -1, 0)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, base.CodeBusy)
	require.LessOrEqual(t, n.dirty.Load(), o.DirtyBytes)
	i, _ := n.Info(1)
	require.NoError(t, n.checkpoint())
	require.NoError(t, n.appendWait(1, makeBatch(1, 0, i.DurableEnd, 1, 10_000, -1, 0)), "room again")

	o = small()
	o.WALBytes = 200 << 10
	n = start(t, vfs.NewMem(), o)
	n.openSegment(specOf(1, 0, 0))
	for i := range 100 {
		if err = n.appendWait(1, makeBatch(1, 0, int64(i), 1, 10_000, -1, 0)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, base.CodeBusy)
}

func TestTheLogIsTrimmedWhateverIsIdle(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	require.NoError(t, n.Start(context.Background()))
	n.openSegment(specOf(1, 0, 0))
	idle := specOf(2, 0, 0)
	idle.Ref = refOf(2)
	n.openSegment(idle)
	once := n.put(2, 1, 10)
	var want []byte
	for range 600 {
		for {
			i, _ := n.Info(1)
			b := makeBatch(1, 0, i.DurableEnd, 1, 10_000, -1, 0)
			err := n.appendWait(1, b)
			if err != nil {
				require.ErrorIs(t, err, base.CodeBusy)
				continue
			}
			n.Publish(1, b.Header.End())
			want = append(want, b.Bytes...)
			break
		}
	}
	require.Eventually(t, func() bool { // the flusher may be a moment behind
		st := n.Stats()
		return st.Checkpoints > 3 && st.WAL.Bytes < 6<<20 && st.CachedBytes < 2<<20
	}, patience, time.Millisecond)
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	sameBytes(t, once, n.mustRead(refOf(2), 0, 1<<20))
}

func TestErrorsAfterClose(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 0, 0))
	require.NoError(t, n.Store.Close())
	require.NoError(t, n.Store.Close())
	nop := func(error) {}
	for name, err := range map[string]error{
		"append": n.Append(1, makeBatch(1, 0, 0, 1, 1, -1, 0), nil),
		"open":   n.OpenSegment(specOf(2, 0, 0), nop),
		"fence":  n.Fence(refOf(1), 0, 1, nil),
		"all":    n.FenceAllLed(nop),
		"seal":   n.Seal(1, 0, base.CauseAge, nop),
		"drop":   n.DropSegments(refOf(1), nil, nop),
		"topic":  n.DropTopic(topicA, nop),
	} {
		require.ErrorIs(t, err, base.CodeShuttingDown, fmt.Sprint(name))
	}
}

func TestRangesComeInPages(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	var want []base.RangeRef
	for i := range 23 {
		spec := specOf(base.SegmentID(i+1), 0, 0)
		spec.Ref = base.RangeRef{Topic: base.TopicID{byte(i * 37 % 5)}, Range: base.RangeID(i + 1)}
		want = append(want, spec.Ref)
		n.openSegment(spec)
	}
	slices.SortFunc(want, base.RangeRef.Compare)
	for _, limit := range []int{1, 4, 23, 100} {
		var got []base.RangeRef
		for from := (base.RangeRef{}); ; {
			page := n.Ranges(from, limit+1)
			got = append(got, page[:min(len(page), limit)]...)
			if len(page) <= limit {
				break
			}
			from = page[limit]
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
}
