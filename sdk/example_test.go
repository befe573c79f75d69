package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

// exampleTB lets the examples use sdktest, which wants a test. Yours passes its *testing.T.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (tb *exampleTB) Helper()                           {}
func (tb *exampleTB) Logf(string, ...any)               {}
func (tb *exampleTB) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (tb *exampleTB) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (tb *exampleTB) Cleanup(f func())                  { tb.cleanups = append(tb.cleanups, f) }
func (tb *exampleTB) Context() context.Context          { return context.Background() }

func (tb *exampleTB) end() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}

// exampleBroker starts a broker with the topic orders; seeds is its address.
func exampleBroker() (seeds string, stop func()) {
	tb := &exampleTB{}
	return sdktest.Start(tb, sdktest.WithTopic("orders", 1)).Addr(), tb.end
}

// Send one record and read it back.
func Example() {
	seeds, stop := exampleBroker()
	defer stop()
	ctx := context.Background()

	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	producer, err := client.NewProducer("orders")
	if err != nil {
		log.Fatal(err)
	}
	ack, err := producer.Send(ctx, sdk.Record{Key: []byte("user123"), Value: []byte("Hello EastGuard!")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored at", ack.Position)

	consumer, err := client.NewConsumer(sdk.WithTopics("orders"), sdk.WithStop(sdk.StopAtEnd()))
	if err != nil {
		log.Fatal(err)
	}
	for message, err := range consumer.Records(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", message.Key, message.Value)
	}
	// Output:
	// stored at orders/r1@0
	// user123: Hello EastGuard!
}

// Send many records without waiting for each. The callbacks of one range come in the order of its records.
func ExampleProducer_SendAsync() {
	seeds, stop := exampleBroker()
	defer stop()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	producer, err := client.NewProducer("orders", sdk.WithCompression(sdk.CompressionLZ4))
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		record := sdk.Record{Key: []byte("user123"), Value: fmt.Appendf(nil, "event %d", i)}
		err := producer.SendAsync(record, func(ack sdk.Ack, err error) {
			if err != nil {
				fmt.Println("lost:", err, "outcome:", sdk.OutcomeOf(err))
				return
			}
			fmt.Println("stored at", ack.Position)
		})
		if err != nil {
			log.Fatal(err) // not taken: its callback will not come
		}
	}
	if err := producer.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("acked:", producer.Stats().Acked)
	// Output:
	// stored at orders/r1@0
	// stored at orders/r1@1
	// stored at orders/r1@2
	// acked: 3
}

// Read in batches, from a position that was kept from an earlier run.
func ExampleConsumer_Poll() {
	seeds, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	producer, err := client.NewProducer("orders")
	if err != nil {
		log.Fatal(err)
	}
	for i := range 5 {
		if err := producer.SendAsync(sdk.Record{Value: fmt.Appendf(nil, "event %d", i)}, nil); err != nil {
			log.Fatal(err)
		}
	}
	if err := producer.Flush(ctx); err != nil {
		log.Fatal(err)
	}

	kept := sdk.Position{Topic: "orders", Range: 1, Offset: 3}
	consumer, err := client.NewConsumer(sdk.WithTopics("orders"), sdk.WithStart(sdk.AtPositions(kept)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	messages, err := consumer.Poll(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i := range messages {
		fmt.Printf("%s %s\n", messages[i].Position(), messages[i].Value)
	}
	fmt.Println("go on at", consumer.Positions())
	// Output:
	// orders/r1@3 event 3
	// orders/r1@4 event 4
	// go on at [orders/r1@5]
}

// Make a topic. Errors carry a code, which errors.Is finds.
func ExampleAdmin_CreateTopic() {
	seeds, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	created, err := client.Admin().CreateTopic(ctx, sdk.CreateTopic{
		Name: "payments", Ranges: 4, Config: sdk.TopicConfig{Retention: 7 * 24 * time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.Topic.Summary.Name, created.Topic.Summary.Ranges, "ranges")

	_, err = client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: "payments"})
	fmt.Println(errors.Is(err, sdk.CodeTopicExists))
	// Output:
	// payments 4 ranges
	// true
}

// See every node of the cluster, and which metadata shards it leads.
func ExampleAdmin_ListNodes() {
	seeds, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	nodes, err := client.Admin().ListNodes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	shards, err := client.Admin().ListShards(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range nodes.Nodes {
		led := 0
		for _, s := range shards.Shards {
			if s.Leader == n.ID {
				led++
			}
		}
		fmt.Println(n.ID, n.State, "leads", led == len(shards.Shards))
	}
	// A node that did not answer for itself is shown as the others last heard of it.
	fmt.Println(len(nodes.Missing), "missing")
	// Output:
	// n1 alive leads true
	// 0 missing
}

// Find out where records with a key go.
func ExampleAdmin_RouteKey() {
	seeds, stop := exampleBroker()
	defer stop()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	route, err := client.Admin().RouteKey(context.Background(), "orders", []byte("user123"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%#x lies in %s, which %s leads\n", route.Hash, route.Range, route.Replicas[0].ID)
	// Output:
	// 0x3249750a3ec41201 lies in r1, which n1 leads
}

// Follow what happens in the whole cluster. Leaving the loop ends the watch.
func ExampleClient_Watch() {
	seeds, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := sdk.NewClient(sdk.WithSeeds(seeds))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for ev, err := range client.Watch(ctx, sdk.WatchOptions{}) {
		switch {
		case err != nil:
			log.Fatal(err)
		case ev.Gap != nil && ev.Gap.Err != nil:
			log.Printf("%s cannot be reached: %v", ev.Node, ev.Gap.Err)
		case ev.Event != nil && ev.Event.Type == "TOPIC_CREATED":
			fmt.Println(ev.Event.Type, ev.Event.Subject)
			return
		}
	}
	// Output:
	// TOPIC_CREATED orders
}
