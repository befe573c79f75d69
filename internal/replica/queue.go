package replica

import "sort"

// entry is one batch between its offset and its ack.
type entry[T any] struct {
	base, end int64
	bytes     int64
	item      T
}

// queue is a FIFO of entries by offset. It slides along one slice, so that a steady flow allocates nothing.
type queue[T any] struct {
	buf  []entry[T]
	head int
}

func (q *queue[T]) len() int { return len(q.buf) - q.head }

func (q *queue[T]) all() []entry[T] { return q.buf[q.head:] }

func (q *queue[T]) front() *entry[T] { return &q.buf[q.head] }

func (q *queue[T]) push(e entry[T]) {
	if q.head > 0 && len(q.buf) == cap(q.buf) {
		n := copy(q.buf, q.buf[q.head:])
		clear(q.buf[n:]) // items may hold a batch's bytes
		q.buf, q.head = q.buf[:n], 0
	}
	q.buf = append(q.buf, e)
}

func (q *queue[T]) pop() entry[T] {
	e := q.buf[q.head]
	q.buf[q.head] = entry[T]{}
	if q.head++; q.head == len(q.buf) {
		q.buf, q.head = q.buf[:0], 0
	}
	return e
}

// from lists the entries at or above an offset.
func (q *queue[T]) from(offset int64) []entry[T] {
	all := q.all()
	return all[sort.Search(len(all), func(i int) bool { return all[i].base >= offset }):]
}
