package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/sdk"
)

// stream is one topic that one producer writes numbered records to.
type stream struct {
	c      *Cluster
	topic  string
	client *sdk.Client

	mu    sync.Mutex
	acked map[int64]sdk.Ack // by the record's number
	sent  int64
}

// produce makes the topic and writes to it until told to stop.
func (s *stream) produce(stopped <-chan struct{}, rng *rand.Rand) {
	if !s.create(stopped) {
		return
	}
	p, err := s.client.NewProducer(s.topic, sdk.WithLinger(0), sdk.WithDeliveryTimeout(operationWithin))
	if err != nil {
		s.c.T.Errorf("make producer: %v", err)
		return
	}
	for n := int64(0); history.Pause(stopped, time.Duration(rng.Int64N(int64(400*time.Millisecond)))); n++ {
		s.mu.Lock()
		s.sent = n + 1
		s.mu.Unlock()
		err := p.SendAsync(sdk.Record{Key: []byte{byte(n % 3)}, Value: binary.BigEndian.AppendUint64(nil, uint64(n))}, func(ack sdk.Ack, err error) {
			s.hear(n, ack, err)
		})
		if err != nil {
			s.hear(n, sdk.Ack{}, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*operationWithin)
	defer cancel()
	_ = p.Close(ctx) // what it could not send was told to the callbacks
}

func (s *stream) create(stopped <-chan struct{}) bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
		_, err := s.client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: s.topic, Config: sdk.TopicConfig{ReplicationFactor: 1}, Ranges: 2})
		cancel()
		if err == nil || sdk.CodeOf(err) == base.CodeTopicExists {
			return true
		}
		s.c.Trace.Logf("client", "create %s: %v", s.topic, err)
		if !history.Pause(stopped, time.Second) {
			return false
		}
	}
}

func (s *stream) hear(n int64, ack sdk.Ack, err error) {
	if err != nil {
		s.c.Trace.Logf("client", "%s: record %d: %v", s.topic, n, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acked == nil {
		s.acked = make(map[int64]sdk.Ack)
	}
	s.acked[n] = ack
}

// verify reads the topic from its beginning to its end: every record acknowledged is there once, at the offset of its
// ack; records of one key come in the order in which they were sent; offsets are dense.
func (s *stream) verify() error {
	if s.sent == 0 {
		return nil
	}
	consumer, err := s.client.NewConsumer(sdk.WithTopics(s.topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()))
	if err != nil {
		return fmt.Errorf("read %s: %w", s.topic, err)
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found := make(map[int64]bool)
	last := make(map[byte]int64)
	ends := make(map[sdk.RangeID]int64)
	for m, err := range consumer.Records(ctx) {
		if err != nil {
			return fmt.Errorf("read %s, up to %v so far: %w (%v)\n%s", s.topic, ends, err, consumer.LastError(), s.describe())
		}
		n, key := int64(binary.BigEndian.Uint64(m.Value)), m.Key[0]
		if ack, ok := s.acked[n]; ok && (ack.Range != m.Range || ack.Offset != m.Offset) {
			return fmt.Errorf("%s: record %d was acknowledged as %v, and is read at %v", s.topic, n, ack.Position, m.Position())
		}
		if m.Offset != ends[m.Range] {
			return fmt.Errorf("%s: range %d has offset %d where %d follows", s.topic, m.Range, m.Offset, ends[m.Range])
		}
		if before, ok := last[key]; found[n] || ok && before > n {
			return fmt.Errorf("%s: record %d comes after record %d of the same key", s.topic, n, before)
		}
		ends[m.Range]++
		found[n], last[key] = true, n
	}
	for n, ack := range s.acked {
		if !found[n] {
			return fmt.Errorf("%s: record %d was acknowledged as %v, and is lost", s.topic, n, ack.Position)
		}
	}
	s.c.Trace.Logf("client", "%s: %d records sent, %d acknowledged, %d read", s.topic, s.sent, len(s.acked), len(found))
	return nil
}

// describe is the topic as the cluster has it, for people.
func (s *stream) describe() string {
	ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
	defer cancel()
	d, err := s.client.Admin().DescribeTopic(ctx, s.topic)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range d.Ranges {
		fmt.Fprintf(&b, "range %d %v\n", r.ID, r.State)
		for _, g := range r.Segments {
			fmt.Fprintf(&b, "  %+v\n", g)
		}
	}
	return b.String()
}
