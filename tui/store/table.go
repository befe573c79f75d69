package store

import (
	"iter"
	"slices"
)

// Table is rows by key, in the order of the keys. It does not change. The zero Table is empty.
type Table[K comparable, R any] struct {
	Version uint64 // at which a row came, went or changed last
	keys    []K
	rows    []*R
	compare func(a, b K) int
}

// Len is the number of rows.
func (t Table[K, R]) Len() int { return len(t.rows) }

// Rows are all rows, in the order of their keys; not to be written to.
func (t Table[K, R]) Rows() []*R { return t.rows }

// At is the row at a place.
func (t Table[K, R]) At(i int) *R { return t.rows[i] }

// Get is the row of a key, or nil.
func (t Table[K, R]) Get(k K) *R {
	if i, ok := t.find(k); ok {
		return t.rows[i]
	}
	return nil
}

// Index is the place of a key, or -1.
func (t Table[K, R]) Index(k K) int {
	if i, ok := t.find(k); ok {
		return i
	}
	return -1
}

func (t Table[K, R]) find(k K) (int, bool) {
	if t.compare == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(t.keys, k, t.compare)
}

// All ranges over keys and rows.
func (t Table[K, R]) All() iter.Seq2[K, *R] {
	return func(yield func(K, *R) bool) {
		for i, k := range t.keys {
			if !yield(k, t.rows[i]) {
				return
			}
		}
	}
}

// Log is entries in their order, the oldest dropped. It does not change.
type Log[E any] struct {
	Version uint64
	Dropped uint64 // so many were there before the first
	Moved   uint64 // so many came late, and stand before others that were there already
	entries []E
}

// Len is the number of entries.
func (l Log[E]) Len() int { return len(l.entries) }

// At is an entry, 0 being the oldest.
func (l Log[E]) At(i int) E { return l.entries[i] }

// All are the entries, the oldest first; not to be written to.
func (l Log[E]) All() []E { return l.entries }

// Last are the newest n, the oldest of them first.
func (l Log[E]) Last(n int) []E { return l.entries[max(len(l.entries)-n, 0):] }

// Series is samples at an even pace, the oldest first. It does not change.
type Series []float32

// Last are the newest n, or fewer.
func (s Series) Last(n int) Series { return s[max(len(s)-n, 0):] }

// Max is the largest of them, or 0.
func (s Series) Max() float32 {
	var m float32
	for _, v := range s {
		m = max(m, v)
	}
	return m
}
