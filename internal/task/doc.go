// Package task owns goroutines. A [Group] is a set of named goroutines under one context: the first that
// returns an error cancels the others, and Wait returns that error with the name of the task it came from. A
// [Closer] undoes what a start has done, in reverse order. A [Guard] decides what becomes of a panic.
//
// A server starts its parts and remembers how to undo each:
//
//	var undo task.Closer
//	defer func() { if err != nil { undo.Close() } }()
//	undo.Push("store", st.Close)
//	undo.Push("listener", l.Close) // closed first: no request may meet a closed store
//
// and runs its loops in a group:
//
//	g := task.NewGroup(ctx, "server")
//	g.Go("accept", s.accept)
//	err := g.Wait()
//
// Every goroutine carries its name as a profiler label ("task"), so that a goroutine dump of a running broker
// says who is who.
package task
