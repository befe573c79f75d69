package meta

import (
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// Answered requests are kept for ten minutes by the commands' own times, and no more than so many a shard.
const (
	requestTTLMs = 10 * 60 * 1000
	maxRequests  = 10_000
)

// request is one answered command.
type request struct {
	ID     base.RequestID `cbor:"1,keyasint"`
	TimeMs int64          `cbor:"2,keyasint"`
	Result Result         `cbor:"3,keyasint"`
}

// requestTable remembers answers by request id, oldest out. The queue is in order of application, so times never
// fall along it (Apply clamps them) and expiry looks at its head only.
type requestTable struct {
	queue []*request // entries are immutable
	byID  map[base.RequestID]*request
}

func newRequestTable() requestTable {
	return requestTable{byID: make(map[base.RequestID]*request)}
}

func (t *requestTable) len() int { return len(t.queue) }

func (t *requestTable) find(id base.RequestID) (Result, bool) {
	if id.IsZero() {
		return Result{}, false
	}
	r, ok := t.byID[id]
	if !ok {
		return Result{}, false
	}
	return r.Result, true
}

// add stores what a retry is answered; what belongs to one moment (the topic, the parts of batches) is left out.
func (t *requestTable) add(id base.RequestID, nowMs int64, result Result) {
	result.Topic, result.Rolls, result.Trims, result.Node = nil, nil, nil, nil
	r := &request{ID: id, TimeMs: nowMs, Result: result}
	t.queue = append(t.queue, r)
	t.byID[id] = r
	if len(t.queue) > maxRequests {
		t.drop(1)
	}
}

func (t *requestTable) expire(nowMs int64) {
	n := 0
	for n < len(t.queue) && t.queue[n].TimeMs+requestTTLMs < nowMs {
		n++
	}
	if n > 0 {
		t.drop(n)
	}
}

func (t *requestTable) drop(n int) {
	for _, r := range t.queue[:n] {
		delete(t.byID, r.ID)
	}
	clear(t.queue[:n]) // the array lives on until append outgrows it; what it pointed to should not
	t.queue = t.queue[n:]
}

func (t *requestTable) clone() requestTable {
	return requestTable{queue: slices.Clone(t.queue), byID: maps.Clone(t.byID)}
}
