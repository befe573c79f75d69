package mux

import (
	"sync"
	"time"
)

// window is what the requests of one connection hold until their answers are written. One goroutine waits at it,
// the connection's reader; any may release.
type window struct {
	maxRequests int
	maxBytes    int64
	closed      <-chan struct{} // ends every wait
	wake        chan struct{}   // capacity 1

	mu       sync.Mutex
	requests int
	bytes    int64
	waiting  bool
}

func newWindow(maxRequests int, maxBytes int64, closed <-chan struct{}) *window {
	return &window{maxRequests: maxRequests, maxBytes: maxBytes, closed: closed, wake: make(chan struct{}, 1)}
}

// tryAdmit takes in one request of n bytes if there is room. The first is always taken in, whatever its size.
func (w *window) tryAdmit(n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests > 0 && (w.requests >= w.maxRequests || w.bytes+n > w.maxBytes) {
		w.waiting = true
		return false
	}
	w.requests++
	w.bytes += n
	return true
}

// admit waits for room; false means that the connection was closed.
func (w *window) admit(n int64) bool {
	for !w.tryAdmit(n) {
		select {
		case <-w.wake:
		case <-w.closed:
			return false
		}
	}
	return true
}

// resize replaces a request's bytes by those of its answer.
func (w *window) resize(from, to int64) {
	w.mu.Lock()
	w.bytes += to - from
	w.signalAndUnlock()
}

// release takes out one request whose answer, of n bytes, was written or never will be.
func (w *window) release(n int64) {
	w.mu.Lock()
	w.requests--
	w.bytes -= n
	w.signalAndUnlock()
}

func (w *window) signalAndUnlock() {
	waiting := w.waiting
	w.waiting = false
	w.mu.Unlock()
	if waiting {
		select {
		case w.wake <- struct{}{}:
		default: // it has been told already
		}
	}
}

// empty waits until no request is left, at most for d, and reports whether none is.
func (w *window) empty(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		w.mu.Lock()
		n := w.requests
		w.waiting = true
		w.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-w.wake:
		case <-w.closed:
			return false
		case <-timer.C:
			return false
		}
	}
}

// busy reports whether there are requests.
func (w *window) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests > 0
}
