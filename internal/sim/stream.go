package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/sdk"
)

// StreamOptions say how topics are written and read.
type StreamOptions struct {
	Topics       int
	Ranges       int           // of each topic; 2
	Factor       int           // 1
	Writers      int           // of each topic, one producer each; 1
	Readers      int           // of each topic, all the time, every other one from one node alone; 0
	Every        time.Duration // between two sends of a writer, on average; 200 ms
	Burst        int           // records a send, at most; 1
	ValueBytes   int           // at most; 32
	SegmentBytes int64         // at which segments roll; 0: the cluster's
}

// stream is one topic that producers write numbered records to. What becomes of them is written down in the book.
type stream struct {
	c      *Cluster
	o      StreamOptions
	topic  string
	id     atomic.Pointer[base.TopicID] // once it is made
	client *sdk.Client
	sent   atomic.Int64
	acked  atomic.Int64
}

// make makes the topic and learns its id; false when it was told to stop before.
func (s *stream) make(stopped <-chan struct{}) bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
		_, err := s.client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: s.topic, Ranges: s.o.Ranges, Config: sdk.TopicConfig{
			ReplicationFactor: s.o.Factor, SegmentBytes: s.o.SegmentBytes,
		}})
		if err == nil || sdk.CodeOf(err) == base.CodeTopicExists {
			var found sdk.TopicDetail
			if found, err = s.client.Admin().DescribeTopic(ctx, s.topic); err == nil {
				s.id.Store(&found.Summary.ID)
			}
		}
		cancel()
		if err == nil {
			return true
		}
		s.c.Trace.Logf("client", "make %s: %v", s.topic, err)
		if !history.Pause(stopped, time.Second) {
			return false
		}
	}
}

// deliverWithin are the limits of the writers' patience, in turn: with the short one outcomes are unknown now and then,
// with the long one retries outlive most faults.
var deliverWithin = [...]time.Duration{operationWithin, time.Minute}

// enough is how many records a writer sends at its own pace. From then on it is slow, or a run would hold gigabytes.
const enough = 3000

// write sends records until told to stop, slowly once they are enough.
func (s *stream) write(stopped <-chan struct{}, writer int, rng *rand.Rand) {
	s.writeEvery(s.o.Every, stopped, writer, rng)
}

// writeEvery is write at another pace than the stream's.
func (s *stream) writeEvery(every time.Duration, stopped <-chan struct{}, writer int, rng *rand.Rand) {
	p, err := s.client.NewProducer(s.topic, sdk.WithLinger(0), sdk.WithDeliveryTimeout(deliverWithin[writer%len(deliverWithin)]))
	if err != nil {
		s.c.T.Errorf("make producer: %v", err)
		return
	}
	for n := int64(0); history.Pause(stopped, time.Duration(rng.Int64N(int64(2*every)))); {
		burst := s.o.Burst
		if n > enough {
			burst = 1
			history.Pause(stopped, 10*every)
		}
		for range 1 + rng.IntN(burst) {
			s.send(p, ledger.ID{Producer: uint32(writer), Number: n}, rng)
			n++
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_ = p.Close(ctx) // what it could not send was told to the callbacks
}

// keys is how many keys a writer has.
const keys = 3

func (s *stream) send(p *sdk.Producer, id ledger.ID, rng *rand.Rand) {
	value := binary.BigEndian.AppendUint32(nil, id.Producer)
	value = binary.BigEndian.AppendUint64(value, uint64(id.Number))
	value = append(value, make([]byte, rng.IntN(s.o.ValueBytes))...)
	rec := sdk.Record{Key: fmt.Appendf(nil, "k%d", id.Number%keys), Value: value}
	sent, called := known(rec.Key, rec.Value), s.c.now()
	s.sent.Add(1)
	hear := func(ack sdk.Ack, err error) {
		if err != nil {
			s.c.Trace.Logf("client", "%s: record %v: %v", s.topic, id, err)
			return
		}
		s.acked.Add(1)
		s.c.Book.Ack(ledger.Ack{Record: sent, Place: s.place(ack.Position), Segment: ack.Segment, Call: called, Return: s.c.now()})
	}
	if err := p.SendAsync(rec, hear); err != nil {
		hear(sdk.Ack{}, err)
	}
}

// known is a record as the ledger has it.
func known(key, value []byte) ledger.Record {
	sum := fnv.New64a()
	_, _ = sum.Write(key)
	_, _ = sum.Write(value)
	r := ledger.Record{Key: string(key), Sum: sum.Sum64()}
	if len(value) >= 12 {
		r.Producer, r.Number = binary.BigEndian.Uint32(value), int64(binary.BigEndian.Uint64(value[4:]))
	}
	return r
}

func (s *stream) place(p sdk.Position) ledger.Place {
	return ledger.Place{Ref: base.RangeRef{Topic: *s.id.Load(), Range: p.Range}, Offset: p.Offset}
}

func (s *stream) seen(reader string, m sdk.Message) ledger.Read {
	return ledger.Read{Reader: reader, Record: known(m.Key, m.Value), Place: s.place(m.Position()), Epoch: m.LeaderEpoch, At: s.c.now()}
}

// read reads from the beginning on until told to stop.
func (s *stream) read(stopped <-chan struct{}, reader string, client *sdk.Client, from sdk.ReadFrom) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.c.ended.Go(func() {
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	})
	consumer, err := client.NewConsumer(sdk.WithTopics(s.topic), sdk.WithStart(sdk.Earliest()), sdk.WithReadFrom(from))
	if err != nil {
		s.c.T.Errorf("make consumer: %v", err)
		return
	}
	defer consumer.Close()
	for ctx.Err() == nil {
		messages, err := consumer.Poll(ctx)
		for _, m := range messages {
			s.c.Book.Read(s.seen(reader, m))
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case sdk.CodeOf(err) == base.CodeOffsetOutOfRange || sdk.CodeOf(err) == base.CodeCorruptData || sdk.CodeOf(err) == base.CodeTruncated:
			s.c.Trace.Logf("client", "FAILED: %s reads %s: %v", reader, s.topic, err)
			s.c.T.Errorf("%s reads %s: %v", reader, s.topic, err)
			return
		default:
			s.c.Trace.Logf("client", "%s reads %s: %v", reader, s.topic, err)
			history.Pause(stopped, time.Second)
		}
	}
}

// passes reads the topic once from whatever replicas serve it, and once from each node, what that one holds.
func (s *stream) passes() error {
	if s.id.Load() == nil {
		return nil
	}
	if err := s.pass("at the end", sdk.ReadNearest()); err != nil {
		return err
	}
	for _, n := range s.c.Running() {
		if n.harmed {
			continue // who insists on a damaged copy is told that it is one; one that is gone is nobody's
		}
		if err := s.pass("at "+n.Name, sdk.ReadNode(base.NodeID(n.Name))); err != nil {
			return err
		}
	}
	return nil
}

// pass reads the topic from its beginning to its end, once nothing is wrong with the cluster any more.
func (s *stream) pass(reader string, from sdk.ReadFrom) error {
	consumer, err := s.client.NewConsumer(sdk.WithTopics(s.topic), sdk.WithStart(sdk.Earliest()), sdk.WithStop(sdk.StopAtEnd()), sdk.WithReadFrom(from))
	if err != nil {
		return fmt.Errorf("read %s: %w", s.topic, err)
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pass := ledger.Pass{Reader: reader}
	for m, err := range consumer.Records(ctx) {
		if err != nil {
			return fmt.Errorf("read %s %s, %d records so far, up to %v: %w (%v)\n%s", s.topic, reader, len(pass.Reads), consumer.Positions(), err, consumer.LastError(), s.describe())
		}
		pass.Reads = append(pass.Reads, s.seen(pass.Reader, m))
	}
	if len(pass.Reads) > 0 {
		s.c.Book.Change(func(h *ledger.History) { h.Passes = append(h.Passes, pass) })
	} else if s.acked.Load() > 0 {
		return fmt.Errorf("%s reads as empty, and %d records were acknowledged", s.topic, s.acked.Load())
	}
	s.c.Trace.Logf("client", "%s %s: %d records sent, %d acknowledged, %d read", s.topic, reader, s.sent.Load(), s.acked.Load(), len(pass.Reads))
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

// streamed lists the topics of all streams that were made.
func (c *Cluster) streamed() []base.TopicID {
	var ids []base.TopicID
	for _, l := range c.loads {
		for _, s := range l.streams {
			if id := s.id.Load(); id != nil && !slices.Contains(ids, *id) {
				ids = append(ids, *id)
			}
		}
	}
	return ids
}
