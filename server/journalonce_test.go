package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/sdk"
)

// What a shard decided stands in one journal, though its next leader learns of it by becoming the leader.
func TestAnEventIsToldOnceOverAHandover(t *testing.T) {
	t.Parallel()
	c := newFleet(t)
	admin := c.client.Admin()
	const topics = 12
	for i := range topics {
		name := fmt.Sprintf("topic-%d", i)
		at, err := admin.LocateShard(c.within(patience), name)
		require.NoError(t, err)
		c.create(name, 1, sdk.TopicConfig{})
		to := c.machines[i%3].cfg.NodeID
		if at.Leader == base.NodeID(to) {
			to = c.machines[(i+1)%3].cfg.NodeID
		}
		_, err = admin.TransferShard(c.within(patience), sdk.TransferShard{Shard: at.Shard, To: base.NodeID(to)})
		require.NoError(t, err)
	}
	for i := range topics { // everybody has applied all of it
		for _, m := range c.machines {
			soon(t, "it knows the topic", func() bool {
				known := false
				require.NoError(t, m.srv.host.ViewStale(m.srv.host.ShardOf(fmt.Sprintf("topic-%d", i)), func(s *meta.State) error {
					known = s.TopicByName(fmt.Sprintf("topic-%d", i)) != nil
					return nil
				}))
				return known
			})
		}
	}
	told := make(map[string]int)
	for _, m := range c.machines {
		m.srv.journal.Last(func(e telemetry.Event) bool {
			if e.Type == string(meta.EventTopicCreated) {
				told[e.Subject]++
			}
			return true
		})
	}
	require.Len(t, told, topics)
	for name, times := range told {
		require.Equal(t, 1, times, name)
	}
}
