package feed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/tui/store"
)

// What a recording may ask of the memory, whoever has written it: the bytes of one message, the values in it (which may
// take a hundred times the place of their text), and the messages that wait for the store.
const (
	maxLine     = 16 << 20
	maxValues   = 1 << 20
	replayQueue = 256
)

// clockTrust is how far the times of messages may run backwards: they come from several goroutines. Where it is more the
// clock was set back, and the recording goes on from there.
const clockTrust = time.Minute

// maxPause is the longest silence that a replay keeps: while the program was suspended nothing was recorded.
const maxPause = 10 * time.Second

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
	if len(line) >= maxLine || tooMany(line) {
		return errors.New("record a message: it is larger than a replay takes, and was left out")
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
	Guard task.Guard
}

// Replay plays a recording at its own pace, or at a multiple of it, and ends with it. It fails at once for what is no
// recording. While the screen stands still it waits, and so does its time. It reads r to its end or until it is closed, and
// does not close it.
func Replay(r io.Reader, opts ReplayOptions) (Feed, error) {
	if opts.Speed == 0 {
		opts.Speed = 1
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	p := &replay{lines: lines, speed: opts.Speed, out: make(chan store.Message, replayQueue), done: make(chan struct{})}
	first, ok := p.next()
	switch err := p.Err(); {
	case err != nil:
		return nil, fmt.Errorf("it is no recording of eg-top: %w", err)
	case !ok:
		return nil, errors.New("it is no recording of eg-top: it has no whole line")
	}
	p.running.Add(1)
	go opts.Guard.Run(func() {
		defer p.running.Done()
		p.run(first)
	})
	return p, nil
}

type replay struct {
	lines   *bufio.Scanner
	line    int // how many were read
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

func (p *replay) run(m store.Message) {
	defer close(p.out)
	for ok := true; ok; m, ok = p.next() {
		if !p.reach(m.Time) {
			return
		}
		select {
		case p.out <- m:
		case <-p.done:
			return
		}
	}
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
}

// next reads a message; ok is false at the end, and where the recording is damaged. A last line that is not whole is that
// of a recording that was cut off: it ends with the line before.
func (p *replay) next() (m store.Message, ok bool) {
	for p.lines.Scan() {
		p.line++
		if len(p.lines.Bytes()) == 0 {
			continue
		}
		m, err := decode(p.lines.Bytes())
		if err == nil {
			return m, true
		}
		if p.line == 1 || p.lines.Scan() {
			p.fail(fmt.Errorf("line %d: %w", p.line, err))
		}
		return m, false
	}
	if err := p.lines.Err(); err != nil {
		p.fail(fmt.Errorf("line %d: %w", p.line+1, err))
	}
	return m, false
}

// decode reads one line of a recording.
func decode(line []byte) (m store.Message, err error) {
	if tooMany(line) {
		return m, errors.New("too many values in one message")
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, err
	}
	if err := check(&m); err != nil {
		return m, err
	}
	if m.Time.IsZero() {
		return m, errors.New("a message without its time")
	}
	return m, nil
}

// tooMany reports whether there are too many values in a line, about.
func tooMany(line []byte) bool { return bytes.Count(line, []byte{','}) > maxValues }

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
		longest := time.Duration(float64(maxPause) * p.speed)
		if at.Sub(p.now()) > longest {
			p.at, p.since = at.Add(-longest), time.Now()
		}
		left = time.Duration(float64(at.Sub(p.now())) / p.speed)
	}
	if left <= 0 && (at.After(p.at) || p.at.Sub(at) > clockTrust) {
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
