//go:build race

package sim

// usualRuns is how many seeds are played: under the race detector each costs many times as much.
const usualRuns = 5
