package store

import "slices"

// rows is a table that is written to. What it has published never changes: a row is copied before its first change
// after that.
type rows[K comparable, R any] struct {
	table   Table[K, R] // as published last
	slots   map[K]*slot[R]
	stamp   func(*R, uint64) // writes a row's version
	version uint64           // of the next view: rows changed for it are ours alone
	changed []*slot[R]       // since the last publication, at their places
	shape   bool             // keys came or went
}

type slot[R any] struct {
	row     *R
	at      int    // its place in the published table; -1: not there yet
	version uint64 // at which row was made
}

func newRows[K comparable, R any](compare func(a, b K) int, stamp func(*R, uint64)) rows[K, R] {
	return rows[K, R]{table: Table[K, R]{compare: compare}, slots: make(map[K]*slot[R]), stamp: stamp, version: 1}
}

// restore begins with a published table.
func (t *rows[K, R]) restore(table Table[K, R], version uint64) {
	t.table, t.version = table, version
	t.slots = make(map[K]*slot[R], len(table.keys))
	for i, k := range table.keys {
		t.slots[k] = &slot[R]{row: table.rows[i], at: i}
	}
}

// restart makes an empty table the one of a version.
func (t *rows[K, R]) restart(version uint64) { t.version, t.shape = version, true }

func (t *rows[K, R]) len() int { return len(t.slots) }

// get is a row to be read only, or nil.
func (t *rows[K, R]) get(k K) *R {
	if s := t.slots[k]; s != nil {
		return s.row
	}
	return nil
}

// edit is a row to be changed now. It comes into being if it is not there.
func (t *rows[K, R]) edit(k K) *R {
	s := t.slots[k]
	switch {
	case s == nil:
		s = &slot[R]{row: new(R), at: -1, version: t.version}
		t.slots[k] = s
		t.shape = true
		t.stamp(s.row, t.version)
	case s.version != t.version:
		row := *s.row
		s.row, s.version = &row, t.version
		t.stamp(s.row, t.version)
		t.changed = append(t.changed, s)
	}
	return s.row
}

func (t *rows[K, R]) drop(k K) {
	if t.slots[k] != nil {
		delete(t.slots, k)
		t.shape = true
	}
}

func (t *rows[K, R]) dirty() bool { return t.shape || len(t.changed) > 0 }

// publish makes a table of what there is now, and begins the next version.
func (t *rows[K, R]) publish() Table[K, R] {
	switch {
	case t.shape:
		t.publishShape()
	case len(t.changed) > 0:
		list := slices.Clone(t.table.rows)
		for _, s := range t.changed {
			list[s.at] = s.row
		}
		t.table.rows = list
		t.table.Version = t.version
	}
	t.shape = false
	clear(t.changed)
	t.changed = t.changed[:0]
	t.version++
	return t.table
}

func (t *rows[K, R]) publishShape() {
	keys := make([]K, 0, len(t.slots))
	for k := range t.slots {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, t.table.compare)
	list := make([]*R, len(keys))
	for i, k := range keys {
		s := t.slots[k]
		s.at = i
		list[i] = s.row
	}
	t.table.keys, t.table.rows, t.table.Version = keys, list, t.version
}
