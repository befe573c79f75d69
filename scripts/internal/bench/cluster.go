package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/sim/procs"
)

// patience bounds each wait of the cluster's measurements; reaching it is an error, not a figure.
const patience = 2 * time.Minute

// measureCluster looks at three brokers that share this machine: how fast they form, fail over and restart, what they
// cost while nothing happens, and how fast they make topics.
func measureCluster(o options, r *report) error {
	var t clusterTimes
	for range o.rounds {
		c, err := newCluster(o)
		if err != nil {
			return err
		}
		if err := t.measure(c); err != nil {
			_ = c.Close()
			return err
		}
		if err := c.Stop(patience); err != nil {
			return err
		}
	}
	row := func(what string, times []float64, goal string, most float64) {
		r.add(what, "%.0f ms", median(times), "").goal(goal, median(times) <= most)
	}
	row("three nodes, cold start", t.cold, "≤ 3,000 ms", 3000)
	row("three nodes, restart of all with 1,000 topics", t.restart, "≤ 5,000 ms", 5000)
	row("kill -9, its shards led again", t.refused, "≤ 150 ms", 150)
	row("SIGSTOP, its shards led again", t.silent, "≤ 900 ms", 900)
	row("a death known to all", t.death, "≤ 8,000 ms", 8000)
	if err := measureClusterIdle(o, r); err != nil {
		return err
	}
	return measureCreations(o, r)
}

func newCluster(o options) (*procs.Cluster, error) {
	dir, err := os.MkdirTemp(o.dir, "cluster")
	if err != nil {
		return nil, err
	}
	return procs.New(procs.Options{Dir: dir, Command: func(args ...string) *exec.Cmd { return exec.Command(o.broker, args...) }}, 3)
}

// clusterTimes are milliseconds, one of each a round.
type clusterTimes struct{ cold, refused, silent, death, restart []float64 }

// measure is the life of one cluster, from its first start to a restart with topics.
func (t *clusterTimes) measure(c *procs.Cluster) error {
	took, err := c.ColdStart(patience)
	if err != nil {
		return err
	}
	t.cold = append(t.cold, ms(took))
	if err := createTopics(c, 0, 1000); err != nil {
		return err
	}

	victim, err := c.Busiest()
	if err != nil {
		return err
	}
	end, err := c.Takeover(victim, victim.Kill, patience)
	if err != nil {
		return err
	}
	t.refused = append(t.refused, ms(end.Took))
	if took, err = c.SeenBy(victim, "dead", patience); err != nil {
		return err
	}
	t.death = append(t.death, ms(end.Took+took))
	if err := victim.Start(); err != nil {
		return err
	}
	if err := c.Healthy(patience, 3); err != nil {
		return err
	}

	if victim, err = c.Busiest(); err != nil {
		return err
	}
	if end, err = c.Takeover(victim, func() error { return victim.Signal(syscall.SIGSTOP) }, patience); err != nil {
		return err
	}
	t.silent = append(t.silent, ms(end.Took))
	if err := victim.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := c.Healthy(patience, 3); err != nil {
		return err
	}

	if took, err = c.Restart(patience); err != nil {
		return err
	}
	t.restart = append(t.restart, ms(took))
	return nil
}

func createTopics(c *procs.Cluster, from, to int) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return procs.CreateTopics(client, from, to, inParallel)
}

// measureClusterIdle looks at three brokers that nobody uses.
func measureClusterIdle(o options, r *report) error {
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ColdStart(patience); err != nil {
		return err
	}
	if err := c.Even(patience); err != nil {
		return err
	}
	percent, rss, err := restingUsage(c, o.period)
	if err != nil {
		return err
	}
	r.add("three nodes idle, 32 shards, processor a node", "%.2f %% of a core", percent, "").goal("≤ 3 %", percent <= 3)
	r.add("three nodes idle, 32 shards, memory a node", "%.0f MB", rss/1e6, "").goal("≤ 80 MB", rss <= 80e6)
	return c.Stop(patience)
}

// restingUsage is what the costliest node uses of a core, and of memory, once what has been begun had time to end.
func restingUsage(c *procs.Cluster, settle time.Duration) (percent, rss float64, err error) {
	time.Sleep(settle)
	const watched = 20 * time.Second
	before, err := usage(c)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(watched)
	after, err := usage(c)
	if err != nil {
		return 0, 0, err
	}
	for i := range after {
		percent = max(percent, 100*(after[i].CPU-before[i].CPU).Seconds()/watched.Seconds())
		rss = max(rss, float64(after[i].RSS))
	}
	return percent, rss, nil
}

func usage(c *procs.Cluster) (all []procs.Usage, err error) {
	for _, n := range c.Nodes {
		u, err := n.Usage()
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// measureCreations makes topics through one client, and with -topics 100000 as many as a cluster is meant to hold.
func measureCreations(o options, r *report) error {
	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ColdStart(patience); err != nil {
		return err
	}
	const batch = 3000
	var rates []float64
	for round := range o.rounds {
		began := time.Now()
		if err := createTopics(c, round*batch, (round+1)*batch); err != nil {
			return err
		}
		rates = append(rates, batch/time.Since(began).Seconds())
	}
	r.add("topic creations, 64 in flight, 3 copies", "%.0f/s", median(rates), "").goal("≥ 1,500/s", median(rates) >= 1500)
	if o.topics <= o.rounds*batch {
		return c.Stop(patience)
	}
	if err := createTopics(c, o.rounds*batch, o.topics); err != nil {
		return err
	}
	return measureManyTopics(o, r, c)
}

// measureManyTopics looks at a cluster that is full of them.
func measureManyTopics(o options, r *report, c *procs.Cluster) error {
	what := func(text string) string { return fmt.Sprintf("%d topics, %s", o.topics, text) }
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	var times []time.Duration
	for range 2000 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		began := time.Now()
		_, err := client.Admin().DescribeTopic(ctx, procs.TopicName(rand.IntN(o.topics)))
		cancel()
		if err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	p99 := quantile(times, 0.99)
	r.add(what("describe p99"), "%.2f ms", ms(p99), "").goal("≤ 10 ms", p99 <= 10*time.Millisecond)

	n := c.Nodes[0]
	if err := n.Kill(); err != nil {
		return err
	}
	began := time.Now()
	if err := n.Start(); err != nil {
		return err
	}
	if err := n.Ready(patience); err != nil {
		return err
	}
	took := time.Since(began)
	r.add(what("restart of a node"), "%.1f s", took.Seconds(), "").goal("≤ 10 s", took <= 10*time.Second)
	if err := c.Healthy(patience, 3); err != nil {
		return err
	}
	all, err := usage(c)
	if err != nil {
		return err
	}
	var rss float64
	for _, u := range all {
		rss = max(rss, float64(u.RSS))
	}
	r.add(what("memory a node"), "%.0f MB", rss/1e6, "").goal("≤ 500 MB", rss <= 500e6)
	return c.Stop(patience)
}
