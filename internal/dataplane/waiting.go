package dataplane

// waitQueue holds appends that cannot be taken yet, in order of arrival.
type waitQueue struct{ list []*batch }

func (q *waitQueue) len() int { return len(q.list) }

func (q *waitQueue) push(b *batch) { q.list = append(q.list, b) }

// unshift puts batches before all others: the tail of a sealed segment, which its successor takes first.
func (q *waitQueue) unshift(tail []*batch) { q.list = append(tail, q.list...) }

func (q *waitQueue) front() *batch { return q.list[0] }

func (q *waitQueue) pop() *batch {
	b := q.list[0]
	q.list[0] = nil
	if q.list = q.list[1:]; len(q.list) == 0 {
		q.list = nil
	}
	return b
}

// filter keeps the batches that keep wants and returns how many bytes the others had.
func (q *waitQueue) filter(keep func(*batch) bool) (dropped int64) {
	kept := q.list[:0]
	for _, b := range q.list {
		if keep(b) {
			kept = append(kept, b)
			continue
		}
		dropped += int64(b.size())
	}
	clear(q.list[len(kept):])
	q.list = kept
	return dropped
}
