package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// Large is the cluster that the dashboard's budgets are made for, 60 nodes and 10,000 ranges, for a while in which nothing
// happens but that rates wobble.
func Large(length time.Duration) storetest.Options {
	o := storetest.Large(1)
	o.Calm, o.Length = true, length
	return o
}

// Day is the same with what happens on an ordinary day: load comes and goes, segments roll.
func Day(length time.Duration) storetest.Options {
	o := storetest.Large(1)
	o.Quiet, o.Length = true, length
	return o
}

// Storm is the same when everything happens at once.
func Storm(length time.Duration) storetest.Options {
	o := storetest.Storm(1)
	o.Length = length
	return o
}

// Play shows what such a cluster says, so many times as fast, and tells how much memory that took at the end and at most.
// A long stream needs no room in dir.
func Play(program, dir string, o storetest.Options, speed float64) (now, most int, err error) {
	pipe := filepath.Join(dir, "recording.pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(pipe) }()
	s, err := Start(200, 60, program, "--replay", pipe, "--speed", fmt.Sprint(speed))
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	if err := Record(pipe, o); err != nil {
		return 0, 0, err
	}
	if _, _, err := s.Await("the recording has ended", patience); err != nil {
		return 0, 0, err
	}
	return s.Memory()
}

// Record writes what such a cluster says to a file.
func Record(file string, o storetest.Options) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	r := feed.NewRecorder(f)
	for m := range storetest.Stream(o) {
		if err := r.Write(m); err != nil {
			return err
		}
	}
	return r.Flush()
}
