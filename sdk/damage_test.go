package sdk

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/wire"
)

// damagedFrom damages offset 50 on the nodes that are named, as the broker sees it or as the reader does.
func damagedFrom(c *fakeCluster, found bool, damaged func(base.NodeID) bool) {
	if found {
		c.spoil = func(b *fakeBroker, q wire.FetchRange) base.Code {
			if q.Offset == 50 && damaged(b.node) {
				return base.CodeCorruptData
			}
			return base.CodeOK
		}
		return
	}
	c.garble = func(b *fakeBroker, batch []byte) []byte {
		if h, err := header.Parse(batch); !damaged(b.node) || err != nil || h.BaseOffset != 50 {
			return batch
		}
		batch = bytes.Clone(batch)
		batch[len(batch)-3] ^= 0x10
		return batch
	}
}

// found are the two ways to meet damage: the broker says so, or what it sent does not hold together.
var found = map[string]bool{"the broker finds it": true, "the reader finds it": false}

// A reader goes on asking while a copy may be whole, though that is away, and says what it waits for. It goes on when the
// copy is there.
func TestConsumerWaitsForACopyThatMayBeWhole(t *testing.T) {
	for name, byBroker := range found {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				replicated(c)
				fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
				damagedFrom(c, byBroker, func(n base.NodeID) bool { return n != "n3" })
				c.stop("n3")
				k, end := reader(t, c, 1, WithRangeMaxBytes(1))
				defer end()
				requireValues(t, collect(t, k, 50), 0)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				_, err := k.Poll(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				err = k.LastError()
				require.ErrorIs(t, err, CodeCorruptData)
				require.ErrorContains(t, err, "damaged here, on n1, n2; waiting for n3")
				require.NotEmpty(t, hintOf(err))
				asked := askedFetch(c)
				require.Less(t, asked["n1"]+asked["n2"], 10*600, "it waits between rounds, of which each may fetch a little ahead")

				c.start("n3")
				began := time.Now()
				requireValues(t, collect(t, k, 50), 50)
				require.Less(t, time.Since(began), time.Minute)
				time.Sleep(10 * time.Second)
				require.NoError(t, k.LastError())
			})
		})
	}
}

// Only where all copies are known to be damaged the range fails, also when the last of them is seen much later.
func TestConsumerFailsWhenAllCopiesAreDamaged(t *testing.T) {
	for name, byBroker := range found {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, cl *Client) {
				replicated(c)
				fill(t, cl, "orders", 0, 100, WithMaxBatchRecords(10))
				damagedFrom(c, byBroker, func(base.NodeID) bool { return true })
				c.stop("n3")
				k, end := reader(t, c, 1, WithRangeMaxBytes(1))
				defer end()
				requireValues(t, collect(t, k, 50), 0)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := k.Poll(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				c.start("n3")
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = k.Poll(ctx)
				require.ErrorIs(t, err, CodeCorruptData)
				require.ErrorContains(t, err, "all copies are damaged here, on n1, n2, n3")
				require.NoError(t, k.Seek(Position{"orders", 1, 60}))
				requireValues(t, collect(t, k, 40), 60)
			})
		})
	}
}
