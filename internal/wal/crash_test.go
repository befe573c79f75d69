package wal_test

import (
	"fmt"
	"math/rand"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// history is what a program did with a log, and what the log told it.
type history struct {
	mu       sync.Mutex
	appended []record // in the order of the calls; LSN zero until acknowledged
	acked    int      // entries, always the first ones
	trimmed  wal.LSN  // everything at or above must be there
}

func (h *history) append(t testing.TB, l *wal.Log, kind uint8, payload string) <-chan struct{} {
	t.Helper()
	h.mu.Lock()
	i := len(h.appended)
	h.appended = append(h.appended, record{Kind: kind, Payload: payload})
	h.mu.Unlock()
	done := make(chan struct{})
	require.NoError(t, l.Append(entry(kind, payload), func(lsn wal.LSN, err error) {
		defer close(done)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil || h.acked != i {
			t.Errorf("entry %d: err %v, %d acknowledged before", i, err, h.acked)
			return
		}
		h.appended[i].LSN = lsn
		h.acked++
	}))
	return done
}

func (h *history) trim(t testing.TB, l *wal.Log, lsn wal.LSN) {
	t.Helper()
	h.mu.Lock()
	h.trimmed = max(h.trimmed, lsn)
	h.mu.Unlock()
	require.NoError(t, l.TrimTo(lsn))
}

// crashPoint is a disk after a crash, and what had been promised by then.
type crashPoint struct {
	fs      *vfs.Mem
	at      string
	acked   int
	trimmed wal.LSN
}

// check opens the log on the disk and holds it against the history: what is there is an unbroken stretch of what was
// appended, from the trim on, and holds all that was acknowledged.
func (p crashPoint) check(appended []record, o wal.Options) ([]record, wal.Recovery, error) {
	o.FS = p.fs
	l, rec, got, err := tryOpen(o)
	if err != nil {
		return nil, rec, err
	}
	if err := l.Close(); err != nil {
		return nil, rec, err
	}
	if len(rec.Damage) > 0 {
		return nil, rec, fmt.Errorf("damage after a mere crash: %+v", rec.Damage)
	}
	first := 0 // entries that were trimmed may be there, and none below
	for first < p.acked && appended[first].LSN <= rec.Start {
		first++
	}
	if rec.Start > p.trimmed {
		return nil, rec, fmt.Errorf("the log begins at %d, trimmed was %d", rec.Start, p.trimmed)
	}
	if first+len(got) < p.acked {
		return nil, rec, fmt.Errorf("entries %d to %d are there, %d were acknowledged", first, first+len(got), p.acked)
	}
	for i, g := range got {
		want := appended[first+i]
		if g.Kind != want.Kind || g.Payload != want.Payload || first+i < p.acked && g.LSN != want.LSN {
			return nil, rec, fmt.Errorf("entry %d differs", first+i)
		}
	}
	return got, rec, nil
}

// crashScript runs operations on a log and crashes the disk after each change of it: kept is the chance of what was
// not synced to survive.
func crashScript(t *testing.T, seed int64, ops int, kept []float64) (*history, []crashPoint, wal.Options) {
	rng := rand.New(rand.NewSource(seed))
	m := newDisk(t)
	f := vfs.NewFault(m)
	o := small(f)
	o.FileBytes, o.MaxCommitRecords = 12<<10, 8
	h := &history{}

	var points []crashPoint
	var pointsMu sync.Mutex
	crashes := rand.New(rand.NewSource(seed + 1))
	f.Add(vfs.Rule{Ops: vfs.OpChanges, After: func(c vfs.Call) {
		h.mu.Lock()
		p := crashPoint{at: fmt.Sprintf("after %s of %s", c.Op, c.Path), acked: h.acked, trimmed: h.trimmed}
		h.mu.Unlock()
		pointsMu.Lock()
		defer pointsMu.Unlock()
		for _, keep := range kept {
			p.fs = m.CrashClone(crashes, keep)
			points = append(points, p)
		}
	}})

	l, _, _ := open(t, o)
	for op := range ops {
		switch n := rng.Intn(20); {
		case n < 12:
			<-h.append(t, l, uint8(op), payload(rng, op))
		case n < 17:
			var last <-chan struct{}
			for i := range 2 + rng.Intn(10) {
				last = h.append(t, l, uint8(op), payload(rng, op*100+i))
			}
			<-last
		case n < 19:
			h.mu.Lock()
			lsn := h.appended[rng.Intn(len(h.appended)+1)%max(1, len(h.appended))].LSN
			h.mu.Unlock()
			h.trim(t, l, lsn)
		default:
			require.NoError(t, l.Close())
			l, _, _ = open(t, o)
		}
	}
	require.NoError(t, l.Close())
	return h, points, o
}

func payload(rng *rand.Rand, i int) string {
	b := make([]byte, rng.Intn(1400))
	if rng.Intn(40) == 0 {
		b = make([]byte, 9000+rng.Intn(9000)) // a file of its own, sometimes
	}
	rng.Read(b)
	return fmt.Sprintf("%d %s", i, b)
}

func TestCrashAtEveryPoint(t *testing.T) {
	ops, seeds := 120, int64(1)
	switch {
	case os.Getenv("EASTGUARD_SOAK") != "":
		ops, seeds = 500, 8
	case testing.Short():
		ops = 40
	}
	for seed := range seeds {
		h, points, o := crashScript(t, seed, ops, []float64{0, 0.5, 1})
		require.Equal(t, h.acked, len(h.appended))
		t.Logf("seed %d: %d entries, %d crash points", seed, h.acked, len(points))
		for i, p := range points {
			where := fmt.Sprintf("seed %d, point %d, %s", seed, i, p.at)
			got, rec, err := p.check(h.appended, o)
			require.NoError(t, err, where)
			again, rec2, err := p.check(h.appended, o) // the first recovery changed nothing that counts
			require.NoError(t, err, "%s, second time", where)
			require.Equal(t, got, again, "%s, second time", where)
			require.Equal(t, rec.End, rec2.End, where)
		}
	}
}

// TestCrashDuringRecovery crashes a sample of crashed disks again at each change that recovery makes.
func TestCrashDuringRecovery(t *testing.T) {
	h, points, o := crashScript(t, 2, 40, []float64{0.5})
	for i := 0; i < len(points); i += 7 {
		p := points[i]
		want, _, err := crashPoint{p.fs.Snapshot(), p.at, p.acked, p.trimmed}.check(h.appended, o)
		require.NoError(t, err)

		f := vfs.NewFault(p.fs)
		rng := rand.New(rand.NewSource(int64(i)))
		var second []*vfs.Mem
		f.Add(vfs.Rule{Ops: vfs.OpChanges, After: func(vfs.Call) { second = append(second, p.fs.CrashClone(rng, 0.5)) }})
		ro := o
		ro.FS = f
		l, _, _, err := tryOpen(ro)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		for j, fs := range second {
			got, _, err := crashPoint{fs, p.at, p.acked, p.trimmed}.check(h.appended, o)
			require.NoError(t, err, "point %d, change %d of recovery", i, j)
			require.Equal(t, want, got, "point %d, change %d of recovery", i, j)
		}
	}
}

// TestKillThenPowerLoss: a process that is killed leaves unsynced bytes in the kernel's memory. The next one reads
// them, so it must make them durable before it builds on them.
func TestKillThenPowerLoss(t *testing.T) {
	m := newDisk(t)
	gate := make(chan struct{})
	f := vfs.NewFault(m)
	l, _, _ := open(t, small(f))
	want := []record{put(t, l, 1, "durable")}
	written := make(chan struct{})
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Before: func(vfs.Call) { close(written); <-gate }, Times: 1})
	require.NoError(t, l.Append(entry(2, "written, not synced"), nil))
	<-written
	killed := m.Snapshot()
	close(gate)
	require.NoError(t, l.Close())

	l, _, got := open(t, small(killed))
	require.Len(t, got, 2)
	require.Equal(t, want[0], got[0])
	more := put(t, l, 3, "on top")
	lost := killed.CrashClone(rand.New(rand.NewSource(1)), 0)
	_, rec, again := open(t, small(lost))
	require.Empty(t, rec.Damage)
	require.Equal(t, append(got, more), again)
}

// TestMarkProvesRotAfterKill: the last commit is acknowledged, the process is killed, and the commit rots. Without
// the mark behind it this would look like a torn end.
func TestMarkProvesRotAfterKill(t *testing.T) {
	m := newDisk(t)
	l, _, _ := open(t, small(m))
	kept := put(t, l, 1, "kept")
	lost := put(t, l, 2, "rotten")
	killed := m.Snapshot()
	require.NoError(t, l.Close())

	for _, e := range mustReadDir(t, killed) {
		file, err := killed.OpenFile(dir+"/"+e.Name, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = file.WriteAt([]byte{0xff}, 4096+int64(lost.LSN)-3) // the last two are padding
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	_, rec, got := open(t, small(killed))
	require.Equal(t, []record{kept}, got)
	require.Len(t, rec.Damage, 1)
	require.Less(t, rec.Damage[0].LSN, lost.LSN)
	require.GreaterOrEqual(t, rec.Damage[0].End, lost.LSN)
}
