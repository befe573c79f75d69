package sim

import (
	"math"
	"math/rand/v2"
	"strconv"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Pause lets a node stand still for a while, as SIGSTOP does. Goroutines cannot be frozen, so it is a likeness: nothing
// reaches the node and nothing leaves it, and its disk answers when the pause is over. What its process counts by the
// clock goes on meanwhile; so it sees the silence of the others, where a stopped process would see a jump of the time.
func (n *Node) Pause(d time.Duration) {
	n.c.Trace.Logf("script", "pause %s for %v", n.Name, d)
	over := time.Now().Add(d)
	n.proc.disk.Add(vfs.Rule{Ops: vfs.OpSyncs | vfs.OpWrite, Before: func(vfs.Call) { time.Sleep(time.Until(over)) }})
	n.cutFor(d, "")
}

// cutFor loses for a while all that goes from a node or to it, over connections to a port, or over all.
func (n *Node) cutFor(d time.Duration, port string) {
	cuts := []peer.Cut{{From: n.IP, Port: port}, {To: n.IP, Port: port}}
	for _, cut := range cuts {
		n.c.Net.Lose(cut)
	}
	n.c.ended.Go(func() {
		time.Sleep(d)
		for _, cut := range cuts {
			n.c.Net.Mend(cut)
		}
	})
}

// CutDataPort loses for a while what replicas send each other from and to a node; the cluster port works.
func (n *Node) CutDataPort(d time.Duration) {
	n.c.Trace.Logf("script", "%s has no data port for %v", n.Name, d)
	n.cutFor(d, strconv.Itoa(n.Config.DataPort))
}

// CutClusterPort loses for a while everything else that nodes send each other from and to a node, packets too.
func (n *Node) CutClusterPort(d time.Duration) {
	n.c.Trace.Logf("script", "%s has no cluster port for %v", n.Name, d)
	n.cutFor(d, strconv.Itoa(n.Config.ClusterPort))
}

// SlowDisk makes every sync of the node's process take a while, until mend.
func (n *Node) SlowDisk(d time.Duration) {
	n.c.Trace.Logf("script", "%s syncs in %v", n.Name, d)
	n.proc.disk.Add(vfs.Rule{Ops: vfs.OpSyncs, Delay: d})
}

// FailSync lets the next sync of the node's process fail. What was to be synced may be gone, and the process has to end.
func (n *Node) FailSync() {
	n.c.Trace.Logf("script", "the next sync of %s fails", n.Name)
	n.ailing = true
	n.proc.disk.Add(vfs.Rule{Ops: vfs.OpSync | vfs.OpSyncData, Times: 1, Err: syscall.EIO})
}

// HangSyncs lets no sync of the node's process come to its end before mend, or before the process has been cut off.
func (n *Node) HangSyncs() {
	n.c.Trace.Logf("script", "%s syncs no more", n.Name)
	n.ailing = true
	p := n.proc
	p.disk.Add(vfs.Rule{Ops: vfs.OpSyncs, Before: func(vfs.Call) { <-p.released }})
}

// FillDisk leaves so many bytes free on the node's disk, until FreeDisk.
func (n *Node) FillDisk(left int64) {
	free, _, _ := n.disk.Free("/")
	n.c.Trace.Logf("script", "the disk of %s is full but for %d bytes", n.Name, left)
	n.disk.SetCapacity(math.MaxInt64 - free + left)
	n.ailing, n.full = true, true
}

// FreeDisk gives a full disk room again.
func (n *Node) FreeDisk() {
	n.disk.SetCapacity(math.MaxInt64)
	n.full = false
}

// mend ends what makes networks and disks bad.
func (c *Cluster) mend() {
	c.Heal()
	c.Net.LosePackets(nil)
	for _, n := range c.nodes {
		n.FreeDisk()
		if n.proc != nil {
			n.proc.release()
			n.proc.disk.Clear()
			n.proc.disk.Add(usualDisk)
		}
	}
}

// reap ends the processes that have ended by themselves because of their disk, as their power does: what they could not
// sync is gone. Nothing else may end a process.
func (c *Cluster) reap() {
	c.T.Helper()
	for _, n := range c.Running() {
		switch err := n.Ended(); {
		case err == nil:
		case n.ailing:
			n.Crash()
		default:
			c.Fatalf("%s has ended, and nothing was done to its disk: %v", n.Name, err)
		}
	}
}

// between is a random time.
func (c *Cluster) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.Rand.Int64N(int64(most-least)))
}

// recordFaults are what happens to clusters whose records are judged: each of them comes as often as the others, but for
// what makes an end of the others.
var recordFaults = []action{
	{"kill", 2, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Kill() }},
	{"kill and start", 3, anyRuns, func(c *Cluster, _ *Script) {
		n := c.someRunning()
		n.Kill()
		time.Sleep(c.between(0, time.Second))
		n.Start()
	}},
	{"crash", 2, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Crash() }},
	{"power loss", 1, anyRuns, func(c *Cluster, _ *Script) {
		for _, n := range c.Running() {
			n.Crash()
		}
	}},
	{"stop", 1, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Stop() }},
	{"start", 8, anyDown, func(c *Cluster, _ *Script) {
		for range 1 + c.Rand.IntN(len(c.nodes)) {
			if anyDown(c) {
				c.someDown().Start()
			}
		}
	}},
	{"pause", 2, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().Pause(c.between(500*time.Millisecond, 5*time.Second)) }},
	{"partition", 2, always, func(c *Cluster, _ *Script) {
		c.Net.Heal()
		near, far := c.halves()
		c.Partition(near, far)
	}},
	{"bridge", 1, always, func(c *Cluster, _ *Script) {
		c.Net.Heal()
		near, far := c.halves()
		if len(near) > 1 {
			near = near[1:] // who is in neither half reaches both
		}
		c.Partition(near, far)
	}},
	{"one way", 2, always, oneWay},
	{"data port", 2, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().CutDataPort(c.between(time.Second, 8*time.Second)) }},
	{"cluster port", 2, anyRuns, func(c *Cluster, _ *Script) {
		c.someRunning().CutClusterPort(c.between(time.Second, 8*time.Second))
	}},
	{"slow disk", 2, anyRuns, func(c *Cluster, _ *Script) {
		c.someRunning().SlowDisk(c.between(50*time.Millisecond, 2*time.Second))
	}},
	{"failing sync", 1, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().FailSync() }},
	{"hung disk", 1, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().HangSyncs() }},
	{"full disk", 1, anyRuns, func(c *Cluster, _ *Script) { c.someRunning().FillDisk(c.Rand.Int64N(1 << 20)) }},
	{"heal", 4, always, func(c *Cluster, _ *Script) { c.mend() }},
}

func oneWay(c *Cluster, _ *Script) {
	from, to := c.nodes[c.Rand.IntN(len(c.nodes))], c.nodes[c.Rand.IntN(len(c.nodes))]
	if from != to {
		c.Trace.Logf("script", "nothing reaches %s from %s", to.Name, from.Name)
		c.Net.Cut(from.IP, to.IP)
	}
}

// losePackets loses a part of all packets.
func losePackets(c *Cluster, _ *Script) {
	part := c.Rand.Float64() / 2
	c.Trace.Logf("script", "%.0f %% of packets are lost", 100*part)
	c.Net.LosePackets(func() bool { return rand.Float64() < part })
}
