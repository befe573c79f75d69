package dataplane

import "time"

// onOpenFrom hears from the leader of a segment that it leads it.
func (a *actor) onOpenFrom(m *openArrival, now time.Time) { m.done() }

// onAppendFrom takes one batch, or a commit alone, from the leader of a segment.
func (a *actor) onAppendFrom(m *appendArrival, now time.Time) { m.done() }
