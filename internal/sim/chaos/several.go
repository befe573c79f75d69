package chaos

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/procs"
)

// Several are the faults of more than one process.
func Several() []Fault {
	return []Fault{
		{Name: "kill -9 of two", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lose(r.two()...)
		}},
		{Name: "kill -9 of a leader and its coordinator", All: true, Do: func(r *Run, _ *procs.Node) error {
			nodes, err := r.whoDecides(r.topic(r.rand.IntN(r.Topics)))
			if err != nil {
				return err
			}
			return r.lose(nodes...)
		}},
		{Name: "rolling restart", All: true, Do: func(r *Run, _ *procs.Node) error {
			for _, n := range r.Cluster.Nodes {
				if err := n.Stop(patience); err != nil {
					return err
				}
				if err := r.start(n); err != nil {
					return err
				}
				r.wait(r.Calm)
			}
			return nil
		}},
	}
}

// LongStops are brokers that stand still for long enough to be taken for dead, more than the rest can do without.
func LongStops() []Fault {
	return []Fault{
		{Name: "SIGSTOP of two", All: true, Do: func(r *Run, _ *procs.Node) error {
			nodes := r.two()
			for _, n := range nodes {
				if err := n.Signal(syscall.SIGSTOP); err != nil {
					return err
				}
			}
			r.logf("they are %s and %s", nodes[0].Name, nodes[1].Name)
			r.wait(r.between(3*time.Second, 20*time.Second))
			return errors.Join(nodes[0].Signal(syscall.SIGCONT), nodes[1].Signal(syscall.SIGCONT))
		}},
	}
}

// two are two nodes of all.
func (r *Run) two() []*procs.Node {
	i := r.rand.IntN(len(r.Cluster.Nodes))
	j := (i + 1 + r.rand.IntN(len(r.Cluster.Nodes)-1)) % len(r.Cluster.Nodes)
	return []*procs.Node{r.Cluster.Nodes[i], r.Cluster.Nodes[j]}
}

// lose kills nodes one right after the other, and starts them again.
func (r *Run) lose(nodes ...*procs.Node) error {
	for _, n := range nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	r.wait(r.between(0, 2*time.Second))
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := n.Ready(patience); err != nil {
			return err
		}
	}
	return nil
}

// whoDecides are the nodes that lead a topic's shard and its first range; they may be one.
func (r *Run) whoDecides(topic string) ([]*procs.Node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	detail, err := r.client.Admin().DescribeTopic(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", topic, err)
	}
	chosen := map[base.NodeID]bool{detail.Summary.ShardLeader: true, detail.Ranges[0].Leader: true}
	var nodes []*procs.Node
	for _, n := range r.Cluster.Nodes {
		if chosen[base.NodeID(n.Name)] {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}
