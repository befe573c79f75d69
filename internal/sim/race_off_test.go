//go:build !race

package sim

const (
	usualRuns  = 50 // seeds that are played
	recordRuns = 30 // seeds of TestRecords
	replays    = 2  // of each seed of the bugbase
)
