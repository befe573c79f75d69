package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// first is how a range's first segment is committed, and the one that is active, as a node's own replica of the shard
// has them once that holds.
func (n *node) first(ref base.RangeRef, state base.State) (first, active *meta.Segment) {
	n.t.Helper()
	soon(n.t, "its first segment is "+state.String(), func() bool {
		shard, ok := n.findHere(ref.Topic)
		if !ok {
			return false
		}
		r := n.topicHere(shard, ref.Topic).Range(ref.Range)
		first, active = r.Segments[0], r.Active()
		return first.State == state
	})
	return first, active
}

// coordinates reports whether a node coordinates a range.
func (n *node) coordinates(ref base.RangeRef) bool {
	shard, _ := n.findHere(ref.Topic)
	return n.shardLeader(shard) == n.id.Node
}

// goesOn produces to whoever leads the range until that works.
func (c *trio) goesOn(ref base.RangeRef, without *node, value string) *node {
	c.t.Helper()
	var leader *node
	soon(c.t, "the range goes on", func() bool {
		for _, n := range c.nodes {
			if n == without {
				continue
			}
			if _, err := n.produce(ref, makeBatch(c.t, -1, -1, value)); err == nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// What ends a leader, and what becomes of its segment.
func TestARangeGoesOnWithoutItsLeader(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	t.Run("when its roll has to be passed on", func(t *testing.T) {
		ref, leader, _ := c.topic("relayed", base.TopicConfig{})
		leader.mustProduce(ref, "first")
		seg, _ := leader.first(ref, base.StateActive)
		var relay *node
		for _, n := range c.nodes {
			n.first(ref, base.StateActive)
			if !n.coordinates(ref) {
				relay = n
			}
		}
		shard, _ := relay.findHere(ref.Topic)
		m := rollMessage{Shard: shard, Ref: ref, Segment: seg.ID, Epoch: seg.Epoch, End: 1, Cause: base.CauseAge, WaitMs: 5000}
		passedOn := m
		passedOn.Relayed = true
		_, err := relay.takeRoll(t.Context(), nil, passedOn)
		require.ErrorIs(t, err, base.CodeNoLeader, "it is passed on once")
		next, err := relay.takeRoll(t.Context(), nil, m)
		require.NoError(t, err)
		require.EqualValues(t, 1, next.Base)
		require.Equal(t, seg.ID, next.Prev)
	})
	t.Run("when it falls silent", func(t *testing.T) {
		ref, leader, followers := c.topic("silent", base.TopicConfig{})
		leader.mustProduce(ref, "acked")
		c.cable(leader).pull()
		next := c.goesOn(ref, leader, "second")
		require.NotEqual(t, leader.id.Node, next.id.Node)
		for _, n := range followers {
			require.Equal(t, []string{"acked", "second"}, n.readAll(ref, 0, 2))
		}
		seg, active := next.first(ref, base.StateSealed)
		require.Equal(t, base.CauseLeaderFailure, seg.Cause)
		require.EqualValues(t, 1, seg.End)
		require.Len(t, active.Replicas, 2)

		// It comes back, learns what has become of its segment, and sends producers on.
		c.cable(leader).putBack()
		soon(t, "the old leader knows", func() bool {
			_, err := leader.produce(ref, makeBatch(t, -1, -1, "too late"))
			return err != nil && base.CodeOf(err) != base.CodeTimeout && base.OutcomeOf(err) == base.NotApplied
		})
		require.Equal(t, []string{"acked", "second"}, next.readAll(ref, 0, 2))
	})
	t.Run("when it stops", func(t *testing.T) {
		ref, leader, _ := c.topic("stopped", base.TopicConfig{})
		leader.mustProduce(ref, "acked")
		var rest *node
		for i, m := range c.all {
			if m.srv.id.Node == leader.id.Node {
				rest = c.nodes[c.all[(i+1)%3].srv.id.Node]
				m.stop()
			}
		}
		seg, active := rest.first(ref, base.StateSealed)
		require.Equal(t, base.CauseDrain, seg.Cause, "its segment had gone to others before it stopped")
		require.EqualValues(t, 1, seg.End)
		require.NotEqual(t, leader.id.Node, active.Leader().Node)
		next := c.goesOn(ref, leader, "second")
		require.Equal(t, []string{"acked", "second"}, next.readAll(ref, 0, 2))
	})
}

// What is said of silence is true from the first moment, and of oneself.
func TestHowLongANodeHasBeenSilent(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	n1, n2 := c.nodes["n1"], c.nodes["n2"]
	silence := func() time.Duration {
		d, err := nodes{n1.Server}.Silence(context.Background(), "n2", "n3")
		require.NoError(t, err)
		return d
	}
	require.Zero(t, silence())
	require.Zero(t, n2.contact("n2").Silent)
	require.True(t, n2.contact("n1").Kept)
	require.False(t, n2.contact("nobody").Kept)
	c.cables["n3"].pull()
	soon(t, "it is noticed", func() bool { return silence() >= time.Second })
	require.Less(t, silence(), time.Minute)
	c.cables["n3"].putBack()
	soon(t, "it is heard again", func() bool { return silence() == 0 })
}
