//go:build !race

package sim

const (
	usualRuns  = 25 // seeds that are played
	recordRuns = 10 // seeds of TestRecords
	replays    = 2  // of each seed of the bugbase
)
