package procs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Blow is what is done to one replica of a segment while a producer writes to it.
type Blow uint8

// The blows.
const (
	KillFollower  Blow = iota // kill -9: its ports refuse at once
	PauseFollower             // SIGSTOP: the kernel takes what is sent, nobody answers
	KillLeader
	PauseLeader
)

// String names the blow.
func (b Blow) String() string {
	return [...]string{"follower killed", "follower paused", "leader killed", "leader paused"}[b]
}

func (b Blow) leader() bool { return b == KillLeader || b == PauseLeader }

// Trial says what a SealGap measures.
type Trial struct {
	Blow        Blow
	Factor      int  // 0: 3
	Coordinator bool // the node that is hit leads the topic's shard too; else it does not
	Topic       string
	Within      time.Duration // for the whole trial
}

// Gap is what a blow cost a producer that sends one record after the other.
type Gap struct {
	Took   time.Duration // the longest wait between two acks from the blow on
	Victim string
	Before sdk.SegmentID // that was written when the blow fell
	After  sdk.SegmentID // that was written when the producer was served again
	Acked  int
	Failed int // records that were not acked: the SDK hides a roll, so there should be none
}

// steadyAcks is how many acks in a row, before the blow and after the roll, show that the producer is served.
const steadyAcks = 50

// SealGap makes a topic, writes to it, hits one of its replicas, and measures how long the writes stood still. Then it
// makes the replica well again and waits until the cluster is healthy.
func (c *Cluster) SealGap(t Trial) (Gap, error) {
	if t.Factor == 0 {
		t.Factor = 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.Within)
	defer cancel()
	victim, err := c.target(ctx, t)
	if err != nil {
		return Gap{}, err
	}
	client, err := c.Client()
	if err != nil {
		return Gap{}, err
	}
	defer client.Close()
	g, err := c.hit(ctx, client, t, victim)
	return g, errors.Join(err, c.revive(victim, t))
}

// target makes the topic, names the node of the replica that is to be hit, and has the topic's shard led by that node or
// by another one, whatever the trial wants.
func (c *Cluster) target(ctx context.Context, t Trial) (*Node, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	config := sdk.TopicConfig{ReplicationFactor: t.Factor}
	if _, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: t.Topic, Config: config}); err != nil {
		return nil, err
	}
	route, err := client.Admin().RouteKey(ctx, t.Topic, nil)
	if err != nil {
		return nil, err
	}
	victim, other := route.Replicas[1].ID, route.Replicas[0].ID
	if t.Blow.leader() {
		victim, other = other, victim
	}
	shard, err := client.Admin().LocateShard(ctx, t.Topic)
	if err != nil {
		return nil, err
	}
	to := shard.Leader
	switch {
	case t.Coordinator:
		to = victim
	case to == victim:
		to = other
	}
	for to != shard.Leader {
		_, err := client.Admin().TransferShard(ctx, sdk.TransferShard{Shard: shard.Shard, To: to})
		if err == nil {
			break
		}
		if !errors.Is(err, sdk.CodePreconditionFailed) { // who has just started may not have caught up
			return nil, err
		}
		time.Sleep(lookEvery)
	}
	return c.node(string(victim))
}

func (c *Cluster) node(name string) (*Node, error) {
	i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no node %s here", name)
	}
	return c.Nodes[i], nil
}

// hit writes until it is served steadily, strikes, and writes until it is served steadily from another segment.
func (c *Cluster) hit(ctx context.Context, client *sdk.Client, t Trial, victim *Node) (Gap, error) {
	p, err := client.NewProducer(t.Topic, sdk.WithLinger(0))
	if err != nil {
		return Gap{}, err
	}
	defer p.Close(ctx)
	m := measured{
		send: func() (sdk.SegmentID, error) {
			ack, err := p.Send(ctx, sdk.Record{Value: make([]byte, 100)})
			return ack.Segment, err
		},
		strike: func() error { return victim.strike(t.Blow) },
	}
	g, err := m.run(ctx)
	g.Victim = victim.Name
	if err != nil {
		err = fmt.Errorf("%s, %s: %w", t.Blow, t.Topic, err)
	}
	return g, err
}

// measured is a producer under a blow, apart from clusters and processes: what a gap is, is defined here.
type measured struct {
	send   func() (sdk.SegmentID, error) // one record; says which segment it went to
	strike func() error
}

// run sends one record after the other. The gap is the longest time between two acks that follow each other, from the last
// one before the blow on. A record that fails does not end it.
func (m *measured) run(ctx context.Context) (g Gap, err error) {
	var struck chan error // gets how the blow went
	last := time.Now()
	for steady := 0; steady < steadyAcks || struck == nil; {
		if steady >= steadyAcks {
			struck, steady = make(chan error, 1), 0
			go func() { struck <- m.strike() }()
		}
		segment, err := m.send()
		if ctx.Err() != nil {
			return g, fmt.Errorf("the producer has not been served again: %w", errors.Join(ctx.Err(), err))
		}
		if err != nil {
			g.Failed++
			continue
		}
		now := time.Now()
		if struck == nil {
			g.Before = segment
		} else {
			g.Took = max(g.Took, now.Sub(last))
			g.After = segment
		}
		last = now
		g.Acked++
		if struck == nil || segment != g.Before {
			steady++
		}
	}
	return g, <-struck
}

func (n *Node) strike(b Blow) error {
	if b == KillFollower || b == KillLeader {
		return n.Kill()
	}
	return n.Signal(syscall.SIGSTOP)
}

// revive makes the node that was hit well again.
func (c *Cluster) revive(n *Node, t Trial) error {
	if n.Running() {
		if err := n.Signal(syscall.SIGCONT); err != nil {
			return err
		}
	} else if err := n.Start(); err != nil {
		return err
	}
	return c.Healthy(t.Within, len(c.Nodes))
}
