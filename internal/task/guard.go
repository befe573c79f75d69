package task

import "context"

// Guard runs what it is given, on the goroutine that it is called on, and decides what becomes of a panic in it. A
// program that owns a terminal, say, recovers, and puts the terminal back before anything is printed. The nil Guard
// decides nothing: the process ends, as Go does it.
//
// A package that starts goroutines on behalf of such a program takes a Guard and starts each of them under it: those of
// a [Group] made with [Guard.NewGroup], others and timers with the function that [Guard.Func] returns. What has
// panicked is not to be used any more, nor to be waited for: it may hold locks.
type Guard func(run func())

// Run calls f here.
func (g Guard) Run(f func()) {
	if g == nil {
		f()
		return
	}
	g(f)
}

// Func is f under the guard, for a goroutine or a timer to call.
func (g Guard) Func(f func()) func() {
	if g == nil {
		return f
	}
	return func() { g(f) }
}

// NewGroup makes an empty group whose tasks run under the guard.
func (g Guard) NewGroup(parent context.Context, name string) *Group {
	group := NewGroup(parent, name)
	group.guard = g
	return group
}
