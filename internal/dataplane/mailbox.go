package dataplane

import "sync"

// mailbox serialises the events of one actor without a goroutine of its own: whoever posts to a mailbox that
// nobody is draining drains it, running handle for its own event and for every event that arrives meanwhile. So an
// uncontended event runs on the poster's stack with no hand-over, and an idle actor costs no goroutine.
//
// The price is that post may run other posters' events before it returns. Therefore no handler blocks, and nobody
// posts while holding a lock.
type mailbox[E any] struct {
	handle func(E)

	mu struct {
		sync.Mutex
		queue   []E
		running bool
	}
	spare []E // the slice swapped out last; owned by whoever is running
}

// post queues an event and, unless somebody is at it, drains the mailbox.
func (m *mailbox[E]) post(e E) {
	m.mu.Lock()
	if m.mu.running {
		m.mu.queue = append(m.mu.queue, e)
		m.mu.Unlock()
		return
	}
	m.mu.running = true
	m.mu.Unlock()

	m.handle(e)
	for {
		m.mu.Lock()
		if len(m.mu.queue) == 0 {
			m.mu.running = false
			m.mu.Unlock()
			return
		}
		batch := m.mu.queue
		m.mu.queue, m.spare = m.spare[:0], nil
		m.mu.Unlock()
		for _, e := range batch {
			m.handle(e)
		}
		clear(batch) // events point at batches' bytes
		if cap(batch) <= maxSpare {
			m.spare = batch
		}
	}
}

// maxSpare bounds what an actor keeps between bursts.
const maxSpare = 64
