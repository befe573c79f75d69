package shard

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/vfs"
)

// crashPoint is a clone of the disk taken right before an operation, and what had been acknowledged by then.
type crashPoint struct {
	at    vfs.Call
	disk  *vfs.Mem
	acked int
}

// TestNoAcknowledgedCommandIsLostInACrash takes clones of meta_dir before the writes, syncs and renames of a script of
// proposals with snapshots, trims and copies in it, and restarts from each.
func TestNoAcknowledgedCommandIsLostInACrash(t *testing.T) {
	keepOneIn, topics := 23, 120
	if os.Getenv("EASTGUARD_SOAK") != "" {
		keepOneIn, topics = 1, 400
	}
	rng := rand.New(rand.NewSource(1))
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	var (
		mu     sync.Mutex
		acked  int
		points []crashPoint
		seen   int
	)
	fault.Add(vfs.Rule{Ops: vfs.OpChanges, Before: func(c vfs.Call) {
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen%keepOneIn == 0 {
			points = append(points, crashPoint{at: c, disk: mem.CrashClone(rng, rng.Float64()), acked: acked})
		}
	}})
	o := options(fault)
	o.Shards, o.FileBytes, o.snapshotEntries, o.snapshotBytes = 2, 16<<10, 8, 2<<10
	h := start(t, o)
	for i := range topics {
		require.NoError(t, create(t.Context(), h, i))
		mu.Lock()
		acked = i + 1
		mu.Unlock()
	}
	require.NoError(t, h.Close())
	fault.Clear()
	require.Greater(t, seen, 2*topics)

	for n, p := range points {
		o := o
		o.FS = p.disk
		h, err := tryStart(o)
		require.NoError(t, err, "crash %d before %v", n, p.at)
		for i := range p.acked {
			require.True(t, holds(t, h, i), "crash %d before %v: topic %d of %d is gone", n, p.at, i, p.acked)
		}
		require.NoError(t, create(t.Context(), h, topics), "crash %d before %v", n, p.at)
		require.NoError(t, h.Close())
	}
}

// TestACrashDuringRecoveryLosesNothing crashes again while the first crash is being recovered from.
func TestACrashDuringRecoveryLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	mem := vfs.NewMem()
	o := options(mem)
	o.Shards, o.FileBytes, o.snapshotEntries, o.snapshotBytes = 2, 16<<10, 8, 2<<10
	h := start(t, o)
	const topics = 60
	for i := range topics {
		require.NoError(t, create(t.Context(), h, i))
	}
	disk := mem.CrashClone(rng, 0.5)
	for round := range 12 {
		fault := vfs.NewFault(disk)
		var mu sync.Mutex
		var clone *vfs.Mem
		ops := 0
		stopAt := 1 + rng.Intn(60)
		fault.Add(vfs.Rule{Ops: vfs.OpChanges, Before: func(vfs.Call) {
			mu.Lock()
			defer mu.Unlock()
			if ops++; ops == stopAt {
				clone = disk.CrashClone(rng, rng.Float64())
			}
		}})
		o := o
		o.FS = fault
		h, err := tryStart(o)
		require.NoError(t, err, "round %d", round)
		for i := range topics {
			require.True(t, holds(t, h, i), "round %d, topic %d", round, i)
		}
		require.NoError(t, h.Close())
		mu.Lock()
		if clone != nil {
			disk = clone
		}
		mu.Unlock()
	}
}

// filled is the disk of a host that has taken several snapshots of each shard, cleanly closed.
func filled(t *testing.T, topics int) (*vfs.Mem, Options) {
	mem := vfs.NewMem()
	o := options(mem)
	o.Shards = 1
	h := start(t, o)
	for i := range topics {
		require.NoError(t, create(t.Context(), h, i))
		if i%(topics/3) == 0 {
			snapshotAll(t, h)
		}
	}
	first, _ := h.all()[0].log.FirstIndex()
	require.Greater(t, first, uint64(1), "the log alone must not do")
	require.NoError(t, h.Close())
	return mem, o
}

// snapshotAll takes a snapshot of every group now.
func snapshotAll(t testing.TB, h *Host) {
	for _, g := range h.all() {
		if err := g.raft.Snapshot().Error(); !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			require.NoError(t, err)
		}
	}
}

func snapshotFiles(t *testing.T, fs vfs.FS) []string {
	entries, err := fs.ReadDir("meta/snapshots/0")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, "meta/snapshots/0/"+e.Name)
	}
	return names
}

func flip(t *testing.T, fs vfs.FS, name string, bit int) {
	b, err := vfs.ReadFile(fs, name)
	require.NoError(t, err)
	b[bit/8] ^= 1 << (bit % 8)
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestADamagedSnapshotFallsBackToTheOlderOne(t *testing.T) {
	const topics = 700
	disk, o := filled(t, topics)
	files := snapshotFiles(t, disk)
	require.Len(t, files, 2)
	rng := rand.New(rand.NewSource(5))
	for range 10 {
		fs := disk.Snapshot()
		info, err := fs.Stat(files[1])
		require.NoError(t, err)
		bit := rng.Intn(int(info.Size) * 8)
		flip(t, fs, files[1], bit)
		o := o
		o.FS = fs
		h, err := tryStart(o)
		require.NoError(t, err, "bit %d", bit)
		for i := 0; i < topics; i += 9 {
			require.True(t, holds(t, h, i), "bit %d, topic %d", bit, i)
		}
		require.NoError(t, h.Close())
		require.Contains(t, snapshotFiles(t, fs), files[1]+snapshotDamaged)
	}
}

func TestWithoutAReadableSnapshotTheStartFails(t *testing.T) {
	disk, o := filled(t, 700)
	for _, name := range snapshotFiles(t, disk) {
		flip(t, disk, name, 200)
	}
	_, err := tryStart(o)
	require.ErrorIs(t, err, base.CodeCorruptData)
	require.ErrorContains(t, err, "snapshot")
}

func TestALogBehindItsSnapshotIsCleared(t *testing.T) {
	disk, o := filled(t, 700)
	h, err := Open(o)
	require.NoError(t, err)
	g := h.all()[0]
	// As if it had been sent the snapshot by a leader: the log ends somewhere before.
	newest := g.snapshots.newestIndex()
	last, _ := g.log.LastIndex()
	require.NoError(t, g.log.DeleteRange(newest-10, last))
	require.NoError(t, h.Close())

	h = start(t, o)
	require.True(t, holds(t, h, 400))
	require.NoError(t, create(t.Context(), h, 900))
	require.NoError(t, h.Close())
	h = start(t, o)
	require.True(t, holds(t, h, 900))

	// With nothing left at all it is not mistaken for a new one.
	require.NoError(t, h.Close())
	require.NoError(t, disk.RemoveAll("meta/wal"))
	require.NoError(t, disk.RemoveAll("meta/snapshots"))
	_, err = tryStart(o)
	require.ErrorIs(t, err, base.CodeCorruptData)
}

func TestATruncatedSnapshotIsSetAside(t *testing.T) {
	const topics = 700
	disk, o := filled(t, topics)
	newest := snapshotFiles(t, disk)[1]
	info, err := disk.Stat(newest)
	require.NoError(t, err)
	for _, size := range []int64{0, 7, 20, info.Size / 2, info.Size - 1} {
		fs := disk.Snapshot()
		f, err := fs.OpenFile(newest, os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
		o := o
		o.FS = fs
		h, err := tryStart(o)
		require.NoError(t, err, "size %d", size)
		require.True(t, holds(t, h, topics-1))
		require.NoError(t, h.Close())
	}
}

func TestARottenLogIsRefused(t *testing.T) {
	disk, o := filled(t, 700)
	entries, err := disk.ReadDir("meta/wal")
	require.NoError(t, err)
	refused, healed := 0, 0
	rng := rand.New(rand.NewSource(7))
	for range 30 {
		fs := disk.Snapshot()
		name := "meta/wal/" + entries[rng.Intn(len(entries))].Name
		info, err := fs.Stat(name)
		require.NoError(t, err)
		if info.Size == 0 {
			continue
		}
		flip(t, fs, name, rng.Intn(int(info.Size)*8))
		o := o
		o.FS = fs
		h, err := tryStart(o)
		if err != nil {
			refused++
			continue
		}
		for i := 0; i < 700; i += 9 {
			require.True(t, holds(t, h, i))
		}
		healed++
		require.NoError(t, h.Close())
	}
	t.Logf("%d flips refused, %d without effect", refused, healed)
}

// TestManyShardsAtOnce is the load of several coordinators and clients on all groups, for the race detector.
func TestManyShardsAtOnce(t *testing.T) {
	o := options(vfs.NewMem())
	o.Shards = 8
	h := start(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	errs := make(chan error, 64)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 60 {
				if err := create(ctx, h, w*1000+i); err != nil {
					errs <- err
					return
				}
				err := h.View(ctx, base.ShardID{Root: uint16(i % 8)}, func(s *meta.State) error {
					for topic := range s.All() {
						if topic.Range(1).Active() == nil {
							return fmt.Errorf("%s has no active segment", topic.Name)
						}
					}
					return nil
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}
