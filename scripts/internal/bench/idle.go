package main

import (
	"fmt"
	"os/exec"
	"time"
)

// measureIdle looks at a broker that nobody uses.
func measureIdle(o options, r *report) error {
	b, err := startBroker(o)
	if err != nil {
		return err
	}
	if err := b.createTopic("first"); err != nil {
		return err
	}
	time.Sleep(o.period) // let what the start has begun come to rest
	const watched = 20 * time.Second
	before, err := b.cpu()
	if err != nil {
		return err
	}
	time.Sleep(watched)
	after, err := b.cpu()
	if err != nil {
		return err
	}
	rss, err := b.rss()
	if err != nil {
		return err
	}
	percent := 100 * (after - before).Seconds() / watched.Seconds()
	r.add("idle, processor", "%.2f %% of a core", percent, "").goal("≤ 1 %", percent <= 1)
	r.add("idle, memory", "%.0f MB", rss/1e6, "").goal("≤ 60 MB", rss <= 60e6)
	return b.stop()
}

// measureTopics looks at a broker with many topics, each with a record in it, and at how fast they are listed.
func measureTopics(o options, r *report) error {
	b, err := startBroker(o)
	if err != nil {
		return err
	}
	if err := b.fillTopics(0, 1000); err != nil {
		return err
	}
	rss, err := b.rss()
	if err != nil {
		return err
	}
	files, err := b.openFiles()
	if err != nil {
		return err
	}
	r.add("1,000 topics, memory", "%.0f MB", rss/1e6, "").goal("≤ 150 MB", rss <= 150e6)
	r.add("1,000 topics, open files", "%.0f", files, "").goal("≤ max_open_files + 100", files <= 612)

	if err := b.createTopics(1000, 10_000); err != nil {
		return err
	}
	list, err := commandTimes(o, o.cli, "-s", b.addr, "topic", "list", "-o", "name")
	if err != nil {
		return err
	}
	version, err := commandTimes(o, o.cli, "version")
	if err != nil {
		return err
	}
	r.add("eg-cli topic list, 10,000 topics", "%.0f ms", median(list), "").goal("≤ 500 ms", median(list) <= 500)
	r.add("eg-cli version", "%.0f ms", median(version), "").goal("≤ 50 ms", median(version) <= 50)
	return b.stop()
}

// commandTimes runs a command once a round and returns the milliseconds that each took.
func commandTimes(o options, name string, args ...string) ([]float64, error) {
	var all []float64
	for range o.rounds {
		began := time.Now()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s %v: %w: %s", name, args, err, out)
		}
		all = append(all, ms(time.Since(began)))
	}
	return all, nil
}
