package sdk

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// nullBroker acks every batch unseen and serves one batch for ever: what is measured against it is the client.
type nullBroker struct {
	next  atomic.Int64
	batch []byte // served by fetch, each time at the offset asked for
	size  int32  // records in batch
}

func startNullBroker(b *testing.B) (*nullBroker, *Client) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	n := &nullBroker{}
	srv := mux.NewServer(mux.ServerOptions{Handler: n, Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
		return wire.HelloResponse{Cluster: base.ClusterID{1}, Node: "n1", MaxRecordBytes: 1 << 20, MaxBatchBytes: 16 << 20}, nil
	}})
	go func() { _ = srv.Serve(l) }()
	cl, err := NewClient(WithSeeds(l.Addr().String()))
	require.NoError(b, err)
	b.Cleanup(func() { _ = cl.Close(); _ = srv.Close() })
	return n, cl
}

func (n *nullBroker) Handle(_ context.Context, r *mux.Request) {
	switch r.Kind {
	case wire.KindProduce:
		h, _ := header.Parse(r.Payload)
		base := n.next.Add(int64(h.Records)) - int64(h.Records)
		r.Reply(wire.Encode(&wire.ProduceResponse{Base: base, Segment: 1, Epoch: 1}))
	case wire.KindFetch:
		n.fetch(r)
	case wire.KindListOffsets:
		r.Reply(wire.Encode(wire.ListOffsetsResponse{Offsets: []wire.OffsetAnswer{{Ref: base.RangeRef{Topic: base.TopicID{7}, Range: 1}, Commit: 1 << 60}}}))
	case wire.KindRoute:
		seg := &wire.SegmentRoute{ID: 1, Epoch: 1, State: base.StateActive, Replicas: []base.NodeID{"n1"}}
		r.Reply(wire.Encode(wire.RouteResponse{Topic: wire.TopicRoute{
			ID: base.TopicID{7}, Name: "bench", Version: 1,
			Ranges: []wire.RangeRoute{{ID: 1, Span: keyspace.Full, State: base.StateActive, Active: seg}},
		}}))
	default:
		r.Fail(base.CodeUnknownKind)
	}
}

func (n *nullBroker) fetch(r *mux.Request) {
	var req wire.FetchRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	q := req.Ranges[0]
	payload := make([]byte, 0, q.MaxBytes)
	next := q.Offset
	for len(payload)+len(n.batch) <= int(q.MaxBytes) {
		at := len(payload)
		payload = append(payload, n.batch...)
		header.Patch(payload[at:], next, 1)
		next += int64(n.size)
	}
	resp := wire.FetchResponse{Ranges: []wire.FetchRangeResult{{
		Topic: q.Topic, Range: q.Range, State: wire.FetchActive, Commit: 1 << 60, Next: next, PayloadLen: uint32(len(payload)),
	}}}
	r.Reply(wire.Encode(&resp), vfs.MemPart(payload))
}

// BenchmarkSendAsync is the client alone at full speed. Aim: 1.5 million records of 100 bytes a second, and no
// allocation a record.
func BenchmarkSendAsync(b *testing.B) {
	for name, tc := range map[string]struct {
		size int
		opts []ProducerOption
	}{
		"100B":      {100, nil},
		"100B-lz4":  {100, []ProducerOption{WithCompression(CompressionLZ4)}},
		"1KiB":      {1024, nil},
		"1KiB-zstd": {1024, []ProducerOption{WithCompression(CompressionZstd)}},
	} {
		b.Run(name, func(b *testing.B) {
			_, cl := startNullBroker(b)
			p, err := cl.NewProducer("bench", tc.opts...)
			require.NoError(b, err)
			var acked atomic.Int64
			done := func(_ Ack, err error) {
				if err != nil {
					b.Error(err)
				}
				acked.Add(1)
			}
			r := Record{Key: []byte("key-0001"), Value: make([]byte, tc.size-8)}
			for i := range r.Value {
				r.Value[i] = byte(i * 7)
			}
			_, err = p.Send(b.Context(), r)
			require.NoError(b, err)
			b.SetBytes(int64(tc.size))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := p.SendAsync(r, done); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, p.Flush(b.Context()))
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			require.EqualValues(b, b.N, acked.Load())
		})
	}
}

// BenchmarkSend is one record at a time, no linger: what the client adds to a round trip.
func BenchmarkSend(b *testing.B) {
	_, cl := startNullBroker(b)
	p, err := cl.NewProducer("bench", WithLinger(0))
	require.NoError(b, err)
	r := Record{Key: []byte("key-0001"), Value: make([]byte, 1024)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Send(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSendConcurrent is many goroutines that each wait for their ack.
func BenchmarkSendConcurrent(b *testing.B) {
	_, cl := startNullBroker(b)
	p, err := cl.NewProducer("bench", WithLinger(0))
	require.NoError(b, err)
	r := Record{Key: []byte("key-0001"), Value: make([]byte, 100)}
	b.ReportAllocs()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range b.N / 64 {
				if _, err := p.Send(b.Context(), r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkPoll is fetching and decoding. Aim: 2 million records of 100 bytes a second.
func BenchmarkPoll(b *testing.B) {
	for name, tc := range map[string]struct {
		size, records int
		codec         Compression
	}{
		"100B":      {100, 1000, CompressionNone},
		"100B-lz4":  {100, 1000, CompressionLZ4},
		"1KiB":      {1024, 1000, CompressionNone},
		"1KiB-zstd": {1024, 1000, CompressionZstd},
	} {
		b.Run(name, func(b *testing.B) {
			n, cl := startNullBroker(b)
			bd := record.NewBuilder(tc.codec, 0)
			value := make([]byte, tc.size-8)
			for i := range value {
				value[i] = byte(i * 7)
			}
			for range tc.records {
				bd.Append(record.Record{Key: []byte("key-0001"), Value: value, TimestampMs: time.Now().UnixMilli()})
			}
			var err error
			n.batch, err = bd.Build(nil, -1, -1, 0)
			require.NoError(b, err)
			n.size = int32(tc.records)
			k, err := cl.NewConsumer(WithTopics("bench"), WithRangeMaxBytes(8<<20))
			require.NoError(b, err)
			require.NoError(b, k.Ready(b.Context()))
			b.SetBytes(int64(tc.size))
			b.ReportAllocs()
			b.ResetTimer()
			for got := 0; got < b.N; {
				ms, err := k.Poll(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				got += len(ms)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			require.NoError(b, k.Close())
		})
	}
}
