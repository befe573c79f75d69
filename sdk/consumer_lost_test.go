package sdk

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/wire"
)

// A reader that lost its broker looks up who holds its offset, and may learn there that retention has removed it. That
// must be the same to it as learning it from a fetch.
func TestConsumerLearnsOfATrimFromTheMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		policy ResetPolicy
		start  Start
		from   int // -1: the error
	}{
		"none":                 {ResetNone, AtOffset(1, 20), -1},
		"earliest":             {ResetEarliest, AtOffset(1, 20), 50},
		"latest":               {ResetLatest, AtOffset(1, 20), 100},
		"none, from the start": {ResetNone, Earliest(), 50},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
				// The first fetch meets a node that has dropped the segment and says no more than that; by then it is trimmed.
				c.spoil = func(_ *fakeBroker, q wire.FetchRange) base.Code {
					if q.Offset < 50 {
						topic.ranges[0].earliest = 50
						return base.CodeNotReplica
					}
					return base.CodeOK
				}
				k, err := cl.NewConsumer(WithTopics("orders"), WithStart(test.start), WithReset(test.policy), WithStop(StopAtEnd()))
				require.NoError(t, err)
				defer func() { require.NoError(t, k.Close()) }()
				if test.from < 0 {
					_, err = k.Poll(t.Context())
					var out *OffsetOutOfRangeError
					require.ErrorAs(t, err, &out)
					require.Equal(t, OffsetOutOfRangeError{Position: Position{"orders", 1, 20}, Earliest: 50, End: 100}, *out)
					return
				}
				n := 0
				for m, err := range k.Records(t.Context()) {
					require.NoError(t, err)
					require.Equal(t, int64(test.from+n), m.Offset)
					n++
				}
				require.Equal(t, 100-test.from, n)
			})
		})
	}
}

// Records that were fetched before the rest was trimmed away are returned before the reader is told.
func TestConsumerReturnsWhatItHasBeforeAnError(t *testing.T) {
	for _, code := range []base.Code{base.CodeOffsetOutOfRange, base.CodeCorruptData} {
		t.Run(code.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				topic := c.addTopic("orders", 1)
				fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
				c.spoil = func(_ *fakeBroker, q wire.FetchRange) base.Code {
					switch {
					case q.Offset < 30:
						return base.CodeOK
					case code == base.CodeOffsetOutOfRange:
						topic.ranges[0].earliest = 70
					}
					return code
				}
				k, err := cl.NewConsumer(WithTopics("orders"), WithMaxPollRecords(3), WithRangeMaxBytes(1000))
				require.NoError(t, err)
				defer func() { require.NoError(t, k.Close()) }()
				got := 0
				for {
					time.Sleep(time.Minute) // a slow reader: whatever is to be learned has been
					ms, err := k.Poll(t.Context())
					if err != nil {
						require.ErrorIs(t, err, code)
						break
					}
					requireValues(t, ms, got)
					got += len(ms)
				}
				require.GreaterOrEqual(t, got, 30)
				require.Equal(t, []Position{{"orders", 1, int64(got)}}, k.Positions())
			})
		})
	}
}

// Where every copy is damaged the reader is told; a copy that is whole is found without a word.
func TestConsumerMeetsDamage(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		topic := c.addTopic("orders", 1)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		c.spoil = func(b *fakeBroker, q wire.FetchRange) base.Code {
			if q.Offset == 0 && b.node == "n1" {
				return base.CodeCorruptData
			}
			return base.CodeOK
		}
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = k.Poll(ctx)
		require.ErrorIs(t, err, CodeCorruptData)
		require.NotEmpty(t, hintOf(err))
		require.NoError(t, k.Seek(Position{"orders", 1, 10}))
		requireValues(t, collect(t, k, 90), 10)

		c.mu.Lock()
		topic.ranges[0].route.Active.Replicas = []base.NodeID{"n1", "n2"} // is named to whoever asks who else has the offset
		c.mu.Unlock()
		require.NoError(t, k.Seek(Position{"orders", 1, 0}))
		requireValues(t, collect(t, k, 100), 0)
		require.NoError(t, k.Close())
	})
}

// LastError says that a broker is away for as long as it is, and no longer.
func TestConsumerSaysThatItsBrokerIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		c.addTopic("orders", 1)
		k, err := cl.NewConsumer(WithTopics("orders"))
		require.NoError(t, err)
		defer func() { require.NoError(t, k.Close()) }()
		fill(t, cl, "orders", 0, 1)
		requireValues(t, collect(t, k, 1), 0)
		require.NoError(t, k.LastError())
		n := c.topics["orders"].ranges[0].leader
		c.stop(n)
		for range 100 {
			time.Sleep(time.Second)
			require.ErrorIs(t, k.LastError(), CodeUnreachable)
		}
		c.start(n)
		time.Sleep(10 * time.Second)
		require.NoError(t, k.LastError())
	})
}

// A reader that has moved on to another replica when it meets damage in what the one before had sent leaves only that one: the
// other is not to blame.
func TestConsumerShunsOnlyWhoSentWhatIsDamaged(t *testing.T) {
	inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
		replicated(c)
		fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
		var asked []base.NodeID // in the order of their first answers
		c.spoil = func(b *fakeBroker, q wire.FetchRange) base.Code {
			if !slices.Contains(asked, b.node) {
				asked = append(asked, b.node)
			}
			if b.node == asked[0] && q.Offset >= 60 {
				return base.CodeBehind
			}
			return base.CodeOK
		}
		c.garble = func(b *fakeBroker, batch []byte) []byte {
			if h, err := header.Parse(batch); b.node != asked[0] || err != nil || h.BaseOffset != 50 {
				return batch
			}
			damaged := bytes.Clone(batch)
			damaged[len(damaged)-3] ^= 0x10
			return damaged
		}
		k, end := reader(t, c, 1, WithMaxPollRecords(10), WithRangeMaxBytes(600))
		defer end()
		for got := 0; got < 100; got += 10 {
			time.Sleep(time.Second) // what can be fetched ahead has been
			ms, err := k.Poll(t.Context())
			require.NoError(t, err)
			requireValues(t, ms, got)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Len(t, asked, 2, "the third was asked, for want of the second")
	})
}
