package store

import (
	"bytes"
	oldrand "math/rand"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
)

// fill gives a segment n batches and returns them.
func (n *node) fill(seg base.SegmentID, batches, body int) (all []Batch) {
	n.t.Helper()
	for i := range batches {
		info, ok := n.Info(seg)
		require.True(n.t, ok)
		b := makeBatch(uint64(i), info.Epoch, info.Base+info.Records, 1+i%3, body, 77, int32(info.Records))
		require.NoError(n.t, n.appendWait(seg, b))
		n.Publish(seg, b.Header.End())
		all = append(all, b)
	}
	return all
}

func endOf(batches []Batch) int64 { return batches[len(batches)-1].Header.End() }

func bytesOf(batches []Batch) (all []byte) {
	for _, b := range batches {
		all = append(all, b.Bytes...)
	}
	return all
}

// clones are batches as another node would send them: in memory of their own.
func clones(batches []Batch) (all []Batch) {
	for _, b := range batches {
		b.Bytes = append([]byte(nil), b.Bytes...)
		all = append(all, b)
	}
	return all
}

func (n *node) seal(seg base.SegmentID, end int64) {
	n.t.Helper()
	wait(n.t, func(done func(error)) error { return n.Seal(seg, end, base.CauseReplicaFailure, done) })
}

// whole is a store that holds all of a sealed segment 1.
func whole(t *testing.T, batches int) (*node, []Batch) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	all := n.fill(1, batches, 300)
	n.seal(1, endOf(all))
	return n, all
}

func TestAShortCopyIsMendedFromAWholeOne(t *testing.T) {
	for _, name := range []string{"from memory", "from the file", "from the file after a restart"} {
		t.Run(name, func(t *testing.T) {
			donor, all := whole(t, 40)
			if name != "from memory" {
				require.NoError(t, donor.checkpoint())
				donor.evictAll()
			}
			if name == "from the file after a restart" {
				donor.restart()
			}
			end := endOf(all)

			n := start(t, vfs.NewMem(), small())
			n.openSegment(specOf(1, 3, 10))
			for _, b := range clones(all[:13]) {
				require.NoError(t, n.appendWait(1, b))
			}
			has := endOf(all[:13])
			n.seal(1, end)
			info, _ := n.Info(1)
			require.False(t, info.Whole())
			require.Equal(t, has, info.DurableEnd)
			require.Equal(t, has, info.Commit, "what is here below the end is committed")
			_, err := n.Read(refOf(1), has, 1<<20, nil)
			require.ErrorIs(t, err, base.CodeBehind, "another replica has more")
			sameBytes(t, bytesOf(all[:13]), readTo(t, n, has))
			_, err = n.Checksum(t.Context(), 1)
			require.ErrorIs(t, err, base.CodeBehind)

			for pieces := 0; ; pieces++ {
				info, _ = n.Info(1)
				if info.Whole() {
					require.Greater(t, pieces, 2)
					break
				}
				tail, err := donor.Tail(1, info.DurableEnd, end, 3000)
				require.NoError(t, err)
				require.EqualValues(t, len(bytesOf(all))-int(info.Bytes), tail.Left)
				require.NoError(t, n.Mend(1, clones(tail.Batches)))
				if pieces%2 == 0 {
					n.restart()
				}
			}
			sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 5000))
			want, err := donor.Checksum(t.Context(), 1)
			require.NoError(t, err)
			got, err := n.Checksum(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, want, got)
			n.restart()
			sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 1<<20))
			state, err := n.RangeState(1)
			require.NoError(t, err)
			_, next, known := state.Producer(77)
			require.True(t, known)
			require.EqualValues(t, end-10, next)
		})
	}
}

// readTo reads what lies below an offset of segment 1.
func readTo(t *testing.T, n *node, end int64) []byte {
	t.Helper()
	b, off, err := n.read(refOf(1), 10, 1000)
	require.ErrorIs(t, err, base.CodeBehind)
	require.Equal(t, end, off)
	return b
}

// evictAll lets go of all that is in files.
func (n *node) evictAll() {
	n.takeToken()
	defer n.giveToken()
	was := n.o.CacheBytes
	n.o.CacheBytes = 0
	n.evict()
	n.o.CacheBytes = was
}

func TestACopyOfWhichNothingIsHereIsHeldSealedAndMended(t *testing.T) {
	donor, all := whole(t, 10)
	end := endOf(all)
	n := start(t, vfs.NewMem(), small())
	wait(t, func(done func(error)) error {
		return n.Fence(refOf(1), 3, 1, func(a FenceAnswer, err error) { done(err) })
	})
	spec := specOf(1, 3, 10)
	spec.LeaderHere = false
	for range 2 {
		wait(t, func(done func(error)) error { return n.HoldSealed(spec, end, base.CauseRecovery, done) })
		n.restart()
	}
	info, ok := n.Info(1)
	require.True(t, ok)
	require.Equal(t, end, info.SealedEnd)
	require.False(t, info.Whole())
	tail, err := donor.Tail(1, 10, end, 1<<20)
	require.NoError(t, err)
	require.NoError(t, n.Mend(1, clones(tail.Batches)))
	sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 1<<20))
}

func TestMendTakesOnlyWhatFits(t *testing.T) {
	donor, all := whole(t, 10)
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	for _, b := range clones(all[:3]) {
		require.NoError(t, n.appendWait(1, b))
	}
	require.ErrorIs(t, n.Mend(1, clones(all[3:4])), base.CodePreconditionFailed, "not sealed")
	end := endOf(all[:6])
	n.seal(1, end)
	require.ErrorIs(t, n.Mend(1, clones(all[4:5])), base.CodeInvalidArgument, "a gap")
	require.ErrorIs(t, n.Mend(1, clones(all[2:4])), base.CodeInvalidArgument, "here already")
	require.ErrorIs(t, n.Mend(1, clones(all[3:7])), base.CodeInvalidArgument, "behind the end")
	info, _ := n.Info(1)
	require.True(t, info.Whole(), "what fits was taken")
	sameBytes(t, bytesOf(all[:6]), n.mustRead(refOf(1), 10, 1<<20))
	require.ErrorIs(t, n.Mend(2, nil), base.CodeSegmentNotFound)

	_, err := donor.Tail(1, 10, endOf(all)+1, 1<<20)
	require.ErrorIs(t, err, base.CodeBehind)
	_, err = donor.Tail(1, 10, end, 1<<20)
	require.ErrorIs(t, err, base.CodeBehind, "it ends elsewhere here")
	_, err = donor.Tail(1, endOf(all), endOf(all), 1<<20)
	require.ErrorIs(t, err, base.CodeInvalidArgument)
	_, err = donor.Tail(9, 10, 11, 1<<20)
	require.ErrorIs(t, err, base.CodeNotReplica)
}

// What is known of producers is known after a mend too, also when it had to be read from its file.
func TestAMendForgetsNoProducer(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	require.NoError(t, n.appendWait(1, makeBatch(1, 3, 10, 2, 100, 55, 0)))
	n.seal(1, 14)
	require.NoError(t, n.checkpoint())
	n.restart()
	require.NoError(t, n.Mend(1, []Batch{makeBatch(2, 3, 12, 2, 100, 77, 0)}))
	for range 2 {
		state, err := n.RangeState(1)
		require.NoError(t, err)
		for _, producer := range []int64{55, 77} {
			_, next, known := state.Producer(producer)
			require.True(t, known)
			require.EqualValues(t, 2, next)
		}
		n.restart()
	}
}

// What is damaged is for a repair to replace; nothing is put behind it.
func TestADamagedCopyIsNotMended(t *testing.T) {
	_, all := whole(t, 3)
	n := start(t, vfs.NewMem(), small())
	n.openSegment(specOf(1, 3, 10))
	require.NoError(t, n.appendWait(1, clones(all)[0]))
	n.seal(1, endOf(all))
	g := n.segmentOf(1)
	g.rng.mu.Lock()
	g.rotten, g.intact = true, 10
	g.rng.mu.Unlock()
	require.ErrorIs(t, n.Mend(1, clones(all[1:])), base.CodeCorruptData)
}

// What the log refused of a mend is taken back, so that it can be given again; so is what no file had room for.
func TestAMendThatTheDiskRefusesIsTakenUpAgain(t *testing.T) {
	_, all := whole(t, 100)
	mem := vfs.NewMem()
	disk := vfs.NewFault(mem)
	n := start(t, disk, tiny())
	n.openSegment(specOf(1, 3, 10))
	n.seal(1, endOf(all))
	missing := func() []Batch {
		info, _ := n.Info(1)
		from := slices.IndexFunc(all, func(b Batch) bool { return b.Header.BaseOffset == info.DurableEnd })
		return clones(all[from:])
	}
	disk.Add(vfs.Rule{Ops: vfs.OpWrite, Path: "data/wal/*.wal", Times: 1, Err: syscall.ENOSPC})
	require.ErrorIs(t, n.Mend(1, missing()[:50]), base.CodeDiskFull)
	require.Len(t, missing(), len(all), "nothing was taken")
	disk.Clear()
	n.space.probe(0)

	n.untilFull(mem, func(int) error { return n.Mend(1, missing()[:1]) })
	require.Less(t, len(missing()), len(all))
	require.NoError(t, n.Mend(1, missing()))
	sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 2000))
	n.restart()
	sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 2000))
}

// What a copy held above its committed end is void; the bytes of what really was there take its place, in memory and in
// the file, whatever had been written of it.
func TestAMendedTailTakesThePlaceOfAVoidOne(t *testing.T) {
	donor, all := whole(t, 100)
	for _, flushed := range []bool{false, true} {
		mem := vfs.NewMem()
		n := start(t, mem, tiny())
		n.openSegment(specOf(1, 3, 10))
		has := n.untilFull(mem, func(i int) error { return n.appendWait(1, clones(all[i : i+1])[0]) })
		require.Less(t, has, len(all))
		info, _ := n.Info(1)
		require.Equal(t, endOf(all[:has]), info.DurableEnd)
		require.Greater(t, info.Records, info.DurableEnd-info.Base, "what was refused lies behind")
		if flushed {
			require.NoError(t, n.checkpoint())
		}
		n.seal(1, endOf(all))
		info, _ = n.Info(1)
		require.Equal(t, endOf(all[:has]), info.DurableEnd)
		require.EqualValues(t, len(bytesOf(all[:has])), info.Bytes)
		if !flushed {
			require.Equal(t, info.DurableEnd, n.segmentOf(1).state.End(), "what the range remembers ends there too")
		}
		tail, err := donor.Tail(1, info.DurableEnd, endOf(all), 1<<20)
		require.NoError(t, err)
		require.NoError(t, n.Mend(1, clones(tail.Batches)))
		want, err := donor.RangeState(1)
		require.NoError(t, err)
		got, err := n.RangeState(1)
		require.NoError(t, err)
		require.Equal(t, want.Checksum(), got.Checksum())
		sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 2000))
		n.restart()
		sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 2000))
	}
}

// untilFull writes, from the first on, until a full disk has refused one write, and then makes room again. It returns how
// many were taken.
func (n *node) untilFull(mem *vfs.Mem, write func(i int) error) int {
	n.t.Helper()
	n.space.headroom = -1 << 40 // the look at the disk must not refuse it first
	mem.SetCapacity(0)
	for i := 0; ; i++ {
		if err := write(i); err != nil {
			require.ErrorIs(n.t, err, base.CodeDiskFull)
			mem.SetCapacity(1 << 30)
			n.space.probe(0)
			return i
		}
	}
}

// A mend may be cut off by a crash at any point: what is there is a prefix, and the rest can be copied again.
func TestAMendSurvivesCrashes(t *testing.T) {
	donor, all := whole(t, 30)
	end := endOf(all)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		mem := vfs.NewMem()
		n := start(t, mem, small())
		n.openSegment(specOf(1, 3, 10))
		for _, b := range clones(all[:5]) {
			require.NoError(t, n.appendWait(1, b))
		}
		n.seal(1, end)
		for {
			info, _ := n.Info(1)
			if info.Whole() {
				break
			}
			tail, err := donor.Tail(1, info.DurableEnd, end, 500+rng.IntN(3000))
			require.NoError(t, err)
			require.NoError(t, n.Mend(1, clones(tail.Batches)))
			acked := endOf(tail.Batches)
			if rng.IntN(2) == 0 {
				require.NoError(t, n.checkpoint())
			}
			mem = mem.CrashClone(oldrand.New(oldrand.NewSource(int64(seed))), rng.Float64())
			n.stop()
			n = start(t, mem, small())
			info, _ = n.Info(1)
			require.Equal(t, acked, info.DurableEnd, "seed %d", seed)
		}
		sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 2000))
	}
}

func TestReadableFromMemory(t *testing.T) {
	n := start(t, vfs.NewMem(), small())
	spec := specOf(1, 3, 10)
	spec.Memory = true
	n.openSegment(spec)
	b := makeBatch(1, 3, 10, 4, 100, header.NoProducer, 0)
	done := make(chan error, 1)
	require.NoError(t, n.Append(1, b, func(_ int64, err error) { done <- err }))
	n.Publish(1, 14)
	info, _ := n.Info(1)
	require.EqualValues(t, 14, info.Commit)
	sameBytes(t, b.Bytes, n.mustRead(refOf(1), 10, 1<<20))
	require.NoError(t, <-done)
	n.restart()
	info, _ = n.Info(1)
	require.True(t, info.Memory)
	require.LessOrEqual(t, info.Commit, info.DurableEnd)
	n.seal(1, 10) // whoever had the rest has lost it
	info, _ = n.Info(1)
	require.EqualValues(t, 10, info.Commit)
	require.True(t, info.Whole())
}

// What a full disk refuses of a topic that acks from memory may have been acked: the copy ends below that, and must not
// be what the end of the segment is found by.
func TestACopyInMemoryThatTheDiskRefusedIsNoExtent(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	spec := specOf(1, 3, 0)
	spec.Memory = true
	n.openSegment(spec)
	require.NoError(t, n.appendWait(1, makeBatch(1, 3, 0, 1, 100, header.NoProducer, 0)))
	fence := func() (a FenceAnswer) {
		wait(t, func(done func(error)) error {
			return n.Fence(refOf(1), 1, 1, func(x FenceAnswer, err error) { a = x; done(err) })
		})
		return a
	}
	require.Equal(t, FenceAnswer{Kind: FenceExtent, Listed: true, End: 1, Unbroken: true}, fence())
	taken := n.untilFull(mem, func(i int) error { return n.appendWait(1, makeBatch(1, 3, int64(1+i), 1, 3000, header.NoProducer, 0)) })
	end := int64(1 + taken)
	require.Equal(t, FenceAnswer{Kind: FenceDamaged, Listed: true, End: end, DamagedAbove: end, Unbroken: true}, fence())
}

// What was written above the end counts for nothing, before the flusher has cut it off as after.
func TestAVoidTailInTheFileIsNotCounted(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	n.openSegment(specOf(1, 3, 10))
	all := n.fill(1, 20, 500)
	void := makeBatch(5, 3, endOf(all), 3, 900, header.NoProducer, 0)
	require.NoError(t, n.appendWait(1, void))
	require.NoError(t, n.checkpoint())
	n.seal(1, endOf(all))
	disk := mem.Snapshot()
	for range 3 {
		n = start(t, disk, small())
		info, _ := n.Info(1)
		require.EqualValues(t, len(bytesOf(all)), info.Bytes)
		disk = disk.Snapshot() // killed
	}
	n.restart()
	info, _ := n.Info(1)
	require.EqualValues(t, len(bytesOf(all)), info.Bytes)
	sameBytes(t, bytesOf(all), n.mustRead(refOf(1), 10, 1<<20))
}

// Readers, checkpoints and evictions go on while a copy is mended.
func TestMendingBesideEverythingElse(t *testing.T) {
	donor, all := whole(t, 120)
	end := endOf(all)
	o := small()
	o.CacheBytes = 1
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 3, 10))
	for _, b := range clones(all[:10]) {
		require.NoError(t, n.appendWait(1, b))
	}
	n.seal(1, end)
	want := bytesOf(all)
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for running(stop) {
			got, _, err := n.read(refOf(1), 10, 3000)
			if err != nil && base.CodeOf(err) != base.CodeBehind || !bytes.HasPrefix(want, got) {
				t.Errorf("read %d bytes: %v", len(got), err)
				return
			}
		}
	})
	others.Go(func() {
		for running(stop) {
			if err := n.checkpoint(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for {
		info, _ := n.Info(1)
		if info.Whole() {
			break
		}
		tail, err := donor.Tail(1, info.DurableEnd, end, 2000)
		require.NoError(t, err)
		require.NoError(t, n.Mend(1, clones(tail.Batches)))
	}
	close(stop)
	others.Wait()
	sameBytes(t, want, n.mustRead(refOf(1), 10, 5000))
	require.NoError(t, n.checkpoint())
	n.restart()
	sameBytes(t, want, n.mustRead(refOf(1), 10, 5000))
}

func running(stop chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}
