package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/eastguard/eastguard/internal/sim/procs"
	"github.com/eastguard/eastguard/sdk"
)

// Topics are what operators do with topics while these are in use and a broker is away.
func Topics() []Fault {
	return []Fault{
		{Name: "topics altered, kill -9", Do: func(r *Run, n *procs.Node) error {
			return r.without(n, r.alterTopics)
		}},
		{Name: "a topic made and deleted, kill -9", Do: func(r *Run, n *procs.Node) error {
			return r.without(n, func(ctx context.Context) error {
				for round := range 4 {
					if err := r.passing(ctx, round); err != nil {
						return err
					}
				}
				return nil
			})
		}},
	}
}

// without kills a node, does something meanwhile and starts it again.
func (r *Run) without(n *procs.Node, do func(ctx context.Context) error) error {
	if err := n.Kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(do(ctx), r.start(n))
}

// alterTopics changes settings of every topic several times. The factor stays above one, so that the loss of one disk
// costs nothing.
func (r *Run) alterTopics(ctx context.Context) error {
	pick := func(values ...string) string { return values[r.rand.IntN(len(values))] }
	for range 3 {
		for i := range r.Topics {
			alter := sdk.AlterTopic{Name: r.topic(i), Set: map[string]string{
				"replication_factor": strconv.Itoa(2 + r.rand.IntN(min(3, len(r.Cluster.Nodes)-1))),
				"min_replicas":       pick("0", "2"),
				"segment_bytes":      pick("64KiB", "1MiB", "4MiB"),
				"segment_age":        pick("1s", "10s", "1h"),
				"retention":          pick("0", "1d"),
				"label.owner":        pick("a", "b"),
			}}
			if _, err := r.client.Admin().AlterTopic(ctx, alter); err != nil {
				return fmt.Errorf("alter %s: %w", alter.Name, err)
			}
		}
		r.wait(r.Calm / 2)
	}
	return nil
}

// passing is one life of a topic whose name is used again and again: it is made, written to and deleted. Every other one
// is deleted while it is written to; the others are read before, and hold what was acked in this life alone.
func (r *Run) passing(ctx context.Context, round int) error {
	const topic = "passing"
	config := r.Config
	config.ReplicationFactor = 2
	made, err := r.client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: topic, Ranges: 2, Config: config})
	if err != nil {
		return fmt.Errorf("make %s: %w", topic, err)
	}
	client, err := r.Cluster.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	w := &writer{number: round, topic: topic, gaps: r.gaps}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.run(writing, client, r.Pace) }()
	r.wait(r.Calm)
	if round%2 == 0 {
		stop()
		if err := <-ended; err != nil {
			return fmt.Errorf("write %s: %w", topic, err)
		}
		if err := r.look(ctx, topic, w); err != nil {
			return err
		}
	}
	if _, err := r.client.Admin().DeleteTopic(ctx, sdk.DeleteTopic{Name: topic, ExpectTopic: made.Topic.Summary.ID}); err != nil {
		return fmt.Errorf("delete %s: %w", topic, err)
	}
	if round%2 != 0 {
		r.wait(r.Calm / 2)
		stop()
		<-ended // that not everything was acked is no surprise
	}
	return nil
}

// look judges a topic before it goes.
func (r *Run) look(ctx context.Context, topic string, writers ...*writer) error {
	there, err := readAll(ctx, r.client, topic)
	if err != nil {
		return err
	}
	r.gone.add(judge(topic, there.seen, writers, nil))
	return nil
}
