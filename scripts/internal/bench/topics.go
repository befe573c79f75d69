package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eastguard/eastguard/sdk"
)

// inParallel is how many requests of a bulk are under way at once.
const inParallel = 64

// fillTopics creates topics with numbers from up to to, and writes one record into each.
func (b *broker) fillTopics(from, to int) error {
	if err := b.createTopics(from, to); err != nil {
		return err
	}
	producer, err := b.client.NewProducer("")
	if err != nil {
		return err
	}
	g, ctx := bulk()
	for i := from; i < to; i++ {
		g.Go(func() error {
			_, err := producer.Send(ctx, sdk.Record{Topic: topicName(i), Value: []byte("a record")})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return producer.Close(context.Background())
}

func (b *broker) createTopics(from, to int) error {
	g, _ := bulk()
	for i := from; i < to; i++ {
		g.Go(func() error { return b.createTopic(topicName(i)) })
	}
	return g.Wait()
}

func topicName(i int) string { return fmt.Sprintf("topic-%05d", i) }

func bulk() (*errgroup.Group, context.Context) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	context.AfterFunc(ctx, cancel)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inParallel)
	return g, ctx
}
