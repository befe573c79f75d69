package main

import (
	"fmt"
	"os"
	"time"

	"github.com/eastguard/eastguard/internal/sim/procs"
)

// failure is one kind of failure and how long a producer may wait for it, at the 99th percentile.
type failure struct {
	what  string
	trial procs.Trial
	goal  time.Duration
}

// lateAfter is replica_timeout_ms as the brokers have it by default.
const lateAfter = 750 * time.Millisecond

// betweenElections lets the shards forget when they changed leaders last.
const betweenElections = 11 * time.Second

var failures = []failure{
	{"follower killed", procs.Trial{Blow: procs.KillFollower}, 100 * time.Millisecond},
	{"follower paused", procs.Trial{Blow: procs.PauseFollower}, lateAfter + 150*time.Millisecond},
	{"leader killed", procs.Trial{Blow: procs.KillLeader}, 700 * time.Millisecond},
	{"leader paused", procs.Trial{Blow: procs.PauseLeader}, 3500 * time.Millisecond},
	{"follower killed that led the topic's shard", procs.Trial{Blow: procs.KillFollower, Coordinator: true}, 250 * time.Millisecond},
}

// measureFailures hits one replica of a topic while a producer writes to it, again and again, and looks at how long the
// producer waits. The cluster may have many idle topics beside it.
func measureFailures(o options, r *report) error {
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ColdStart(patience); err != nil {
		return err
	}
	if err := createTopics(c, 0, o.topics); err != nil {
		return err
	}
	for n, f := range failures {
		// Nobody stands for election a third time within ten seconds. Trials come more often than nodes die.
		time.Sleep(betweenElections)
		var gaps []time.Duration
		failed := 0
		for i := range o.trials {
			if f.trial.Coordinator && i > 0 {
				time.Sleep(betweenElections)
			}
			f.trial.Topic, f.trial.Within = fmt.Sprintf("failure-%d-%d", n, i), patience
			g, err := c.SealGap(f.trial)
			if err != nil {
				return fmt.Errorf("%s, trial %d: %w", f.what, i+1, err)
			}
			fmt.Fprintf(os.Stderr, "  %s: %v\n", f.what, g.Took.Round(time.Millisecond))
			gaps = append(gaps, g.Took)
			failed += g.Failed
		}
		p99 := quantile(gaps, 0.99)
		r.add(f.what+", the producer waits, p99", "%.0f ms", ms(p99), fmt.Sprintf("p50 %.0f ms, %d trials, %d records failed", ms(quantile(gaps, 0.5)), o.trials, failed)).
			goal(fmt.Sprintf("≤ %d ms", f.goal.Milliseconds()), p99 <= f.goal && failed == 0)
	}
	return c.Stop(patience)
}
