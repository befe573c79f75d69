package sdk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A producer made after its topic was deleted and made anew has nothing on the way to the old one: its first record
// goes to the new topic, whatever the client has cached.
func TestANewProducerOfATopicMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 2)
		fill(t, cl, "orders", 0, 10)
		c.mu.Lock()
		delete(c.topics, "orders")
		c.mu.Unlock()
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 10)

		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		requireValues(t, collect(t, k, 10), 0)
		require.NoError(t, k.Close())
	})
}

// A producer begins with what is cached while no broker answers; its records wait for one.
func TestANewProducerWhileNobodyAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 10)
		c.stop("n1")
		c.stop("n2")
		p, err := cl.NewProducer("orders")
		require.NoError(t, err)
		acked := make(chan error, 1)
		require.NoError(t, p.SendAsync(Record{Value: value(10)}, func(_ Ack, err error) { acked <- err }))
		c.start("n1")
		c.start("n2")
		require.NoError(t, <-acked)
		require.NoError(t, p.Close(t.Context()))
	})
}
