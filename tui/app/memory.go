package app

import "runtime/debug"

// The program sits in a corner of somebody's machine all day: memory is dearer there than the little time that collecting
// earlier takes.
const (
	// garbage is how much of it is let lie about, in percent of what is in use.
	garbage = 25
	// memory is what all of it may take before it is collected more often than that, and given back to the system sooner. The
	// budget is 64 MB; the program's own code is 15 of them.
	memory = 44 << 20
)

// thrift bounds the memory, unless whoever started the program has said how. It returns what ends that.
func thrift(getenv func(string) string) (end func()) {
	undo := func() {}
	if getenv("GOMEMLIMIT") == "" {
		before := debug.SetMemoryLimit(memory)
		undo = func() { debug.SetMemoryLimit(before) }
	}
	if getenv("GOGC") != "" {
		return undo
	}
	before := debug.SetGCPercent(garbage)
	return func() {
		debug.SetGCPercent(before)
		undo()
	}
}
