package feed

import (
	"context"
	"iter"

	"github.com/eastguard/eastguard/sdk"
)

// Client is a cluster as a live feed needs it.
type Client interface {
	Admin() Admin
	Watch(ctx context.Context, opts sdk.WatchOptions) iter.Seq2[sdk.WatchEvent, error]
	Logs(ctx context.Context, opts sdk.LogOptions) iter.Seq2[sdk.LogEvent, error]
	Close() error
}

// Admin is what a live feed asks for.
type Admin interface {
	ListNodes(ctx context.Context) (sdk.NodeList, error)
	ListShards(ctx context.Context) (sdk.ShardList, error)
	ListTopics(ctx context.Context, r sdk.ListTopics) (sdk.TopicList, error)
	DescribeTopic(ctx context.Context, name string) (sdk.TopicDetail, error)
	ListSegments(ctx context.Context, r sdk.ListSegments) (sdk.SegmentList, error)
	ClusterStatus(ctx context.Context) (sdk.ClusterStatus, error)
	ClusterHealth(ctx context.Context) (sdk.ClusterHealth, error)
}

// Of narrows an SDK client to what a feed needs.
func Of(c *sdk.Client) Client { return sdkClient{c} }

type sdkClient struct{ *sdk.Client }

func (s sdkClient) Admin() Admin { return s.Client.Admin() }
