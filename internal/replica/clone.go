package replica

import (
	"encoding/binary"
	"slices"
)

// Clone copies a leader, so that what could happen to it may be explored. Items are copied as they are.
func (l *Leader[T]) Clone() *Leader[T] {
	c := *l
	c.late = slices.Clone(l.late)
	c.replicas = slices.Clone(l.replicas)
	c.pending = queue[T]{buf: slices.Clone(l.pending.all())}
	c.sending = nil
	c.ready.Done, c.ready.Sends, c.ready.Late = slices.Clone(l.ready.Done), nil, slices.Clone(l.ready.Late)
	return &c
}

// AppendKey appends all that decides what a leader will do, less its clocks: two leaders of one configuration with the
// same key do the same from here on when time stands still. Between two calls of Ready only.
func (l *Leader[T]) AppendKey(b []byte) []byte {
	b = append(b, byte(l.state), byte(l.cause), byte(len(l.late)))
	for _, at := range []int64{l.next, l.commit, l.end} {
		b = binary.AppendVarint(b, at)
	}
	for i := range l.replicas {
		p := &l.replicas[i]
		b = append(b, byte(p.link))
		b = binary.AppendVarint(b, p.acked)
		b = binary.AppendVarint(b, p.sent)
		b = binary.AppendVarint(b, p.told)
	}
	for _, e := range l.pending.all() {
		b = binary.AppendVarint(b, e.base)
		b = binary.AppendVarint(b, e.end)
	}
	return b
}
