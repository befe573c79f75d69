//go:build race

package seal

// Under the race detector each state costs many times as much: the larger worlds are not searched to their end.
const (
	race    = true
	deep    = 15_000
	planted = 100_000
)
