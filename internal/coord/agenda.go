package coord

import (
	"container/heap"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/planner"
)

// agenda knows when each topic's retention may have something to drop. Topics without a date are not in it.
type agenda struct {
	when map[base.TopicID]int64
	heap dueHeap // may hold entries that when contradicts: they are skipped
}

type dueEntry struct {
	ms    int64
	topic base.TopicID
}

func newAgenda() agenda { return agenda{when: make(map[base.TopicID]int64)} }

func (a *agenda) len() int { return len(a.when) }

// set gives a topic its date; planner.Never takes it out.
func (a *agenda) set(topic base.TopicID, ms int64) {
	old, known := a.when[topic]
	switch {
	case ms == planner.Never:
		delete(a.when, topic)
		return
	case known && old == ms:
		return
	}
	a.when[topic] = ms
	heap.Push(&a.heap, dueEntry{ms: ms, topic: topic})
	if len(a.heap) > 2*len(a.when)+64 {
		a.rebuild()
	}
}

// rebuild drops the entries that were overtaken.
func (a *agenda) rebuild() {
	a.heap = a.heap[:0]
	for topic, ms := range a.when {
		a.heap = append(a.heap, dueEntry{ms: ms, topic: topic})
	}
	heap.Init(&a.heap)
}

// next is the earliest date.
func (a *agenda) next() (int64, bool) {
	for len(a.heap) > 0 {
		top := a.heap[0]
		if ms, known := a.when[top.topic]; known && ms == top.ms {
			return top.ms, true
		}
		heap.Pop(&a.heap)
	}
	return 0, false
}

// due takes out up to limit topics whose date has come.
func (a *agenda) due(nowMs int64, limit int) []base.TopicID {
	var topics []base.TopicID
	for len(topics) < limit {
		ms, ok := a.next()
		if !ok || ms > nowMs {
			break
		}
		top := heap.Pop(&a.heap).(dueEntry)
		delete(a.when, top.topic)
		topics = append(topics, top.topic)
	}
	return topics
}

type dueHeap []dueEntry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].ms < h[j].ms }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(dueEntry)) }

func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
