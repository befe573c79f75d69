// Package invariant holds assertions that cost nothing in the shipped binary. They are on under the build tag
// `invariants`, with which scripts/test.sh runs the tests, and compiled away without it:
//
//	invariant.Check(commit <= end, "commit %d is above the end %d", commit, end)
//
// An assertion states what the surrounding code relies on; it is never the way to handle bad input, which gets a
// typed error in every build. Guard an expensive argument with `if invariant.Enabled { … }`.
package invariant

import "fmt"

// Check panics with the formatted message when ok is false and assertions are on.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}

// Mangle overwrites a buffer that its owner has given back, so that whoever still reads it sees garbage at once
// and not a plausible old value much later.
func Mangle(b []byte) {
	if !Enabled {
		return
	}
	for i := range b {
		b[i] = 0xdb
	}
}
