package sdk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/wire"
)

// At the end of a segment that a broker holds, the next one may be on another: the reader asks who has it, and neither
// waits there nor takes the answer for the end.
func TestConsumerFollowsARangeToTheNextSegmentsHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		asked := 0
		c.mu.Lock()
		c.goesOn = func(_ *fakeBroker, q wire.FetchRange) bool {
			asked++
			return q.Offset%50 == 0 && q.Offset < 100 && c.located <= int(q.Offset)/50
		}
		c.mu.Unlock()
		k, err := cl.NewConsumer(WithTopics("orders"), WithRangeMaxBytes(1))
		require.NoError(t, err)
		requireValues(t, collect(t, k, 100), 0)
		require.NoError(t, k.Close())
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Equal(t, 2, c.located)
		require.Less(t, asked, 30, "one question at each end, not many")
	})
}
