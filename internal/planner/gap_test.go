package planner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The gap of a seal after a dead leader begins with what it appended last, unless nobody wrote then.
func TestGapOfADeadLeader(t *testing.T) {
	const now = 1_000_000
	for name, c := range map[string]struct{ since, last, want int64 }{
		"nobody waits":                    {0, now - 3_000, 0},
		"written to until the end":        {now - 200, now - 2_600, 2_600},
		"just within":                     {now - 200, now - 200 - noticedMs, 200 + noticedMs},
		"idle when the leader went":       {now - 200, now - 201 - noticedMs, 200},
		"nothing was appended":            {now - 200, 0, 200},
		"the dead leader's clock is fast": {now - 200, now - 100, 200},
		"and this one stepped back":       {now + 100, now - 50, 50},
		"before the wish, too":            {now + 100, 0, 0},
	} {
		rec := Recovery{SinceMs: c.since}
		require.Equal(t, c.want, rec.gapMs(now, c.last), name)
	}
}
