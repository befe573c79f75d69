package store

import (
	"slices"
	"sort"
)

// lines is a Log that is written to. What was published is never written again.
type lines[E any] struct {
	most    int         // entries
	room    int         // bytes; 0: as many as the entries take
	size    func(E) int // of an entry, about
	bytes   int         // of all entries
	buf     []E
	start   int
	own     int // what is from here on was not published yet
	dropped uint64
	moved   uint64
	changed bool
	log     Log[E] // as published last
}

func (l *lines[E]) restore(log Log[E]) {
	l.log, l.dropped, l.moved, l.buf, l.start = log, log.Dropped, log.Moved, slices.Clip(log.entries), 0
	l.own = len(l.buf)
	l.bytes = 0
	for _, e := range l.buf {
		l.bytes += l.weigh(e)
	}
}

// weigh is what an entry takes, where that is counted.
func (l *lines[E]) weigh(e E) int {
	if l.size == nil {
		return 0
	}
	return l.size(e)
}

func (l *lines[E]) all() []E { return l.buf[l.start:] }

func (l *lines[E]) add(e E) {
	if len(l.buf) == cap(l.buf) {
		l.copy()
	}
	l.buf = append(l.buf, e)
	l.bytes += l.weigh(e)
	l.changed = true
	for n := len(l.all()); n > 1 && (n > l.most || l.room > 0 && l.bytes > l.room); n-- {
		l.shift()
	}
}

// copy makes all entries its own, with room for more. What was dropped before is kept until then: the room is no more than
// a quarter of what is there.
func (l *lines[E]) copy() {
	kept := l.buf[l.start:]
	buf := make([]E, len(kept), len(kept)+len(kept)/4+16)
	copy(buf, kept)
	l.buf, l.start, l.own = buf, 0, 0
}

// insert puts an entry where it belongs by an order that all entries are in: what is told late stands before what came
// after it. One that is older than the oldest, where there is no room for more, is left out.
func (l *lines[E]) insert(e E, after func(E) bool) {
	all := l.all()
	later := len(all) - sort.Search(len(all), func(i int) bool { return after(all[i]) })
	if later == len(all) && later >= l.most {
		return
	}
	l.add(e)
	later = min(later, len(l.all())-1)
	if later == 0 {
		return
	}
	if len(l.buf)-1-later < l.own {
		l.copy()
	}
	at := len(l.buf) - 1 - later
	copy(l.buf[at+1:], l.buf[at:])
	l.buf[at] = e
	l.moved++
}

// shift drops the oldest.
func (l *lines[E]) shift() {
	l.bytes -= l.weigh(l.buf[l.start])
	l.start++
	l.dropped++
	l.changed = true
}

// empty drops all.
func (l *lines[E]) empty() {
	if n := len(l.all()); n > 0 {
		l.buf, l.start, l.own, l.bytes, l.dropped, l.changed = nil, 0, 0, 0, l.dropped+uint64(n), true
	}
}

// replace puts another entry at a place of all.
func (l *lines[E]) replace(i int, e E) {
	if l.start+i < l.own {
		l.copy()
	}
	l.bytes += l.weigh(e) - l.weigh(l.buf[l.start+i])
	l.buf[l.start+i] = e
	l.changed = true
}

func (l *lines[E]) publish(version uint64) Log[E] {
	if l.changed {
		l.changed = false
		l.own = len(l.buf)
		l.log = Log[E]{Version: version, Dropped: l.dropped, Moved: l.moved, entries: l.buf[l.start:len(l.buf):len(l.buf)]}
	}
	return l.log
}

// push appends a sample; what was published of the series stays as it was.
func push(s Series, v float64, most int) Series {
	if len(s) >= most && len(s) == cap(s) {
		s = append(make(Series, 0, most+most/2), s[len(s)-most+1:]...)
	}
	s = append(s, float32(v))
	return s[max(len(s)-most, 0):]
}
