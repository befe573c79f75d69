package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/config"
)

// runs is how many seeds are played: EASTGUARD_SIM_RUNS, else 500 with EASTGUARD_SOAK=1, else usual. EASTGUARD_SIM_SEED
// plays that one alone, EASTGUARD_SIM_FIRST begins there.
func runs(t *testing.T, usual uint64) (first, last uint64) {
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		require.NoError(t, err, name)
		return n
	}
	switch {
	case os.Getenv("EASTGUARD_SIM_SEED") != "":
		seed := number("EASTGUARD_SIM_SEED")
		return seed, seed
	case os.Getenv("EASTGUARD_SIM_RUNS") != "":
		last = number("EASTGUARD_SIM_RUNS")
	case os.Getenv("EASTGUARD_SOAK") != "":
		last = 500
	default:
		last = usual
	}
	first = 1
	if os.Getenv("EASTGUARD_SIM_FIRST") != "" {
		first = number("EASTGUARD_SIM_FIRST")
	}
	return first, first + last - 1
}

// Nodes join, leave, crash, return and are cut off from each other, while clients change topics and write records.
// After each step no invariant is broken; at the end everything that clients were told is so.
func TestScripts(t *testing.T) {
	first, last := runs(t, usualRuns)
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			o, s := ordinary(seed)
			Run(t, o, func(_ *testing.T, c *Cluster) { c.Play(s, LoadOptions{Streams: StreamOptions{Topics: 2}}) })
		})
	}
}

// ordinary is what a seed alone decides: some clusters are founded by three nodes together, some are larger, and in some
// a node that stays away is soon out.
func ordinary(seed uint64) (o Options, s Script) {
	o.Seed = seed
	if seed%3 == 0 {
		o.Expect = 3
	}
	if seed%4 == 0 {
		o.Config = func(_ int, cfg *config.Config) { cfg.NodeOutSecs = 15 }
		s.Longest = 12 * time.Second
	}
	if seed%5 == 0 {
		s.Nodes, s.AtMost = 5, 7
	}
	return o, s
}

// What failed once does not fail again.
func TestBugbase(t *testing.T) {
	files, err := filepath.Glob("bugbase/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		line, _, _ := strings.Cut(string(text), "\n")
		play, err := parseBug(line)
		require.NoError(t, err, file)
		for i := range replays {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(file), i), func(t *testing.T) {
				t.Parallel()
				play(t)
			})
		}
	}
}

// parseBug reads a bug's first line: seed=7 steps=20, or records=35 for a seed of TestRecords.
func parseBug(line string) (play func(t *testing.T), err error) {
	numbers := make(map[string]uint64)
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		if numbers[key], err = strconv.ParseUint(value, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	steps := int(numbers["steps"])
	if seed, ok := numbers["records"]; ok {
		return func(t *testing.T) { playRecords(t, seed, steps) }, nil
	}
	o, s := ordinary(numbers["seed"])
	s.Steps = steps
	return func(t *testing.T) {
		Run(t, o, func(_ *testing.T, c *Cluster) { c.Play(s, LoadOptions{Streams: StreamOptions{Topics: 2}}) })
	}, nil
}
