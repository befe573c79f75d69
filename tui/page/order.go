package page

import (
	"cmp"
	"slices"

	"github.com/eastguard/eastguard/tui/store"
)

// memo is what a page remembers of its last frames, so that the next one looks no more different than it is.
type memo struct {
	orders  map[string]*order // of each list, for as long as nothing that it depends on changes
	hottest float64           // the full height of bars
	busiest string            // the topic
}

func newMemo() *memo { return &memo{orders: make(map[string]*order)} }

// remembered is the memo, which a state that was not made by NewState has yet to get.
func (st *State) remembered() *memo {
	if st.memo == nil {
		st.memo = newMemo()
	}
	return st.memo
}

// order is which of the rows are shown, and in what order.
type order struct {
	key   orderKey
	rows  []int32 // places in the table
	total int     // before the filter
	came  uint64
	keys  []float64 // of a rough value, by place: what each row is sorted by
}

// orderKey is all that an order depends on.
type orderKey struct {
	version uint64
	n       int
	sort    string
	invert  bool
	filter  string
	scope   string
}

// list is a table to be ordered.
type list struct {
	name    string
	scope   string // what else decides on which rows there are: a topic
	version uint64
	n       int
	came    uint64 // of a log: how many rows there were ever; else 0
	newest  bool   // of a log: the newest row is the first
	sort    string
	invert  bool
	filter  Filter
	pass    func(i int) bool    // nil: all
	text    func(i int) string  // what the filter looks at
	compare func(a, b int) int  // by the column, ties broken by the caller's own order
	value   func(i int) float64 // in place of compare: greatest first
	rough   bool                // the value wobbles: rows keep their places until it is clearly another
}

// order is the order of a list.
func (st *State) order(l list) *order {
	m := st.remembered()
	key := orderKey{l.version, l.n, l.sort, l.invert, l.filter.Text, l.scope}
	old := m.orders[l.name]
	if old != nil && old.key == key {
		return old
	}
	o := &order{key: key, came: l.came}
	if l.follows(old) {
		o.rows, o.total = l.extend(old)
	} else {
		o.rows, o.total = l.choose(old)
		if l.rough {
			o.keys = l.steady(old)
		}
		l.arrange(o.rows, o.keys)
	}
	m.orders[l.name] = o
	return o
}

// choose filters the rows. What was sorted before is nearly so now, if only its values have changed: it is begun with.
func (l *list) choose(old *order) (rows []int32, total int) {
	passes := func(i int) bool { return l.passes(i, &total) }
	rows = make([]int32, 0, l.n)
	if old != nil && old.key.n == l.n && old.key.scope == l.scope && old.key.filter == l.filter.Text && len(old.rows) == l.n {
		for _, i := range old.rows {
			if passes(int(i)) {
				rows = append(rows, i)
			}
		}
		return rows, total
	}
	for i := range l.n {
		if passes(i) {
			rows = append(rows, int32(i))
		}
	}
	return rows, total
}

func (l *list) passes(i int, total *int) bool {
	if l.pass != nil && !l.pass(i) {
		return false
	}
	*total++
	return !l.filter.On() || l.text == nil || l.filter.Match(l.text(i))
}

// follows reports whether a log has only grown since: what passed then passes now.
func (l *list) follows(old *order) bool {
	return l.came > 0 && old != nil && old.came > 0 && old.came <= l.came && l.came-old.came < uint64(l.n) && !l.invert &&
		!old.key.invert && old.key.scope == l.scope && old.key.filter == l.filter.Text
}

// extend looks at the new rows of a log alone. Its places move as rows come, and go at the other end.
func (l *list) extend(old *order) (rows []int32, total int) {
	added := int(l.came - old.came)
	shift := added // of the newest first: all that was there moves down
	if !l.newest {
		shift = l.n - old.key.n - added // of the oldest first: up by as many as were dropped
	}
	rows = make([]int32, 0, len(old.rows)+added)
	fresh := func(from, to int) {
		for i := from; i < to; i++ {
			if l.passes(i, &total) {
				rows = append(rows, int32(i))
			}
		}
	}
	if l.newest {
		fresh(0, added)
	}
	for _, i := range old.rows {
		if at := int(i) + shift; at >= 0 && at < l.n {
			rows = append(rows, int32(at))
		}
	}
	if !l.newest {
		fresh(l.n-added, l.n)
	}
	return rows, min(total+old.total, l.n)
}

// steady is the value of each place as it is sorted by: that of the last order, unless it is off by more than a tenth.
// Otherwise rows of about the same would change places all the time.
func (l *list) steady(old *order) []float64 {
	keys := make([]float64, l.n)
	known := old != nil && len(old.keys) == l.n && old.key.scope == l.scope && old.key.sort == l.sort
	for i := range keys {
		if keys[i] = l.value(i); known {
			keys[i] = store.Steady(old.keys[i], keys[i])
		}
	}
	return keys
}

// arrange sorts rows, by keys if there are any, else by value or compare.
func (l *list) arrange(rows []int32, keys []float64) {
	sign := 1
	if l.invert {
		sign = -1
	}
	switch {
	case l.value != nil:
		keyed := make([]keyedRow, len(rows))
		for i, row := range rows {
			if keys != nil {
				keyed[i] = keyedRow{keys[row], row}
			} else {
				keyed[i] = keyedRow{l.value(int(row)), row}
			}
		}
		slices.SortFunc(keyed, func(a, b keyedRow) int {
			return cmp.Or(sign*cmp.Compare(b.value, a.value), cmp.Compare(a.row, b.row))
		})
		for i := range keyed {
			rows[i] = keyed[i].row
		}
	case l.compare != nil:
		slices.SortFunc(rows, func(a, b int32) int {
			return cmp.Or(sign*l.compare(int(a), int(b)), cmp.Compare(a, b))
		})
	default:
		slices.Sort(rows)
		if l.invert {
			slices.Reverse(rows)
		}
	}
}

type keyedRow struct {
	value float64
	row   int32
}
