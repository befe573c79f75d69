package sdk

import (
	"context"
	"iter"
	"time"
)

type Client struct{ cfg clientConfig }

// NewClient makes a client; it connects when first used.
func NewClient(opts ...ClientOption) (*Client, error) {
	cfg, err := newClientConfig(opts)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg}, nil
}

func (c *Client) Close() error  { panic("unbuilt") }
func (c *Client) Admin() *Admin { panic("unbuilt") }
func (c *Client) NewProducer(topic string, opts ...ProducerOption) (*Producer, error) {
	panic("unbuilt")
}
func (c *Client) NewConsumer(opts ...ConsumerOption) (*Consumer, error) { panic("unbuilt") }

type Producer struct{}

func (p *Producer) Send(ctx context.Context, r Record) (Ack, error) { panic("unbuilt") }
func (p *Producer) SendAsync(r Record, done func(Ack, error)) error { panic("unbuilt") }
func (p *Producer) Flush(ctx context.Context) error                 { panic("unbuilt") }
func (p *Producer) Close(ctx context.Context) error                 { panic("unbuilt") }
func (p *Producer) Stats() ProducerStats                            { panic("unbuilt") }

type ProducerStats struct {
	Records, Bytes, Batches, Retries, Acked, Failed, Unknown uint64
	BufferedBytes                                            int64
}

type Consumer struct{}

func (c *Consumer) Poll(ctx context.Context) ([]Message, error)           { panic("unbuilt") }
func (c *Consumer) Records(ctx context.Context) iter.Seq2[Message, error] { panic("unbuilt") }
func (c *Consumer) Pause(topic string, ranges ...RangeID)                 { panic("unbuilt") }
func (c *Consumer) Resume(topic string, ranges ...RangeID)                { panic("unbuilt") }
func (c *Consumer) Seek(p Position) error                                 { panic("unbuilt") }
func (c *Consumer) Positions() []Position                                 { panic("unbuilt") }
func (c *Consumer) EndOffsets(ctx context.Context) ([]Position, error)    { panic("unbuilt") }
func (c *Consumer) Close() error                                          { panic("unbuilt") }

type OffsetOutOfRangeError struct {
	Position
	Earliest, End int64
}

type Admin struct{}

var _ = time.Second

func (a *Admin) CreateTopic(ctx context.Context, r CreateTopic) (CreatedTopic, error) {
	panic("unbuilt")
}
func (a *Admin) AlterTopic(ctx context.Context, r AlterTopic) (AlteredTopic, error) { panic("unbuilt") }
func (a *Admin) DeleteTopic(ctx context.Context, r DeleteTopic) (DeletedTopic, error) {
	panic("unbuilt")
}
func (a *Admin) ListTopics(ctx context.Context, r ListTopics) (TopicList, error) { panic("unbuilt") }
func (a *Admin) DescribeTopic(ctx context.Context, name string) (TopicDetail, error) {
	panic("unbuilt")
}
func (a *Admin) ClusterStatus(ctx context.Context) (ClusterStatus, error) { panic("unbuilt") }
func (a *Admin) ClusterHealth(ctx context.Context) (ClusterHealth, error) { panic("unbuilt") }

// DescribeNode asks about one node; an empty id means whichever answers.
func (a *Admin) DescribeNode(ctx context.Context, id NodeID) (NodeDetail, error) { panic("unbuilt") }

// Offsets finds a position in each range of a topic: Earliest(), Latest() (the end) or AtTime(t).
func (a *Admin) Offsets(ctx context.Context, topic string, at Start) ([]Position, error) {
	panic("unbuilt")
}
