package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// writer is one producer and what it was told.
type writer struct {
	number int
	topic  string
	gaps   *gaps

	mu      sync.Mutex
	acked   []position // by the record's number; offset -1: it was not acked
	failed  int
	lastAck time.Time
}

// position is where a record was acked.
type position struct {
	offset int64
	rang   sdk.RangeID
}

const (
	keys       = 16 // of each writer
	valueBytes = 100
)

// run sends records as fast as they are acked, but for pace, until ctx ends, and waits for what is under way.
func (w *writer) run(ctx context.Context, client *sdk.Client, pace time.Duration) error {
	p, err := client.NewProducer(w.topic, sdk.WithDeliveryTimeout(2*time.Minute), sdk.WithBufferBytes(1<<20), sdk.WithMaxBatchRecords(200))
	if err != nil {
		return err
	}
	w.lastAck = time.Now()
	for n := int64(0); ctx.Err() == nil; n++ {
		w.mu.Lock()
		w.acked = append(w.acked, position{offset: -1})
		w.mu.Unlock()
		if err := p.SendAsync(w.record(n), func(ack sdk.Ack, err error) { w.hear(n, ack, err) }); err != nil {
			w.hear(n, sdk.Ack{}, err)
		}
		if pace > 0 && n%perPace == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
	}
	flush, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return p.Close(flush)
}

// perPace is how many records are sent between two pauses.
const perPace = 100

func (w *writer) record(n int64) sdk.Record {
	value := make([]byte, valueBytes)
	binary.BigEndian.PutUint32(value, uint32(w.number))
	binary.BigEndian.PutUint64(value[4:], uint64(n))
	return sdk.Record{Key: fmt.Appendf(nil, "%d-%d", w.number, n%keys), Value: value}
}

func (w *writer) hear(n int64, ack sdk.Ack, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		w.gaps.failed(w.topic, err)
		return
	}
	w.acked[n] = position{ack.Offset, ack.Range}
	now := time.Now()
	w.gaps.see(w.topic, w.lastAck, now)
	w.lastAck = now
}

// id is a record as it was found.
type id struct {
	writer int
	number int64
}

func idOf(m sdk.Message) (id, error) {
	if len(m.Value) != valueBytes {
		return id{}, fmt.Errorf("a record of %d bytes, which nobody has sent", len(m.Value))
	}
	return id{int(binary.BigEndian.Uint32(m.Value)), int64(binary.BigEndian.Uint64(m.Value[4:]))}, nil
}

// reader reads a topic while it is written, and keeps what it saw.
type reader struct {
	topic string
	seen  map[sdk.RangeID][]id // dense from offset 0
}

// run reads until ctx ends. Only what cannot be mended by trying again is an error.
func (r *reader) run(ctx context.Context, client *sdk.Client) error {
	consumer, err := client.NewConsumer(sdk.WithTopics(r.topic), sdk.WithStart(sdk.Earliest()))
	if err != nil {
		return err
	}
	defer consumer.Close()
	for ctx.Err() == nil {
		messages, err := consumer.Poll(ctx)
		for _, m := range messages {
			if err := r.see(m); err != nil {
				return err
			}
		}
		switch sdk.CodeOf(err) {
		case sdk.CodeOffsetOutOfRange, sdk.CodeCorruptData, sdk.CodeTruncated:
			return fmt.Errorf("read %s: %w", r.topic, err)
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

func (r *reader) see(m sdk.Message) error {
	found, err := idOf(m)
	if err != nil {
		return err
	}
	if next := int64(len(r.seen[m.Range])); m.Offset != next {
		return fmt.Errorf("a reader of %s saw offset %d of range %d where %d follows", r.topic, m.Offset, m.Range, next)
	}
	r.seen[m.Range] = append(r.seen[m.Range], found)
	return nil
}

// readAll reads a topic from its beginning to its end.
func readAll(ctx context.Context, client *sdk.Client, topic string) (*reader, error) {
	r := &reader{topic: topic, seen: make(map[sdk.RangeID][]id)}
	consumer, err := client.NewConsumer(sdk.WithTopics(topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	for m, err := range consumer.Records(ctx) {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", topic, err), consumer.LastError())
		}
		if err := r.see(m); err != nil {
			return nil, err
		}
	}
	return r, nil
}
