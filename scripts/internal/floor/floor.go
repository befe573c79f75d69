// Package floor measures what a disk can do at best for a log: append to a growing file and make it durable.
// No broker that acknowledges only what is on stable storage can be faster than this without recycling its
// files, and bench.sh states EastGuard's figures as ratios to it, taken moments apart on the same file system.
package floor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Latencies appends size bytes and calls fdatasync, one after the other, for the given time, and returns how
// long each append took with its fdatasync.
func Latencies(dir string, size int, d time.Duration) ([]time.Duration, error) {
	var all []time.Duration
	err := appendLoop(dir, size, d, func(took time.Duration) { all = append(all, took) })
	return all, err
}

// Concurrent is Latencies of several writers at once, each with a file of its own on the same disk, all in one list.
func Concurrent(dir string, size, writers int, d time.Duration) ([]time.Duration, error) {
	all := make([][]time.Duration, writers)
	var writing errgroup.Group
	for i := range writers {
		writing.Go(func() error {
			own := filepath.Join(dir, fmt.Sprintf("writer-%d", i))
			if err := os.Mkdir(own, 0o700); err != nil {
				return err
			}
			defer os.Remove(own)
			var err error
			all[i], err = Latencies(own, size, d)
			return err
		})
	}
	err := writing.Wait()
	return slices.Concat(all...), err
}

// Throughput appends chunks of size bytes, each with its fdatasync, for the given time: bytes a second.
func Throughput(dir string, size int, d time.Duration) (float64, error) {
	var n int
	began := time.Now()
	err := appendLoop(dir, size, d, func(time.Duration) { n++ })
	return float64(n*size) / time.Since(began).Seconds(), err
}

func appendLoop(dir string, size int, d time.Duration, done func(time.Duration)) (err error) {
	name := filepath.Join(dir, "floor")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file to measure with: %w", err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		_ = os.Remove(name)
	}()
	chunk := randomBytes(size)
	for began := time.Now(); time.Since(began) < d; {
		start := time.Now()
		if _, err := f.Write(chunk); err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return fmt.Errorf("fdatasync: %w", err)
		}
		done(time.Since(start))
	}
	return nil
}

// randomBytes cannot be compressed by a clever disk.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b) // never fails
	return b
}
