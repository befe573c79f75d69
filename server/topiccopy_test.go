package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// Every replica of a shard may be behind: that there is no such topic is for the leader to say, and for nobody else.
func TestOnlyTheLeaderOfAShardMissesATopic(t *testing.T) {
	t.Parallel()
	machines, _ := cluster(t)
	m := topicCopyMessage{Shard: machines[0].srv.allShards()[0], Topic: base.TopicID{15: 1}}
	soon(t, "the leader says that there is none, and the others that they do not know", func() bool {
		missed := 0
		for _, n := range machines {
			_, err := n.srv.takeTopicCopy(t.Context(), nil, m)
			if base.CodeOf(err) == base.CodeTopicNotFound {
				missed++
			} else {
				require.ErrorIs(t, err, base.CodeNoLeader)
			}
		}
		return missed == 1
	})
}
