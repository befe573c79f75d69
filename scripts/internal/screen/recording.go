package screen

import (
	"os"
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

// Pipe makes a file that holds nothing: what is recorded to it waits to be read. So a long recording needs no room.
func Pipe(file string) error { return syscall.Mkfifo(file, 0o600) }
