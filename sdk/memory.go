package sdk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// memory counts the bytes of records that are not acknowledged. Taking is one atomic operation while there is
// room; who finds none queues up and is served in order.
//
// A wake-up cannot be lost: a waiter counts itself in waiting before it looks at used for the last time, and
// release lowers used before it looks at waiting. Whichever of the two comes second sees the other's write.
type memory struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32 // length of queue; changed under mu

	mu    sync.Mutex
	queue []*memoryWaiter
}

type memoryWaiter struct {
	n     int64
	ready chan struct{} // closed when n has been taken for this waiter
}

// take reserves n bytes, waiting for room until ctx or the timeout ends. With failFast it does not wait. What is
// larger than the whole buffer is let through when nothing else is in it.
func (m *memory) take(ctx context.Context, n int64, timeout time.Duration, failFast bool) error {
	if m.waiting.Load() == 0 && m.try(n) {
		return nil
	}
	if failFast {
		return m.full(base.CodeBusy)
	}
	return m.wait(ctx, n, timeout)
}

func (m *memory) try(n int64) bool {
	for {
		used := m.used.Load()
		if used+n > m.limit && used > 0 {
			return false
		}
		if m.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

func (m *memory) wait(ctx context.Context, n int64, timeout time.Duration) error {
	w := &memoryWaiter{n: n, ready: make(chan struct{})}
	m.mu.Lock()
	m.queue = append(m.queue, w)
	m.waiting.Add(1)
	m.serveLocked()
	m.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	case <-timer.C:
		err = m.full(base.CodeTimeout)
	case <-ctx.Done():
		err = contextError(ctx, "wait for buffer space", base.NotApplied)
	}
	if !m.leave(w) { // served at the same moment: give it back
		m.release(n)
	}
	return err
}

// leave takes w out of the queue and reports whether it was still there.
func (m *memory) leave(w *memoryWaiter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, q := range m.queue {
		if q == w {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			m.waiting.Add(-1)
			m.serveLocked() // the next may be small enough for the room there is
			return true
		}
	}
	return false
}

// release gives n bytes back.
func (m *memory) release(n int64) {
	m.used.Add(-n)
	if m.waiting.Load() > 0 {
		m.mu.Lock()
		m.serveLocked()
		m.mu.Unlock()
	}
}

// serveLocked lets waiters in, oldest first, as far as there is room.
func (m *memory) serveLocked() {
	for len(m.queue) > 0 && m.try(m.queue[0].n) {
		close(m.queue[0].ready)
		m.queue = m.queue[1:]
		m.waiting.Add(-1)
	}
}

func (m *memory) full(code base.Code) *base.Error {
	return base.Errorf(code, "send", "the producer's buffer of %d bytes is full", m.limit).
		WithHint("the brokers take records more slowly than they are sent: send less, or raise WithBufferBytes")
}
