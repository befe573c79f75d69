package chaos

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/sim/procs"
)

// Fault is one thing that goes wrong, and what makes it well again.
type Fault struct {
	Name string
	All  bool // it happens to all nodes at once
	// Do lets it happen to one node and returns when it is over; what it says is who it happened to and how.
	Do func(r *Run, n *procs.Node) error
}

// Cutter parts machines; a run on loopback has none.
type Cutter interface {
	Cut(from, to, port int) error       // nothing arrives from one node at a port of another; port 0: at any
	Lose(node int, share float64) error // that share of what comes to a node does not arrive
	Heal() error
}

// Processes are the faults of processes alone.
func Processes() []Fault {
	return []Fault{
		{Name: "kill -9", Do: func(r *Run, n *procs.Node) error {
			if err := n.Kill(); err != nil {
				return err
			}
			r.wait(r.between(0, 2*time.Second))
			return r.start(n)
		}},
		{Name: "SIGSTOP", Do: func(r *Run, n *procs.Node) error {
			if err := n.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			r.wait(r.between(500*time.Millisecond, 5*time.Second))
			return n.Signal(syscall.SIGCONT)
		}},
		{Name: "SIGSTOP, kill -9", Do: func(r *Run, n *procs.Node) error {
			if err := n.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			r.wait(r.between(500*time.Millisecond, 3*time.Second))
			if err := n.Kill(); err != nil {
				return err
			}
			return r.start(n)
		}},
		{Name: "SIGTERM", Do: func(r *Run, n *procs.Node) error {
			if err := n.Stop(patience); err != nil {
				return err
			}
			return r.start(n)
		}},
	}
}

// AllAtOnce kills every process at one moment.
func AllAtOnce() Fault {
	return Fault{Name: "kill -9 of all", All: true, Do: func(r *Run, _ *procs.Node) error {
		if err := r.Cluster.KillAll(); err != nil {
			return err
		}
		for _, n := range r.Cluster.Nodes {
			if err := n.Start(); err != nil {
				return err
			}
		}
		for _, n := range r.Cluster.Nodes {
			if err := n.Ready(patience); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Networks are the faults of networks.
func Networks(cutter Cutter) []Fault {
	heal := func(r *Run, err error) error {
		if err == nil {
			r.wait(r.between(time.Second, 5*time.Second))
		}
		if healed := cutter.Heal(); err == nil {
			err = healed
		}
		return err
	}
	others := func(r *Run, n *procs.Node, cut func(i, j int) error) error {
		i := r.index(n)
		for j := range r.Cluster.Nodes {
			if j != i {
				if err := cut(i, j); err != nil {
					return err
				}
			}
		}
		return nil
	}
	both := func(i, j, portOfI, portOfJ int) error {
		if err := cutter.Cut(j, i, portOfI); err != nil {
			return err
		}
		return cutter.Cut(i, j, portOfJ)
	}
	return []Fault{
		{Name: "one-way cut", Do: func(r *Run, n *procs.Node) error {
			i := r.index(n)
			j := (i + 1 + r.rand.IntN(len(r.Cluster.Nodes)-1)) % len(r.Cluster.Nodes)
			return heal(r, cutter.Cut(i, j, 0))
		}},
		{Name: "cut off, deaf", Do: func(r *Run, n *procs.Node) error {
			return heal(r, others(r, n, func(i, j int) error { return cutter.Cut(j, i, 0) }))
		}},
		{Name: "cut off", Do: func(r *Run, n *procs.Node) error {
			return heal(r, others(r, n, func(i, j int) error { return both(i, j, 0, 0) }))
		}},
		{Name: "data port cut", Do: func(r *Run, n *procs.Node) error {
			return heal(r, others(r, n, func(i, j int) error {
				return both(i, j, portOf(n.Data), portOf(r.Cluster.Nodes[j].Data))
			}))
		}},
		{Name: "cluster port cut", Do: func(r *Run, n *procs.Node) error {
			return heal(r, others(r, n, func(i, j int) error {
				return both(i, j, portOf(n.Peers), portOf(r.Cluster.Nodes[j].Peers))
			}))
		}},
		{Name: "flapping", Do: func(r *Run, n *procs.Node) error {
			for range 6 {
				if err := others(r, n, func(i, j int) error { return both(i, j, 0, 0) }); err != nil {
					return err
				}
				r.wait(r.between(100*time.Millisecond, time.Second))
				if err := cutter.Heal(); err != nil {
					return err
				}
				r.wait(r.between(100*time.Millisecond, time.Second))
			}
			return nil
		}},
		{Name: "30 % loss", Do: func(r *Run, n *procs.Node) error {
			return heal(r, cutter.Lose(r.index(n), 0.3))
		}},
	}
}

// Disks are faults of syscalls, made by strace; nil where that is missing.
func Disks() []Fault {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	return []Fault{
		{Name: "slow fdatasync", Do: func(r *Run, n *procs.Node) error {
			return r.traced(n, "delay_enter="+strconv.Itoa(100_000+r.rand.IntN(900_000)), func() error {
				r.wait(r.between(time.Second, 4*time.Second))
				return nil
			})
		}},
		{Name: "hung fdatasync", Do: func(r *Run, n *procs.Node) error {
			return r.traced(n, "delay_enter=60000000", func() error {
				r.wait(r.between(2*time.Second, 6*time.Second))
				return nil
			})
		}},
		{Name: "fdatasync EIO", Do: func(r *Run, n *procs.Node) error {
			return r.traced(n, "error=EIO:when=1", func() error {
				code, err := n.Exited(patience)
				if err != nil {
					return err
				}
				if code != exitStorage {
					return fmt.Errorf("%s ended with code %d after an fdatasync that failed, wanted %d", n.Name, code, exitStorage)
				}
				return r.start(n)
			})
		}},
	}
}

// exitStorage is the exit code of a broker whose stable storage failed.
const exitStorage = 74

// traced runs f while strace injects something into every fdatasync of a node.
func (r *Run) traced(n *procs.Node, inject string, f func() error) error {
	cmd := exec.Command("strace", "-f", "-qq", "-p", strconv.Itoa(n.Pid()), "-e", "trace=fdatasync", "-e", "inject=fdatasync:"+inject, "-o", "/dev/null")
	if err := cmd.Start(); err != nil {
		return err
	}
	err := f()
	_ = cmd.Process.Signal(syscall.SIGINT) // it lets go of the process, if that still runs
	_ = cmd.Wait()
	return err
}

// patience bounds each wait for a process. It is met only when something is wrong.
const patience = time.Minute

// start starts a node that was ended, and waits until it serves.
func (r *Run) start(n *procs.Node) error {
	if err := n.Start(); err != nil {
		return err
	}
	return n.Ready(patience)
}

func (r *Run) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.rand.Int64N(int64(most-least)))
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
