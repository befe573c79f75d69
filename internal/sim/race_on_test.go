//go:build race

package sim

// Under the race detector each run costs many times as much.
const (
	usualRuns  = 5 // seeds that are played
	recordRuns = 3 // seeds of TestRecords
	replays    = 1 // of each seed of the bugbase
)
