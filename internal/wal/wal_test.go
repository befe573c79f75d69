package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "/wal"

var disk = base.UUID{1, 2, 3}

// newDisk is an empty file system with the log's directory on it.
func newDisk(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll(dir, 0o700))
	return m
}

// small are options under which a few entries fill a file.
func small(fs vfs.FS) wal.Options {
	return wal.Options{FS: fs, Dir: dir, UUID: disk, FileBytes: 16 << 10}
}

// record is an entry as replay gave it.
type record struct {
	LSN     wal.LSN
	Kind    uint8
	Payload string
}

// open opens a log and returns what it replayed.
func open(t testing.TB, o wal.Options) (*wal.Log, wal.Recovery, []record) {
	t.Helper()
	l, rec, got, err := tryOpen(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, rec, got
}

func tryOpen(o wal.Options) (l *wal.Log, rec wal.Recovery, got []record, err error) {
	l, rec, err = wal.Open(o, func(lsn wal.LSN, kind uint8, payload []byte) error {
		got = append(got, record{lsn, kind, string(payload)})
		return nil
	})
	return l, rec, got, err
}

func entry(kind uint8, parts ...string) wal.Entry {
	e := wal.Entry{Kind: kind, Records: 1}
	for _, p := range parts {
		e.Parts = append(e.Parts, []byte(p))
	}
	return e
}

// put appends one entry and waits for it.
func put(t testing.TB, l *wal.Log, kind uint8, parts ...string) record {
	t.Helper()
	lsn, err := l.AppendWait(context.Background(), entry(kind, parts...))
	require.NoError(t, err)
	payload := ""
	for _, p := range parts {
		payload += p
	}
	return record{lsn, kind, payload}
}

func TestAppendedEntriesAreReplayedInOrder(t *testing.T) {
	m := newDisk(t)
	l, rec, got := open(t, small(m))
	require.Empty(t, got)
	require.Zero(t, rec.End)

	want := []record{put(t, l, 1, "one"), put(t, l, 2, "t", "", "wo"), put(t, l, 3), put(t, l, 4, string(make([]byte, 3000)))}
	require.Equal(t, l.Durable(), want[3].LSN)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "twice")

	l, rec, got = open(t, small(m))
	require.Equal(t, want, got)
	require.Empty(t, rec.Damage)
	require.Equal(t, 4, rec.Replayed)
	require.GreaterOrEqual(t, rec.End, want[3].LSN)

	more := put(t, l, 5, "five")
	require.Greater(t, more.LSN, want[3].LSN)
	require.NoError(t, l.Close())
	_, _, got = open(t, small(m))
	require.Equal(t, append(want, more), got)
}

func TestFilesRollAndAreRecycled(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	var want []record
	for i := range 200 {
		want = append(want, put(t, l, 1, fmt.Sprintf("entry %d %s", i, make([]byte, i*7%900))))
	}
	st := l.Stats()
	require.Greater(t, st.Files, 3)
	require.Equal(t, uint64(200), st.Entries)
	require.Zero(t, st.QueuedBytes)

	keepFrom := want[150]
	require.NoError(t, l.TrimTo(keepFrom.LSN))
	require.NoError(t, l.TrimTo(keepFrom.LSN), "twice")
	after := l.Stats()
	require.Less(t, after.Files, st.Files)
	require.LessOrEqual(t, after.Start, keepFrom.LSN)
	require.LessOrEqual(t, after.Spares, 2)

	for i := range 200 { // over the recycled files, whose old frames must not come back
		want = append(want, put(t, l, 2, fmt.Sprintf("again %d", i)))
	}
	require.NoError(t, l.Close())
	_, rec, got := open(t, small(m))
	require.Empty(t, rec.Damage)
	require.Equal(t, after.Start, rec.Start)
	require.Equal(t, want[len(want)-len(got):], got)
	require.LessOrEqual(t, got[0].LSN, keepFrom.LSN)
}

// Each start begins a file, so the room that a log takes is that of its files, and not of what it holds.
func TestReachGoesByFiles(t *testing.T) {
	m := newDisk(t)
	var starts []wal.LSN
	var l *wal.Log
	for i := range 6 {
		l, _, _ = open(t, small(m))
		starts = append(starts, l.End())
		put(t, l, 1, fmt.Sprintf("start %d", i))
		if i < 5 {
			require.NoError(t, l.Close())
		}
	}
	const file = 16 << 10
	require.Equal(t, starts[5], l.Reach(0), "the file being written")
	require.Equal(t, starts[5], l.Reach(file))
	require.Equal(t, starts[5], l.Reach(2*file-1))
	require.Equal(t, starts[3], l.Reach(3*file))
	require.Equal(t, starts[0], l.Reach(100*file))
	require.NoError(t, l.TrimTo(l.Reach(2*file)))
	require.Equal(t, 2, l.Stats().Files)
	require.Equal(t, starts[4], l.Reach(100*file))
}

func TestConcurrentAppendsKeepTheOrderOfTheCalls(t *testing.T) {
	m := newDisk(t)
	o := small(m)
	o.FileBytes = 64 << 10
	l, _, _ := open(t, o)
	const writers, each = 8, 300
	var mu sync.Mutex // serialises the calls, so that their order is known
	var order, acked []string
	var wg, acks sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewSource(int64(w)))
			for i := range each {
				text := fmt.Sprintf("%d/%d/%s", w, i, make([]byte, rng.Intn(300)))
				acks.Add(1)
				mu.Lock()
				err := l.Append(entry(1, text), func(_ wal.LSN, err error) {
					defer acks.Done()
					if err == nil {
						acked = append(acked, text)
					}
				})
				order = append(order, text)
				mu.Unlock()
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	acks.Wait()
	require.Equal(t, order, acked)
	require.NoError(t, l.Close())
	_, _, got := open(t, o)
	require.Len(t, got, writers*each)
	for i := range got {
		require.Equal(t, order[i], got[i].Payload)
		require.True(t, i == 0 || got[i].LSN > got[i-1].LSN)
	}
}

func TestHugeEntryGetsAFileOfItsOwn(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	huge := string(make([]byte, 100_000)) + "end"
	want := []record{put(t, l, 1, "before"), put(t, l, 2, huge), put(t, l, 3, string(make([]byte, 9000)))}
	require.NoError(t, l.Close())
	l, rec, got := open(t, small(m))
	require.Equal(t, want, got)
	require.Empty(t, rec.Damage)
	require.NoError(t, l.TrimTo(want[2].LSN))
	for _, e := range mustReadDir(t, m) {
		info, err := m.Stat(dir + "/" + e.Name)
		require.NoError(t, err)
		require.EqualValues(t, 16<<10, info.Size, "%s must not be kept", e.Name)
	}
}

func mustReadDir(t testing.TB, fs vfs.FS) []vfs.DirEntry {
	t.Helper()
	list, err := fs.ReadDir(dir)
	require.NoError(t, err)
	return list
}

func TestQueueLimitAnswersBusy(t *testing.T) {
	m := newDisk(t)
	gate := make(chan struct{})
	f := vfs.NewFault(m)
	o := small(f)
	o.QueueBytes = 1000
	l, _, _ := open(t, o)
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Before: func(vfs.Call) { <-gate }})

	var acks sync.WaitGroup
	accepted := 0
	for {
		acks.Add(1)
		err := l.Append(entry(1, string(make([]byte, 100))), func(_ wal.LSN, err error) {
			defer acks.Done()
			require.NoError(t, err)
		})
		if err != nil {
			acks.Done()
			require.ErrorIs(t, err, base.CodeBusy)
			require.Equal(t, base.NotApplied, base.OutcomeOf(err))
			break
		}
		accepted++
	}
	require.Equal(t, 1000/128, accepted)
	close(gate)
	acks.Wait()
	put(t, l, 1, "there is room again")
}

func TestEntryLargerThanTheQueueIsTakenAlone(t *testing.T) {
	o := small(newDisk(t))
	o.QueueBytes = 1000
	l, _, _ := open(t, o)
	put(t, l, 1, string(make([]byte, 5000)))
}

func TestAppendWaitGivesUpWithAnUnknownOutcome(t *testing.T) {
	f := vfs.NewFault(newDisk(t))
	l, _, _ := open(t, small(f))
	gate := make(chan struct{})
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Before: func(vfs.Call) { <-gate }})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.AppendWait(ctx, entry(1, "x"))
	require.Equal(t, base.Unknown, base.OutcomeOf(err))
	close(gate)
}

func TestClosedLogRefuses(t *testing.T) {
	l, _, _ := open(t, small(newDisk(t)))
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Append(entry(1), nil), base.CodeShuttingDown)
}

func TestCloseDrains(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	var acked int
	for range 500 {
		require.NoError(t, l.Append(entry(1, "abc"), func(_ wal.LSN, err error) {
			if err == nil {
				acked++
			}
		}))
	}
	require.NoError(t, l.Close())
	require.Equal(t, 500, acked)
	lost := m.CrashClone(rand.New(rand.NewSource(1)), 0)
	_, _, got := open(t, small(lost))
	require.Len(t, got, 500)
}

func TestForeignDiskIsRefused(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	require.NoError(t, l.Close())
	o := small(m)
	o.UUID = base.UUID{9}
	_, _, _, err := tryOpen(o)
	require.ErrorIs(t, err, base.CodeCorruptData)
	require.ErrorContains(t, err, "belongs to disk")
}

func TestReplayErrorEndsOpen(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	put(t, l, 1, "x")
	require.NoError(t, l.Close())
	stop := errors.New("stop")
	_, _, err := wal.Open(small(m), func(wal.LSN, uint8, []byte) error { return stop })
	require.ErrorIs(t, err, stop)
}

func TestFailedSyncIsTheEnd(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpSyncData, vfs.OpWrite} {
		t.Run(op.String(), func(t *testing.T) {
			f := vfs.NewFault(newDisk(t))
			o := small(f)
			fatal := make(chan error, 10)
			o.OnFatal = func(err error) { fatal <- err }
			l, _, _ := open(t, o)
			put(t, l, 1, "fine")

			f.Add(vfs.Rule{Ops: op, Path: "*.wal", Err: syscall.EIO, Times: 1}) // once, then the disk lies
			_, err := l.AppendWait(context.Background(), entry(1, "lost"))
			require.ErrorIs(t, err, syscall.EIO)
			require.Equal(t, base.Unknown, base.OutcomeOf(err))
			require.ErrorIs(t, <-fatal, syscall.EIO)

			_, err = l.AppendWait(context.Background(), entry(1, "never"))
			require.ErrorIs(t, err, syscall.EIO)
			require.Equal(t, base.NotApplied, base.OutcomeOf(err))
			require.ErrorIs(t, l.TrimTo(1), syscall.EIO)
			require.ErrorIs(t, l.Close(), syscall.EIO)
			require.Empty(t, fatal, "told once")
		})
	}
}

func TestFailureReachesEverythingQueued(t *testing.T) {
	f := vfs.NewFault(newDisk(t))
	l, _, _ := open(t, small(f))
	gate := make(chan struct{})
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Err: syscall.EIO, Times: 1, Before: func(vfs.Call) { <-gate }})
	var acks sync.WaitGroup
	for range 100 {
		acks.Add(1)
		require.NoError(t, l.Append(entry(1, "x"), func(_ wal.LSN, err error) {
			defer acks.Done()
			if err == nil {
				t.Error("acknowledged after a failed sync")
			}
		}))
	}
	close(gate)
	acks.Wait()
	require.Error(t, l.Close())
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	m := newDisk(t)
	m.SetCapacity(3*16<<10 + 100)
	o := small(m)
	o.OnFatal = func(err error) { t.Errorf("a full disk is not the end: %v", err) }
	l, _, _ := open(t, o)
	var want []record
	var err error
	for err == nil {
		var lsn wal.LSN
		lsn, err = l.AppendWait(context.Background(), entry(1, string(make([]byte, 900))))
		if err == nil {
			want = append(want, record{lsn, 1, string(make([]byte, 900))})
		}
	}
	require.ErrorIs(t, err, base.CodeDiskFull)
	require.Equal(t, base.NotApplied, base.OutcomeOf(err))
	require.NotEmpty(t, want)

	require.NoError(t, l.TrimTo(want[len(want)-1].LSN))
	want = append(want, put(t, l, 2, "space again"))
	require.NoError(t, l.Close())
	_, rec, got := open(t, small(m))
	require.Empty(t, rec.Damage)
	require.Equal(t, want[len(want)-len(got):], got)
}

func TestDiskFullInMidWriteLeavesNothingBehind(t *testing.T) {
	m := newDisk(t)
	f := vfs.NewFault(m)
	o := small(f)
	o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
	l, _, _ := open(t, o)
	want := []record{put(t, l, 1, "one")}
	f.Add(vfs.Rule{Ops: vfs.OpWrite, Path: "*.wal", Err: syscall.ENOSPC, Short: 4096, Times: 1})
	_, err := l.AppendWait(context.Background(), entry(1, string(make([]byte, 2000))))
	require.ErrorIs(t, err, base.CodeDiskFull)
	want = append(want, put(t, l, 1, "two"))
	require.NoError(t, l.Close())
	_, rec, got := open(t, small(m))
	require.Empty(t, rec.Damage)
	require.Equal(t, want, got)
}

func TestSlowDiskGathersMoreThanOneCommit(t *testing.T) {
	f := vfs.NewFault(newDisk(t))
	o := small(f)
	o.FileBytes = 1 << 20
	o.MaxCommitRecords = 10
	l, _, _ := open(t, o)
	gate := make(chan struct{})
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Before: func(vfs.Call) { <-gate }})
	var acks sync.WaitGroup
	for range 100 {
		acks.Add(1)
		require.NoError(t, l.Append(entry(1, "x"), func(_ wal.LSN, err error) { acks.Done() }))
	}
	require.Eventually(t, func() bool { return l.End() >= 90*32 }, 20*time.Second, time.Millisecond, "full commits are written while the disk syncs")
	syncs := f.Count(vfs.OpSyncData)
	close(gate)
	acks.Wait()
	require.LessOrEqual(t, f.Count(vfs.OpSyncData)-syncs, 2, "and share a sync")
}
