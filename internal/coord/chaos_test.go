package coord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// Nodes die, hang, come back and start anew, leaders roll, and the shard's leadership changes hands in the middle of all
// of it. When the nodes are well again every range has one active segment on as many nodes as it should, whose leader
// holds it; no segment ends below what its replicas had all the time; and nothing is left to do.
func TestWhateverHappensTheRangesGoOn(t *testing.T) {
	seeds := uint64(8)
	if os.Getenv("EASTGUARD_SOAK") != "" {
		seeds = 500
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				c := newChaos(t, w, rand.New(rand.NewPCG(seed, 7)))
				for range 60 {
					c.step()
					time.Sleep(time.Duration(c.dice.IntN(700)) * time.Millisecond)
				}
				c.heal()
				c.check()
			})
		})
	}
}

type chaos struct {
	t     *testing.T
	w     *world
	dice  *rand.Rand
	ids   []base.NodeID
	down  map[base.NodeID]*fakeNode
	rolls sync.WaitGroup
}

const chaosTopics = 40

func newChaos(t *testing.T, w *world, dice *rand.Rand) *chaos {
	c := &chaos{t: t, w: w, dice: dice, down: make(map[base.NodeID]*fakeNode)}
	for _, id := range []base.NodeID{"n2", "n3", "n4", "n5"} {
		w.join(id)
		c.ids = append(c.ids, id)
	}
	for _, n := range w.nodes {
		n.obeys = true
	}
	for i := range chaosTopics {
		w.create(topicName(i), base.TopicConfig{ReplicationFactor: 3}, 1)
	}
	settle()
	return c
}

func (c *chaos) step() {
	id := c.ids[c.dice.IntN(len(c.ids))]
	switch n := c.down[id]; {
	case n != nil && c.dice.IntN(3) > 0:
		c.start(id, n)
	case c.dice.IntN(4) == 0:
		c.w.coord.Lead(base.RootShard, false)
		time.Sleep(time.Duration(c.dice.IntN(5)) * time.Millisecond)
		c.w.coord.Lead(base.RootShard, true)
	case n == nil && len(c.down) == 0:
		c.down[id] = c.w.kill(id)
	case n == nil:
		c.roll()
	}
}

// start starts a node anew.
func (c *chaos) start(id base.NodeID, n *fakeNode) {
	delete(c.down, id)
	c.w.mu.Lock()
	c.w.nodes[id] = n
	delete(c.w.contacts, id)
	c.w.mu.Unlock()
	c.w.restart(id, n.boot+1)
}

// roll lets a leader ask for the end of its segment, as long as it takes.
func (c *chaos) roll() {
	topic := c.w.topic(topicName(c.dice.IntN(chaosTopics)))
	active := topic.Ranges[0].Active()
	if c.down[active.Leader().Node] != nil {
		return
	}
	req := RollRequest{
		Ref: base.RangeRef{Topic: topic.ID, Range: 1}, Segment: active.ID, Epoch: active.Epoch, End: active.Base + 10, Cause: base.CauseAge,
	}
	for _, r := range active.Replicas { // what is committed is on all of them
		if n := c.w.nodeOf(r.Node); n != nil {
			n.mu.Lock()
			n.ends[active.ID] = req.End
			n.mu.Unlock()
		}
	}
	c.rolls.Go(func() {
		for try := 0; ; try++ {
			a, err := c.w.coord.RequestRoll(context.Background(), req)
			if err == nil {
				require.GreaterOrEqual(c.t, a.Base, active.Base)
				return
			}
			require.Less(c.t, try, 10_000)
			time.Sleep(200 * time.Millisecond)
		}
	})
}

func (c *chaos) heal() {
	for id, n := range c.down {
		c.start(id, n)
	}
	rest(5 * time.Minute)
	c.rolls.Wait()
	rest(time.Minute)
}

func (c *chaos) check() {
	for i := range chaosTopics {
		r := c.w.topic(topicName(i)).Ranges[0]
		active := r.Active()
		require.NotNil(c.t, active)
		require.Len(c.t, active.Replicas, 3)
		leader := c.w.nodeOf(active.Leader().Node)
		leader.mu.Lock()
		_, held := leader.held[active.ID]
		leader.mu.Unlock()
		require.True(c.t, held, "its leader holds %s", active.ID)
		for j, seg := range r.Segments[:len(r.Segments)-1] {
			require.Equal(c.t, base.StateSealed, seg.State)
			require.Equal(c.t, seg.End, r.Segments[j+1].Base)
		}
	}
	s := c.w.coord.Status()[0]
	require.Equal(c.t, Status{Shard: s.Shard}, s)
	require.Empty(c.t, c.w.coord.Stuck())
	require.NoError(c.t, c.w.ViewStale(base.RootShard, func(s *meta.State) error { return s.Check() }))
}
