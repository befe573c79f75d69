// Command chaos writes to and reads from a cluster of broker processes, each in a network namespace of its own, while
// they are killed, stopped, cut off from each other and given bad disks. Its exit code is 0 only if no acked record is
// lost, doubled or out of order. scripts/chaos.sh runs it inside a namespace that goes away with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/chaos"
	"github.com/eastguard/eastguard/internal/sim/procs"
)

type options struct {
	broker, dir  string
	nodes        int
	length       time.Duration
	seed         uint64
	least        int
	segmentBytes string
	topics       int
	writers      int
	pace         time.Duration
	calm         time.Duration
	loopback     bool
	more         bool
	only         string
}

func main() {
	var o options
	flag.StringVar(&o.broker, "eastguard", "", "the broker's binary")
	flag.StringVar(&o.dir, "dir", "", "a directory for the brokers' data, which must not exist")
	flag.IntVar(&o.nodes, "nodes", 5, "brokers")
	flag.DurationVar(&o.length, "for", time.Minute, "how long faults happen")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "chooses faults and nodes")
	flag.IntVar(&o.least, "least", 0, "records that must be acked")
	flag.StringVar(&o.segmentBytes, "segment-bytes", "4MiB", "at which segments roll")
	flag.IntVar(&o.topics, "topics", 4, "topics, of two ranges and three replicas each")
	flag.IntVar(&o.writers, "writers", 2, "producers of each topic")
	flag.DurationVar(&o.pace, "pace", 15*time.Millisecond, "pause of each producer after each hundred records")
	flag.DurationVar(&o.calm, "calm", time.Second, "between two faults")
	flag.BoolVar(&o.loopback, "loopback", false, "no namespaces, and no faults of the network")
	flag.BoolVar(&o.more, "more", false, "topics altered, made and deleted meanwhile, two brokers stopped at once, and the last broker's disk lost or damaged, too")
	flag.StringVar(&o.only, "only", "", "the faults that may come, by name, separated by semicolons; none: all")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(1)
	}
}

var errUnsound = errors.New("records are not as they were promised")

func run(o options) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	p := procs.Options{
		Dir: o.dir, Command: func(args ...string) *exec.Cmd { return exec.Command(o.broker, args...) },
		Args: []string{"--reserve-bytes", "0", "--node-out-secs", "600"},
	}
	faults := chaos.Processes()
	if disks := chaos.Disks(); disks != nil {
		faults = append(faults, disks...)
	} else {
		fmt.Println("*** strace is missing: there are no faults of disks in this run ***")
	}
	if !o.loopback {
		bridge, err := newBridge(o.nodes)
		if err != nil {
			return err
		}
		p.Hosts, p.Enter = bridge.hosts, bridge.enter
		faults = append(faults, chaos.Networks(bridge)...)
	}
	faults = append(append(faults, chaos.Several()...), chaos.AllAtOnce())
	if o.more {
		faults = slices.Concat(faults, chaos.LongStops(), chaos.Topics(), chaos.Losses())
	}
	if faults, err = only(o.only, faults); err != nil {
		return err
	}
	c, err := procs.New(p, o.nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(), os.RemoveAll(o.dir)) }()
	if _, err := c.ColdStart(time.Minute); err != nil {
		return err
	}
	return play(ctx, o, c, faults)
}

// only picks the faults that are named.
func only(names string, faults []chaos.Fault) ([]chaos.Fault, error) {
	if names == "" {
		return faults, nil
	}
	var picked []chaos.Fault
	for name := range strings.SplitSeq(names, ";") {
		i := slices.IndexFunc(faults, func(f chaos.Fault) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		picked = append(picked, faults[i])
	}
	return picked, nil
}

func play(ctx context.Context, o options, c *procs.Cluster, faults []chaos.Fault) error {
	config := base.TopicConfig{ReplicationFactor: min(3, o.nodes)}
	if err := config.Set("segment_bytes", o.segmentBytes); err != nil {
		return err
	}
	fmt.Printf("%d brokers, %v, seed %d\n", o.nodes, o.length, o.seed)
	rep, err := chaos.Play(ctx, chaos.Options{
		Cluster: c, For: o.length, Seed: o.seed, Choice: faults, Calm: o.calm,
		Topics: o.topics, Writers: o.writers, Config: config, Pace: o.pace, Log: os.Stdout,
	})
	if err != nil {
		return errors.Join(err, keepLogs(o, c))
	}
	rep.Print(os.Stdout)
	switch {
	case !rep.Sound():
		return errors.Join(errUnsound, keepLogs(o, c))
	case rep.Acked < o.least:
		return fmt.Errorf("%d records were acked, wanted %d", rep.Acked, o.least)
	case slices.ContainsFunc(faults, func(f chaos.Fault) bool { return rep.Faults[f.Name] == 0 }):
		fmt.Println("*** not every kind of fault came: the run is short ***")
	}
	return nil
}

// keepLogs writes what the brokers said beside their data's place, which is removed.
func keepLogs(o options, c *procs.Cluster) error {
	for _, n := range c.Nodes {
		name := fmt.Sprintf("%s-%s.log", o.dir, n.Name)
		if err := os.WriteFile(name, []byte(n.Said()), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "what %s said is in %s\n", n.Name, name)
	}
	return nil
}
