package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/internal/sim/procs"
)

// newCluster makes n brokers in processes of their own and starts none.
func newCluster(t *testing.T, n int, args ...string) *procs.Cluster {
	t.Helper()
	needsProcess(t)
	c, err := procs.New(procs.Options{
		Dir:  t.TempDir(),
		Args: append([]string{"--reserve-bytes", "0"}, args...),
		Command: func(args ...string) *exec.Cmd {
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), runAsBroker+"=1")
			return cmd
		},
	}, n)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("the last of %s's log:\n%s", n.Name, n.Log(40))
			}
		}
		require.NoError(t, c.Close())
	})
	return c
}

// Clients make, change, read and delete topics while brokers are stopped in their tracks, killed and started again.
// There is one order of all that happened to each topic.
func TestClusterHistory(t *testing.T) {
	c := newCluster(t, 3, "--shards", "8")
	_, err := c.ColdStart(limit)
	require.NoError(t, err)

	asked := history.NewRecorder(nil)
	stopped := make(chan struct{})
	var clients sync.WaitGroup
	names := history.NewNames(8)
	for i := range 4 {
		client, err := c.Client()
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		w := history.Worker{Client: i, Admin: client.Admin(), Names: names, Rand: rand.New(rand.NewPCG(uint64(i), 0)), Think: 30 * time.Millisecond, Within: 5 * time.Second}
		clients.Go(func() { asked.Work(stopped, w) })
	}
	settled := func() { // the operations under way now are over, and some more
		t.Helper()
		want := len(asked.Ops()) + 30
		require.Eventually(t, func() bool { return len(asked.Ops()) >= want }, limit, 10*time.Millisecond)
	}
	for _, round := range []struct{ sleeps, dies *procs.Node }{{c.Nodes[0], c.Nodes[1]}, {c.Nodes[2], c.Nodes[0]}} {
		settled()
		// A leader that sleeps is deposed, wakes, and must not answer from the past.
		require.NoError(t, round.sleeps.Signal(syscall.SIGSTOP))
		settled()
		require.NoError(t, round.sleeps.Signal(syscall.SIGCONT))
		settled()
		require.NoError(t, round.dies.Kill())
		settled()
		require.NoError(t, round.dies.Start())
		require.NoError(t, round.dies.Ready(limit))
	}
	settled()
	close(stopped)
	clients.Wait()

	ops := asked.Ops()
	count := make(map[history.Answer]int)
	for _, op := range ops {
		count[op.Answer]++
	}
	t.Logf("%d operations: %v", len(ops), count)
	require.NoError(t, history.Check(ops, limit))
	require.NoError(t, c.Stop(limit))
}

// A cluster forms, takes over from nodes that are killed or sleep, and restarts. How long that takes is printed; the
// only bound is that of a machine that is very busy. scripts/bench.sh measures on a quiet one, against the goals.
func TestClusterTimes(t *testing.T) {
	c := newCluster(t, 3)
	report := func(what string, took, goal time.Duration) {
		t.Helper()
		t.Logf("%-40s %10v (goal %v)", what, took.Round(time.Millisecond), goal)
	}
	took, err := c.ColdStart(limit)
	require.NoError(t, err)
	report("cold start of three", took, 3*time.Second)

	client, err := c.Client()
	require.NoError(t, err)
	defer client.Close()
	const topics = 300
	began := time.Now()
	require.NoError(t, procs.CreateTopics(client, 0, topics, 64))
	took = time.Since(began)
	t.Logf("%-40s %10.0f/s", "topic creations, 64 in flight", topics/took.Seconds())

	victim, err := c.Busiest()
	require.NoError(t, err)
	end, err := c.Takeover(victim, victim.Kill, limit)
	require.NoError(t, err)
	report(fmt.Sprintf("kill -9, %d shards led again", end.Shards), end.Took, 150*time.Millisecond)
	took, err = c.SeenBy(victim, "dead", limit)
	require.NoError(t, err)
	report("its death known to all", took, 8*time.Second)
	require.NoError(t, victim.Start())
	require.NoError(t, c.Healthy(limit, 3))

	victim, err = c.Busiest()
	require.NoError(t, err)
	end, err = c.Takeover(victim, func() error { return victim.Signal(syscall.SIGSTOP) }, limit)
	require.NoError(t, err)
	report(fmt.Sprintf("SIGSTOP, %d shards led again", end.Shards), end.Took, 900*time.Millisecond)
	require.NoError(t, victim.Signal(syscall.SIGCONT))
	require.NoError(t, c.Healthy(limit, 3))

	took, err = c.Restart(limit)
	require.NoError(t, err)
	report(fmt.Sprintf("restart of all, %d topics", topics), took, 5*time.Second)
	require.NoError(t, c.Stop(limit))
}
