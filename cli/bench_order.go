package cli

import (
	"encoding/binary"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// mark is what bench e2e writes at the front of each value: which run, which key, and the record's number among
// those of its key. The rest of the value is payload.
//
//	0       16       20       28
//	| run   | key    | seq    |
type mark struct {
	run base.UUID
	key uint32
	seq uint64
}

const markSize = 28

func (m mark) put(b []byte) {
	copy(b, m.run[:])
	binary.BigEndian.PutUint32(b[16:], m.key)
	binary.BigEndian.PutUint64(b[20:], m.seq)
}

func readMark(b []byte) (m mark, ok bool) {
	if len(b) < markSize {
		return m, false
	}
	copy(m.run[:], b)
	m.key, m.seq = binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint64(b[20:])
	return m, true
}

// orderCheck compares what was acked with what was delivered, key by key. Numbers of a key go up by one in the
// order of sending, so a number that is skipped is missing until it comes, and then it came out of order.
type orderCheck struct {
	run base.UUID

	mu         sync.Mutex
	keys       map[uint32]*keyHistory
	acked      int64
	delivered  int64 // different records
	duplicates int64
	reordered  int64
}

type keyHistory struct {
	sent    uint64              // numbers handed out
	next    uint64              // the number that should come next
	missing map[uint64]struct{} // numbers below next that have not come
	failed  map[uint64]struct{} // numbers that were not acked; they may or may not come
}

func newOrderCheck(run base.UUID) *orderCheck {
	return &orderCheck{run: run, keys: make(map[uint32]*keyHistory)}
}

func (c *orderCheck) history(key uint32) *keyHistory {
	h, ok := c.keys[key]
	if !ok {
		h = &keyHistory{missing: map[uint64]struct{}{}, failed: map[uint64]struct{}{}}
		c.keys[key] = h
	}
	return h
}

// assign hands out the next number of a key. One goroutine sends a key's records, so numbers are sent in order.
func (c *orderCheck) assign(key uint32) mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.history(key)
	m := mark{run: c.run, key: key, seq: h.sent}
	h.sent++
	return m
}

// settle notes what became of a record that was sent.
func (c *orderCheck) settle(m mark, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.history(m.key)
	if err != nil {
		h.failed[m.seq] = struct{}{}
		return
	}
	c.acked++
}

// deliver notes a record that was read.
func (c *orderCheck) deliver(m mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.history(m.key)
	switch {
	case m.seq >= h.next:
		for skipped := h.next; skipped < m.seq; skipped++ {
			h.missing[skipped] = struct{}{}
		}
		h.next = m.seq + 1
		c.delivered++
	default:
		if _, late := h.missing[m.seq]; !late {
			c.duplicates++
			return
		}
		delete(h.missing, m.seq)
		c.delivered++
		c.reordered++
	}
}

// lost counts acked records that have not come.
func (c *orderCheck) lost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n int64
	for _, h := range c.keys {
		for seq := range h.missing {
			if _, failed := h.failed[seq]; !failed {
				n++
			}
		}
		for seq := h.next; seq < h.sent; seq++ {
			if _, failed := h.failed[seq]; !failed {
				n++
			}
		}
	}
	return n
}

type orderCounts struct{ acked, delivered, duplicates, reordered int64 }

func (c *orderCheck) counts() orderCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return orderCounts{c.acked, c.delivered, c.duplicates, c.reordered}
}
