// Command bench measures one broker against the disk below it, and a cluster of three on this machine, and prints the
// table of docs/PERFORMANCE.md. scripts/bench.sh builds what it needs and pins everything to two cores.
//
// Whatever is compared is measured in turn, moments apart: floor, EastGuard, floor, EastGuard, … Each adjacent
// pair gives one ratio and the table shows the median, so that a disk whose speed drifts (all of them do) moves
// both sides. The client is the SDK, in this process; the broker is a process of its own; both share the cores.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the flags.
type options struct {
	broker, cli string // binaries
	top         string // the same
	dir         string // on the file system that is measured
	rounds      int
	period      time.Duration // of one measurement
	only        string        // name of one group of measurements
	topics      int           // that a cluster is filled with
	trials      int           // of each kind of failure
	nats        string        // binaries of the peer
	natsServer  string
	markdown    string // file to update
	commit      string
}

func main() {
	var o options
	flag.StringVar(&o.broker, "eastguard", "", "the broker's binary")
	flag.StringVar(&o.cli, "eg-cli", "", "the command line's binary")
	flag.StringVar(&o.top, "eg-top", "", "the dashboard's binary")
	flag.StringVar(&o.dir, "dir", "", "directory to measure in; it must not exist, and is removed at the end")
	flag.IntVar(&o.rounds, "rounds", 5, "adjacent pairs")
	flag.DurationVar(&o.period, "period", 3*time.Second, "time of one measurement")
	flag.StringVar(&o.only, "only", "", "one of idle, latency, produce, consume, topics, recovery, cluster, replication, failures, top")
	flag.IntVar(&o.topics, "topics", 0, "fill a cluster with so many topics, such as 100000, and measure it too; beside failures, so many idle ones")
	flag.IntVar(&o.trials, "trials", 10, "of each kind of failure")
	flag.StringVar(&o.nats, "nats", "", "binary of the peer's command line")
	flag.StringVar(&o.natsServer, "nats-server", "", "binary of the peer")
	flag.StringVar(&o.markdown, "markdown", "", "file whose table is replaced, between its two marker lines")
	flag.StringVar(&o.commit, "commit", "unknown", "commit that was built")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) (err error) {
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)

	r := &report{options: o}
	for _, group := range []struct {
		name    string
		measure func(options, *report) error
	}{
		{"idle", measureIdle},
		{"latency", measureLatency},
		{"produce", measureProduce},
		{"consume", measureConsume},
		{"topics", measureTopics},
		{"recovery", measureRecovery},
		{"cluster", measureCluster},
		{"replication", measureReplication},
		{"failures", measureFailures},
		{"top", measureTop},
	} {
		if o.only != "" && o.only != group.name {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", group.name)
		if err := group.measure(o, r); err != nil {
			return fmt.Errorf("%s: %w", group.name, err)
		}
	}
	fmt.Print(r.table())
	if o.markdown == "" || o.only != "" {
		return nil
	}
	return r.update(o.markdown)
}
