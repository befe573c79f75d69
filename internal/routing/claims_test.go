package routing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClaims()
		_, ok := c.best(shard)
		require.False(t, ok)

		changed := c.wait()
		c.learn(shard, Claim{Leader: "n1", Term: 3})
		<-changed
		changed = c.wait()
		c.learn(shard, Claim{Leader: "n2", Term: 2})
		require.Empty(t, changed, "an older claim is no news")
		best, ok := c.best(shard, Claim{Leader: "n2", Term: 2})
		require.True(t, ok)
		require.Equal(t, Claim{Leader: "n1", Term: 3}, best)

		// A recovery makes the terms of before void.
		best, _ = c.best(shard, Claim{Leader: "n4", Term: 1, Generation: 1})
		require.EqualValues(t, "n4", best.Leader)

		// Doubt lasts until something newer, until somebody was served there, or for a second.
		c.doubt(shard, Claim{Leader: "n1", Term: 3})
		_, ok = c.best(shard)
		require.False(t, ok)
		best, ok = c.best(shard, Claim{Leader: "n3", Term: 4})
		require.True(t, ok)
		require.EqualValues(t, "n3", best.Leader)
		c.learn(shard, Claim{Leader: "n1", Term: 3})
		_, ok = c.best(shard)
		require.True(t, ok)
		c.doubt(shard, Claim{Leader: "n1", Term: 3})
		time.Sleep(doubtFor + 1)
		_, ok = c.best(shard)
		require.True(t, ok)
	})
}
