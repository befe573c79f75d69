package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// What a topic and its ranges take is told in lists and descriptions, over a roll as well.
func TestHowMuchATopicTakes(t *testing.T) {
	t.Parallel()
	n := start(t, vfs.NewMem())
	ref := n.create("orders", base.TopicConfig{})
	n.create("idle", base.TopicConfig{})
	const batches, size = 20, 10_000
	for range batches {
		n.mustProduce(ref, strings.Repeat("x", size))
	}
	told := func() (orders, idle wire.TopicSummary) {
		list := must[wire.ListTopicsResponse](n, wire.KindListTopics, wire.ListTopicsRequest{})
		require.Len(t, list.Topics, 2)
		return list.Topics[1], list.Topics[0]
	}
	orders, idle := told()
	require.Equal(t, "orders", orders.Name)
	require.Zero(t, idle.InBytesPerSec)
	// All of it came a moment ago, which counts as a fifth of it a second, and less the longer ago it is.
	require.Positive(t, orders.InBytesPerSec)
	require.LessOrEqual(t, orders.InBytesPerSec, int64(batches*(size+200)/5))
	require.Positive(t, orders.InRecordsPerSec)
	require.LessOrEqual(t, orders.InRecordsPerSec, int64(batches/5))

	d := must[wire.DescribeTopicResponse](n, wire.KindDescribeTopic, wire.DescribeTopicRequest{Name: "orders"})
	require.Positive(t, d.Topic.Ranges[0].InBytesPerSec)
}
