package dataplane

import "time"

// onAckFrom hears from a follower.
func (a *actor) onAckFrom(m *ackArrival, now time.Time) {}

// onLinks looks at the links to all followers again.
func (a *actor) onLinks(now time.Time) {}
