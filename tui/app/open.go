package app

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/store"
)

// openFeed goes to the cluster, or to a recording. Its goroutines run under the guard.
func openFeed(opts Options, g *guard) (feed.Feed, error) {
	if opts.Replay != "" {
		return openRecording(opts, g)
	}
	live := openLive(opts, g)
	if opts.Record == "" {
		return live, nil
	}
	f, err := os.OpenFile(opts.Record, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		_ = live.Close()
		return nil, invalid("record: %v", err)
	}
	return newRecording(live, f, g), nil
}

// openLive goes to the cluster. more is what its clients are to be beside what they must.
func openLive(opts Options, g *guard, more ...sdk.ClientOption) feed.Feed {
	return feed.Live(feed.Options{
		Seeds: opts.Seeds, Context: opts.Context.Name, Version: opts.Version, Guard: g.run,
		Connect: func(seeds []string) (feed.Client, error) {
			c, err := sdk.NewClient(append(more, sdk.WithSeeds(seeds...), sdk.WithName("eg-top"), sdk.WithGuard(g.run))...)
			if err != nil {
				return nil, err
			}
			return feed.Of(c), nil
		},
	})
}

// openRecording plays a file. What only prints has no time to wait for it.
func openRecording(opts Options, g *guard) (feed.Feed, error) {
	f, err := os.Open(opts.Replay)
	if err != nil {
		return nil, invalid("replay: %v", err)
	}
	speed := opts.Speed
	if opts.Once {
		speed = -1
	}
	played, err := feed.Replay(f, feed.ReplayOptions{Speed: speed, Guard: g.run})
	if err != nil {
		_ = f.Close()
		return nil, invalid("replay %s: %v", opts.Replay, err)
	}
	return &replayed{played, f}, nil
}

// replayed closes its file.
type replayed struct {
	feed.Feed
	file *os.File
}

// Err is what is wrong with the file that was given.
func (r *replayed) Err() error {
	if err := r.Feed.Err(); err != nil {
		return invalid("replay: %v", err)
	}
	return nil
}

func (r *replayed) Close() error { return errors.Join(r.Feed.Close(), r.file.Close()) }

// recording writes what passes through it to a file.
type recording struct {
	feed.Feed
	file *os.File
	to   *feed.Recorder
	out  chan store.Message
	done chan struct{}
	once sync.Once
	ends sync.WaitGroup
	err  atomic.Pointer[error] // of the file
}

// flushEvery is how much of a recording a crash may cost.
const flushEvery = time.Second

func newRecording(f feed.Feed, file *os.File, guard *guard) *recording {
	r := &recording{Feed: f, file: file, to: feed.NewRecorder(file), out: make(chan store.Message), done: make(chan struct{})}
	r.ends.Add(1)
	guard.Go(func() {
		defer r.ends.Done()
		r.run()
	})
	return r
}

func (r *recording) Messages() <-chan store.Message { return r.out }

// run passes messages on. A full disk ends the recording, not what is seen.
func (r *recording) run() {
	defer close(r.out)
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for {
		select {
		case m, ok := <-r.Feed.Messages():
			if !ok {
				return
			}
			r.keep(r.to.Write(m))
			select {
			case r.out <- m:
			case <-r.done:
				return
			}
		case <-flush.C:
			r.keep(r.to.Flush())
		case <-r.done:
			return
		}
	}
}

func (r *recording) keep(err error) {
	if err != nil {
		err = fmt.Errorf("the recording is not complete: %w", err)
		r.err.CompareAndSwap(nil, &err)
	}
}

// Err is also why the file has not all that was seen.
func (r *recording) Err() error {
	if err := r.err.Load(); err != nil {
		return *err
	}
	return r.Feed.Err()
}

// Close ends the feed, then the recording.
func (r *recording) Close() error {
	r.once.Do(func() { close(r.done) })
	err := r.Feed.Close()
	r.ends.Wait()
	r.keep(r.to.Flush())
	r.keep(r.file.Close())
	if failed := r.err.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	return err
}
