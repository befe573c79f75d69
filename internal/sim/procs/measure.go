package procs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eastguard/eastguard/sdk"
)

// watcher asks one node about itself.
type watcher struct {
	node   *Node
	client *sdk.Client
}

// watchers makes one for each node but one.
func (c *Cluster) watchers(without *Node) (list []watcher, closeAll func(), err error) {
	closeAll = func() {
		for _, w := range list {
			_ = w.client.Close()
		}
	}
	for _, n := range c.Nodes {
		if n == without || !n.Running() {
			continue
		}
		client, err := c.Client(n)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		list = append(list, watcher{n, client})
	}
	return list, closeAll, nil
}

// ask bounds one question; a broker on the same machine that takes longer has been stopped.
const ask = 2 * time.Second

// leads is how many shards a node leads, by its own word.
func (w watcher) leads() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ask)
	defer cancel()
	d, err := w.client.Admin().DescribeNode(ctx, "")
	return d.Status.ShardLeaders, err
}

// Busiest is the node that leads most shards.
func (c *Cluster) Busiest() (*Node, error) {
	nodes, leads, err := c.leads()
	if err != nil {
		return nil, err
	}
	busiest := 0
	for i, n := range leads {
		if n > leads[busiest] {
			busiest = i
		}
	}
	return nodes[busiest], nil
}

// Even waits until all nodes lead as many shards, but for one.
func (c *Cluster) Even(within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(20 * lookEvery) {
		_, leads, err := c.leads()
		if err == nil && slices.Max(leads)-slices.Min(leads) <= 1 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("leaderships are not even within %v: %v (%v)", within, leads, err)
		}
	}
}

// leads is how many shards each running node leads.
func (c *Cluster) leads() (nodes []*Node, leads []int, err error) {
	all, closeAll, err := c.watchers(nil)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	for _, w := range all {
		n, err := w.leads()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", w.node.Name, err)
		}
		nodes, leads = append(nodes, w.node), append(leads, n)
	}
	if len(nodes) == 0 {
		return nil, nil, errors.New("no node runs")
	}
	return nodes, leads, nil
}

// believes is what a node believes of another's life.
func (w watcher) believes(other string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ask)
	defer cancel()
	ring, err := w.client.Admin().NodeRing(ctx, "", false)
	for _, m := range ring.Members {
		if string(m.Node) == other {
			return m.State, err
		}
	}
	return "", err
}

// Takeover is what an end of a node did to the shards that it led.
type Takeover struct {
	Shards int           // it led
	Took   time.Duration // from its end until the last of them had another leader that serves
}

// Takeover ends a node by end and waits until the others lead all shards.
func (c *Cluster) Takeover(victim *Node, end func() error, within time.Duration) (t Takeover, err error) {
	own, err := c.Client(victim)
	if err != nil {
		return t, err
	}
	t.Shards, err = watcher{victim, own}.leads()
	_ = own.Close()
	if err != nil {
		return t, err
	}
	others, closeAll, err := c.watchers(victim)
	if err != nil {
		return t, err
	}
	defer closeAll()
	before, err := sumOfLeads(others)
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := end(); err != nil {
		return t, err
	}
	for {
		now, err := sumOfLeads(others)
		switch t.Took = time.Since(began); {
		case err == nil && now == before+t.Shards:
			return t, nil
		case t.Took > within:
			return t, fmt.Errorf("after %v the others lead %d shards of %d: %v", t.Took, now, before+t.Shards, err)
		}
		time.Sleep(lookEvery)
	}
}

func sumOfLeads(list []watcher) (sum int, err error) {
	for _, w := range list {
		n, err := w.leads()
		if err != nil {
			return sum, fmt.Errorf("%s: %w", w.node.Name, err)
		}
		sum += n
	}
	return sum, nil
}

// SeenBy waits until all other nodes believe that a node is in a state (alive, suspect, dead, left), and returns how
// long that took.
func (c *Cluster) SeenBy(node *Node, state string, within time.Duration) (time.Duration, error) {
	others, closeAll, err := c.watchers(node)
	if err != nil {
		return 0, err
	}
	defer closeAll()
	began := time.Now()
	for _, w := range others {
		for {
			got, err := w.believes(node.Name)
			if err == nil && got == state {
				break
			}
			if time.Since(began) > within {
				return within, fmt.Errorf("%s believes that %s is %q (%v)", w.node.Name, node.Name, got, err)
			}
			time.Sleep(lookEvery)
		}
	}
	return time.Since(began), nil
}

// ColdStart starts all nodes and waits until each finds the cluster in good health.
func (c *Cluster) ColdStart(within time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	err := c.Healthy(within, len(c.Nodes))
	return time.Since(began), err
}

// Restart stops all nodes by kill -9 at one moment, starts them, and waits until each finds the cluster in good health.
func (c *Cluster) Restart(within time.Duration) (time.Duration, error) {
	if err := c.KillAll(); err != nil {
		return 0, err
	}
	return c.ColdStart(within)
}

// CreateTopics makes topics numbered from up to to through one client, so many at a time.
func CreateTopics(client *sdk.Client, from, to, inFlight int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	next.Store(int64(from))
	for range inFlight {
		g.Go(func() error {
			for i := int(next.Add(1) - 1); i < to; i = int(next.Add(1) - 1) {
				if _, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: TopicName(i)}); err != nil {
					return fmt.Errorf("topic %d: %w", i, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// TopicName is the name of one of many topics.
func TopicName(i int) string { return fmt.Sprintf("topic-%06d", i) }
