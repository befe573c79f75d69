package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/eastguard/eastguard/scripts/internal/screen"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

const (
	topWatched  = 10 * time.Second // for each figure of the dashboard
	topHistory  = 16 * time.Minute // more than it keeps
	topSpeed    = 20               // at which that is played
	topStorm    = 2 * time.Minute
	topTrials   = 5
	topFullSize = "60 nodes, 10,000 ranges"
)

// measureTop looks at what eg-top takes with a large cluster on 200 by 60 cells, and at how soon it shows what happens in
// a real one.
func measureTop(o options, r *report) error {
	if err := measureTopBudget(o, r); err != nil {
		return err
	}
	if err := measureTopMemory(o, r); err != nil {
		return err
	}
	return measureTopLive(o, r)
}

func measureTopBudget(o options, r *report) error {
	recording := filepath.Join(o.dir, "recording.jsonl")
	if err := screen.Record(recording, screen.Large(screen.Length(topWatched))); err != nil {
		return err
	}
	f, err := screen.Measure(o.top, recording, topWatched)
	if err != nil {
		return err
	}
	core := func(what string, share, most float64) {
		r.add("eg-top, "+topFullSize+", "+what, "%.2f %% of a core", 100*share, "").goal(fmt.Sprintf("≤ %.4g %%", 100*most), share <= most)
	}
	core("4 updates a second", f.Updating, 0.05)
	core("paused", f.Paused, 0.015)
	core("nothing changes", f.Idle, 0.015)
	r.add("to the terminal, an update in which rates wobble", "%.0f bytes", f.Update, "").goal("≤ 1,024", f.Update <= 1024)
	r.add("to the terminal, paused", "%.0f bytes", float64(f.PausedBytes), "").goal("0", f.PausedBytes == 0)
	r.add("key to screen, p99", "%.0f ms", ms(f.Key), "").goal("≤ 50 ms", f.Key <= 50*time.Millisecond)
	return nil
}

// measureTopMemory plays more than is kept of the past, fast, with all that happens on an ordinary day, and a storm.
func measureTopMemory(o options, r *report) error {
	for _, played := range []struct {
		what   string
		stream storetest.Options
		speed  float64
	}{
		{"memory after 15 minutes", screen.Day(topHistory), topSpeed},
		{"memory in a storm", screen.Storm(topStorm), 1},
	} {
		now, most, err := screen.Play(o.top, o.dir, played.stream, played.speed)
		if err != nil {
			return err
		}
		r.add("eg-top, "+topFullSize+", "+played.what, "%.0f MiB", float64(now)/(1<<20), fmt.Sprintf("at most %d MiB", most>>20)).
			goal("at most 64 MiB", most <= 64<<20)
	}
	return nil
}

// measureTopLive looks at three brokers: how soon the first frame is there, and what happens.
func measureTopLive(o options, r *report) error {
	var first []float64
	late := make(map[string][]time.Duration)
	var order []string
	for range topTrials {
		c, err := newCluster(o)
		if err != nil {
			return err
		}
		if _, err := c.ColdStart(patience); err != nil {
			return err
		}
		took, err := screen.First(o.top, "live 3/3", "-s", c.Nodes[0].Client)
		if err != nil {
			return err
		}
		first = append(first, ms(took))
		seen, err := screen.Changes(o.top, c)
		if err != nil {
			return err
		}
		for _, s := range seen {
			if _, ok := late[s.What]; !ok {
				order = append(order, s.What)
			}
			late[s.What] = append(late[s.What], s.Late)
			fmt.Fprintf(os.Stderr, "  %s is seen after %v\n", s.What, s.Late)
		}
		if err := c.KillAll(); err != nil {
			return err
		}
	}
	r.add("eg-top of three brokers, first frame", "%.0f ms", median(first), "").goal("≤ 300 ms", median(first) <= 300)
	for _, what := range order {
		worst := slices.Max(late[what])
		r.add(what+" is on the screen, slowest of "+fmt.Sprint(topTrials), "%.0f ms", ms(worst), "").goal("≤ 500 ms", worst <= 500*time.Millisecond)
	}
	return nil
}
