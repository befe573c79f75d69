//go:build !race

package seal

// How many states of a world are looked at before a search gives up: with this many, all of them. A planted bug must be
// found within so many.
const (
	race    = false
	deep    = 1_000_000
	planted = 100_000
)
