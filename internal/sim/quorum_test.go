package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/sdk"
)

// Of five nodes two are lost for good, both voters of shard 0. Shards that keep a majority go on: their topics are made,
// changed, written and read where their records live. Shards without one say so, and go on once an operator has
// rebuilt them.
func TestTwoOfFiveNodesLost(t *testing.T) {
	Run(t, Options{Seed: 1, Shards: 16}, func(t *testing.T, c *Cluster) {
		c.Start(5)
		c.Quiet(2 * time.Minute)
		load := c.StartLoad(LoadOptions{Topics: 12})
		time.Sleep(10 * time.Second)
		load.Stop()
		lost := c.voters(base.RootShard)[:2]
		var good, bad []base.ShardID
		for i := range c.options.Shards {
			id := base.ShardID{Root: uint16(i)}
			left := 0
			for _, v := range c.voters(id) {
				if v != lost[0] && v != lost[1] {
					left++
				}
			}
			if left >= 2 {
				good = append(good, id)
			} else {
				bad = append(bad, id)
			}
		}
		require.NotEmpty(t, good)
		require.Contains(t, bad, base.RootShard)
		for _, id := range lost {
			c.named(id).Kill()
			c.named(id).Wipe()
		}
		t.Logf("lost %v; %d shards go on, %d do not", lost, len(good), len(bad))
		c.Await(30*time.Second, "shards with a majority have leaders", func() bool {
			for _, id := range good {
				if c.voters(id) == nil {
					return false
				}
			}
			return true
		})
		c.Check()

		client := c.ClientOf(c.Running()[0])
		for _, id := range good {
			c.use(client, c.topicIn(id, "after"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		op := c.Asked.Do(ctx, client.Admin(), history.Op{Topic: c.topicIn(bad[0], "refused"), Kind: history.Create, Value: "x"})
		require.NotEqual(t, history.Done, op.Answer)

		for _, id := range bad {
			_, err := client.Admin().RecoverShard(within(t, 10*time.Second), sdk.RecoverShard{Shard: id})
			require.Error(t, err, "without the word that a loss is accepted")
			found, err := client.Admin().RecoverShard(within(t, 30*time.Second), sdk.RecoverShard{Shard: id, AcceptLoss: true})
			require.NoError(t, err)
			require.NotEmpty(t, found.Logs)
			require.Len(t, found.Lost, 2)
		}
		c.Await(time.Minute, "every shard has a leader", func() bool {
			for i := range c.options.Shards {
				if c.voters(base.ShardID{Root: uint16(i)}) == nil {
					return false
				}
			}
			return true
		})
		c.Check()
		for _, id := range bad {
			c.use(client, c.topicIn(id, "recovered"))
		}
		load.Verify()
	})
}

// use makes a topic, changes it, and writes and reads a record where it lives.
func (c *Cluster) use(client *sdk.Client, topic string) {
	c.T.Helper()
	for _, kind := range []history.Kind{history.Create, history.Alter, history.Describe} {
		op := c.Asked.Do(within(c.T, 10*time.Second), client.Admin(), history.Op{Topic: topic, Kind: kind, Value: kind.String()})
		if op.Answer != history.Done {
			c.Fatalf("%s", op)
		}
	}
	p, err := client.NewProducer(topic)
	require.NoError(c.T, err)
	_, err = p.Send(within(c.T, 10*time.Second), sdk.Record{Value: []byte(topic)})
	require.NoError(c.T, err)
	require.NoError(c.T, p.Close(within(c.T, 10*time.Second)))
	consumer, err := client.NewConsumer(sdk.WithTopics(topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()))
	require.NoError(c.T, err)
	defer consumer.Close()
	n := 0
	for m, err := range consumer.Records(within(c.T, 10*time.Second)) {
		require.NoError(c.T, err)
		require.Equal(c.T, topic, string(m.Value))
		n++
	}
	require.Equal(c.T, 1, n)
}
