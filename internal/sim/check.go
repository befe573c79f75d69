package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/server"
)

// facts are what has been seen once and must hold for ever.
type facts struct {
	cluster base.ClusterID
	leaders map[reign]base.NodeID
	states  map[moment]sighting
	seals   map[base.SegmentID]seal
}

// seal is the committed end of a segment, and when it was seen first.
type seal struct {
	end, at int64
}

// reign is a time in which at most one node leads.
type reign struct {
	shard base.ShardID
	term  uint64
}

// moment is an index of a shard's log.
type moment struct {
	shard base.ShardID
	index uint64
}

type sighting struct {
	sum uint64
	who base.NodeID
}

func newFacts() facts {
	return facts{leaders: make(map[reign]base.NodeID), states: make(map[moment]sighting), seals: make(map[base.SegmentID]seal)}
}

// Check holds what must be so at every moment against the inside of all brokers that run:
//   - they are of one cluster, the one that there ever was;
//   - a shard has at most one leader in a term;
//   - replicas that have applied the same commands are equal, and break none of their own invariants;
//   - see checkCopies for what must be so of the copies of segments.
func (c *Cluster) Check() {
	c.T.Helper()
	synctest.Wait()
	for _, n := range c.Running() {
		if n.Ended() != nil {
			continue
		}
		for _, problem := range c.facts.add(n.Inspect()) {
			c.Fatalf("%s: %s", n.Name, problem)
		}
	}
	c.checkCopies()
}

// add compares one broker with what is known, and remembers what is new.
func (f *facts) add(in server.Inside) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case in.Cluster.IsZero():
	case f.cluster.IsZero():
		f.cluster = in.Cluster
	case f.cluster != in.Cluster:
		complain("is of cluster %s, and there is a cluster %s", in.Cluster, f.cluster)
	}
	for _, r := range in.Replicas {
		if r.Err != nil {
			complain("shard %s: %v", r.ID, r.Err)
		}
		if r.State == "leader" {
			at := reign{r.ID, r.Term}
			if other, ok := f.leaders[at]; ok && other != in.Node {
				complain("leads shard %s in term %d, in which %s has led it", r.ID, r.Term, other)
			}
			f.leaders[at] = in.Node
		}
		if r.Index > 0 {
			at := moment{r.ID, r.Index}
			if seen, ok := f.states[at]; ok && seen.sum != r.Sum {
				complain("shard %s at index %d has sum %x, on %s it had %x", r.ID, r.Index, r.Sum, seen.who, seen.sum)
			}
			f.states[at] = sighting{r.Sum, in.Node}
		}
	}
	return problems
}

// Settled waits until the cluster is as it should be, while clients may be at work: every node that has a process
// serves, every shard has all its voters and a leader, and all have the same ring. It returns how long that took.
func (c *Cluster) Settled(within time.Duration) time.Duration {
	c.T.Helper()
	return c.awaitRest(within, true)
}

// Quiet waits until nothing is left to be done, once no client is at work any more: Settled, and every voter has
// everything. Then it holds what must be so against the brokers and against what clients were told.
func (c *Cluster) Quiet(within time.Duration) time.Duration {
	c.T.Helper()
	took := c.awaitRest(within, false)
	c.checkTopics()
	return took
}

func (c *Cluster) awaitRest(within time.Duration, busy bool) time.Duration {
	c.T.Helper()
	began := time.Now()
	for why := c.unrest(busy); why != ""; why = c.unrest(busy) {
		if time.Since(began) > within {
			c.Fatalf("the cluster has not come to rest after %v: %s", within, why)
		}
		time.Sleep(pollEvery)
	}
	took := time.Since(began)
	c.Trace.Logf("script", "at rest after %v", took)
	c.Check()
	return took
}

// unrest says what is still to be done; empty when nothing is. While clients are busy a voter may lack the last entries.
func (c *Cluster) unrest(busy bool) string {
	synctest.Wait()
	running := c.Running()
	shards := make(map[base.ShardID][]seat)
	for _, n := range running {
		if err := n.Ended(); err != nil {
			return fmt.Sprintf("%s has ended: %v", n.Name, err)
		}
		if !n.Serving() {
			return n.Name + " does not serve"
		}
		for _, r := range n.Inspect().Replicas {
			shards[r.ID] = append(shards[r.ID], seat{n, r})
		}
	}
	if len(shards) != c.options.Shards {
		return fmt.Sprintf("%d of %d shards are hosted", len(shards), c.options.Shards)
	}
	want := min(running[0].Config.ShardVoters, len(running))
	for id, seats := range shards {
		if why := unsettled(seats, want, busy); why != "" {
			return fmt.Sprintf("shard %s: %s", id, why)
		}
	}
	return c.discord(running)
}

// discord says where two nodes have different rings; empty when all agree.
func (c *Cluster) discord(nodes []*Node) string {
	var first sdk.NodeRing
	for i, n := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
		ring, err := n.admin().NodeRing(ctx, "", false)
		cancel()
		switch {
		case err != nil:
			return fmt.Sprintf("%s does not tell its ring: %v", n.Name, err)
		case i == 0:
			first = ring
		case ring.Hash != first.Hash || ring.Version != first.Version:
			return fmt.Sprintf("%s has ring %x of version %d, %s has %x of %d", n.Name, ring.Hash, ring.Version, nodes[0].Name, first.Hash, first.Version)
		}
	}
	return ""
}

// seat is one replica and its node.
type seat struct {
	node *Node
	server.ReplicaInside
}

// unsettled says what a shard lacks.
func unsettled(seats []seat, want int, busy bool) string {
	leader := slices.IndexFunc(seats, func(s seat) bool { return s.Ready })
	if leader < 0 {
		return "has no leader that serves"
	}
	l := seats[leader]
	if len(l.Voters) != want {
		return fmt.Sprintf("has voters %v, wants %d", l.Voters, want)
	}
	for _, voter := range l.Voters {
		i := slices.IndexFunc(seats, func(s seat) bool { return s.node.Config.NodeID == string(voter) })
		switch {
		case i < 0:
			return fmt.Sprintf("voter %s does not host it", voter)
		case !busy && seats[i].Index != l.Index:
			return fmt.Sprintf("voter %s is at %d, the leader at %d", voter, seats[i].Index, l.Index)
		}
	}
	return ""
}

// checkTopics compares the topics that there are with what clients were told.
func (c *Cluster) checkTopics() {
	c.T.Helper()
	there := make(map[string]bool)
	for _, n := range c.Running() {
		for _, r := range n.Inspect().Replicas {
			if !r.Ready {
				continue
			}
			for _, t := range r.Topics {
				there[t.Name] = true
			}
		}
	}
	var wrong []string
	for name, fate := range history.Fates(c.Asked.Ops()) {
		switch {
		case fate == history.Present && !there[name]:
			wrong = append(wrong, name+" was created and is not there")
		case fate == history.Absent && there[name]:
			wrong = append(wrong, name+" was deleted and is there")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		c.Fatalf("%s", strings.Join(wrong, "; "))
	}
}
