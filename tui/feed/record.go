package feed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/tui/store"
)

// maxLine bounds one message of a recording.
const maxLine = 16 << 20

// Recorder writes messages as JSON lines.
type Recorder struct {
	w *bufio.Writer
}

// NewRecorder writes to w. Whoever made w closes it, after Flush.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{w: bufio.NewWriterSize(w, 64<<10)} }

// Write appends a message.
func (r *Recorder) Write(m store.Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("record a message: %w", err)
	}
	if _, err := r.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record a message: %w", err)
	}
	return nil
}

// Flush writes what is held back; as often as one wants to lose no more than that.
func (r *Recorder) Flush() error { return r.w.Flush() }

// ReplayOptions say how a recording is played.
type ReplayOptions struct {
	Speed float64 // 0 means 1; less than 0 means as fast as it is taken
	// Guard runs each goroutine of the feed, so that a panic in it can be handled; nil: nothing does.
	Guard func(func())
}

// Replay plays a recording at its own pace, or at a multiple of it, and ends with it. While the screen stands still it
// waits, and so does its time. It reads r to its end or until it is closed, and does not close it.
func Replay(r io.Reader, opts ReplayOptions) Feed {
	if opts.Speed == 0 {
		opts.Speed = 1
	}
	p := &replay{r: r, speed: opts.Speed, out: make(chan store.Message, queueLength), done: make(chan struct{})}
	p.running.Add(1)
	go guarded(opts.Guard, func() {
		defer p.running.Done()
		p.run()
	})
	return p
}

type replay struct {
	r       io.Reader
	speed   float64
	out     chan store.Message
	done    chan struct{}
	once    sync.Once
	running sync.WaitGroup
	err     atomic.Pointer[error]

	mu     sync.Mutex
	at     time.Time     // of the recording
	since  time.Time     // when it was there
	resume chan struct{} // it waits until this is closed; nil: it plays
	over   bool
}

func (p *replay) Messages() <-chan store.Message { return p.out }
func (p *replay) Retry()                         {}
func (p *replay) SetSeeds([]string)              {}

func (p *replay) Err() error {
	if e := p.err.Load(); e != nil {
		return *e
	}
	return nil
}

func (p *replay) Close() error {
	p.once.Do(func() { close(p.done) })
	p.running.Wait()
	return nil
}

// Show stops the recording while the screen stands still. One that is played as fast as it is taken does not wait.
func (p *replay) Show(v Viewport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case v.Still && p.resume == nil && p.speed > 0:
		p.at, p.since, p.resume = p.now(), time.Now(), make(chan struct{})
	case !v.Still && p.resume != nil:
		close(p.resume)
		p.since, p.resume = time.Now(), nil
	}
}

// Now is the time in the recording. It stands still at its end.
func (p *replay) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

func (p *replay) now() time.Time {
	if p.at.IsZero() || p.over || p.speed < 0 || p.resume != nil {
		return p.at
	}
	return p.at.Add(time.Duration(float64(time.Since(p.since)) * p.speed))
}

func (p *replay) run() {
	defer close(p.out)
	lines := bufio.NewScanner(p.r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var m store.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			if !lines.Scan() { // the last line of a recording that was cut off
				break
			}
			p.fail(fmt.Errorf("line %d of the recording: %w", n, err))
			break
		}
		if !p.reach(m.Time) {
			return
		}
		select {
		case p.out <- m:
		case <-p.done:
			return
		}
	}
	if err := lines.Err(); err != nil {
		p.fail(fmt.Errorf("read the recording: %w", err))
	}
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
}

func (p *replay) fail(err error) { p.err.CompareAndSwap(nil, &err) }

// reach waits until the recording has come to a time, and reports whether it has.
func (p *replay) reach(at time.Time) bool {
	for {
		left, resume := p.left(at)
		if left <= 0 && resume == nil {
			return true
		}
		if !p.sleep(left, resume) {
			return false
		}
	}
}

// left is how long it takes until a time is reached: never, before resume is closed. What is reached is the time of now.
func (p *replay) left(at time.Time) (left time.Duration, resume <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		p.at, p.since = at, time.Now()
	}
	if p.resume != nil {
		return 0, p.resume
	}
	if p.speed > 0 {
		left = time.Duration(float64(at.Sub(p.now())) / p.speed)
	}
	if left <= 0 && at.After(p.at) {
		p.at, p.since = at, time.Now()
	}
	return left, nil
}

// sleep waits for a time to pass, or for the recording to go on. It reports false when that ends.
func (p *replay) sleep(d time.Duration, resume <-chan struct{}) bool {
	var passed <-chan time.Time
	if resume == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-passed:
	case <-resume:
	case <-p.done:
		return false
	}
	return true
}

func guarded(guard func(func()), f func()) {
	if guard == nil {
		f()
		return
	}
	guard(f)
}
