package sim

import (
	"math/rand"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/vfs"
)

// lyingDisk says that the log of records is on stable storage when it is not, as long as it lies.
type lyingDisk struct {
	vfs.FS
	lies *atomic.Bool
}

// OpenFile implements vfs.FS.
func (d lyingDisk) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(name, "/data/wal/") {
		return lyingFile{f, d.lies}, nil
	}
	return f, err
}

type lyingFile struct {
	vfs.File
	lies *atomic.Bool
}

// Sync implements vfs.File.
func (f lyingFile) Sync() error {
	if f.lies.Load() {
		return nil
	}
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f lyingFile) SyncData() error {
	if f.lies.Load() {
		return nil
	}
	return f.File.SyncData()
}

// The judges see a cluster whose brokers ack what is not on their disks: the bug is planted below them, in the disks. With
// one such disk nothing is lost: the others have it, and give it back to the one.
func TestJudgesSeeDisksThatLie(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lying func(node int) bool
		lost  bool
	}{
		{"one", func(node int) bool { return node == 2 }, false},
		{"all", func(int) bool { return true }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lies atomic.Bool
			disk := func(node int, disk vfs.FS) vfs.FS {
				if tc.lying(node) {
					return lyingDisk{disk, &lies}
				}
				return disk
			}
			Run(t, Options{Seed: 1, Disk: disk}, func(t *testing.T, c *Cluster) {
				load := c.written(3, steady)
				lies.Store(true)
				time.Sleep(3 * time.Second)
				c.Check()
				load.Stop()
				for _, n := range c.Running() {
					if tc.lying(n.index) {
						n.harmed = true
						n.cutOff(func(disk *vfs.Mem) *vfs.Mem { return disk.CrashClone(rand.New(rand.NewSource(1)), 0) })
					}
				}
				lies.Store(false)
				for _, n := range c.Nodes() {
					if n.proc == nil {
						n.Start()
					}
				}
				c.Await(time.Minute, "all nodes serve", c.allServe)
				c.Quiet(time.Minute)
				if !tc.lost {
					c.Await(3*time.Minute, "the one has been given back what it lost", func() bool {
						time.Sleep(time.Second)
						return ledger.Report(c.problems()) == ""
					})
					for _, n := range c.Nodes() {
						n.harmed = false
					}
					require.NoError(t, load.streams[0].passes())
					return
				}
				report := ledger.Report(c.problems())
				require.Contains(t, report, "END: ")
				require.Contains(t, report, "I1: ")
			})
		})
	}
}
