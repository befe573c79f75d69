//go:build !race

package sim

// usualRuns is how many seeds are played.
const usualRuns = 50
