package sdk

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// An ack names every replica, the first one after a roll too: it says so itself, and no route is asked.
func TestAcksNameTheirReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		c.roll(topic, 1, "n1", "n2", "n3")
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		send := func() Ack {
			ack, err := p.Send(t.Context(), Record{Value: value(0)})
			require.NoError(t, err)
			return ack
		}
		first, second := send(), send()
		require.Equal(t, []NodeID{"n1", "n2", "n3"}, first.Replicas)
		require.Same(t, &first.Replicas[0], &second.Replicas[0], "one list for all of them")

		for _, set := range [][]base.NodeID{{"n1", "n3"}, {"n2", "n1", "n3"}} { // the leader stays; it goes
			c.roll(topic, 1, set...)
			require.Equal(t, set, send().Replicas)
		}
		require.Equal(t, []NodeID{"n1", "n2", "n3"}, first.Replicas, "what was said of an earlier record stays so")
		require.NoError(t, p.Close(t.Context()))
	})
}

// The route is renewed beside when an ack tells of a segment that it does not know.
func TestAnAckOfANewSegmentRenewsTheRoute(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		p, err := cl.NewProducer("orders", WithLinger(0))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), Record{Value: value(0)})
		require.NoError(t, err)
		c.roll(topic, 1, "n1", "n2", "n3")
		_, err = p.Send(t.Context(), Record{Value: value(1)})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []NodeID{"n1", "n2", "n3"}, p.home.Load().route().byRange[1].Active.Replicas)
		require.NoError(t, p.Close(t.Context()))
	})
}
