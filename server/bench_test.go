package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// benchNode runs a broker in a temporary directory on the machine's disk.
func benchNode(b *testing.B) *node {
	dir := b.TempDir()
	cfg := testConfig()
	cfg.DataDir, cfg.MetaDir, cfg.CacheBudgetBytes = dir+"/data", dir+"/meta", config.Default().CacheBudgetBytes
	s, err := New(cfg, Deps{FS: vfs.OS})
	require.NoError(b, err)
	require.NoError(b, s.Start(b.Context()))
	b.Cleanup(func() { _ = s.Close() })
	c, err := mux.Dial(b.Context(), s.Addr(), mux.ClientOptions{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	return &node{Server: s, conn: c}
}

func benchTopic(b *testing.B, n *node) base.RangeRef {
	resp, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: "bench"})
	require.NoError(b, err)
	return base.RangeRef{Topic: resp.Topic.Summary.ID, Range: 1}
}

func benchBatch(b *testing.B, records, size int) []byte {
	builder := record.NewBuilder(header.None, 0)
	value := make([]byte, size)
	for range records {
		builder.Append(record.Record{Value: value, TimestampMs: 1})
	}
	batch, err := builder.Build(nil, header.NoProducer, -1, -1)
	require.NoError(b, err)
	return batch
}

// BenchmarkProduce is the broker's whole write path, over a socket, with every ack fsynced. Allocations are those of
// client and broker together, per batch.
func BenchmarkProduce(b *testing.B) {
	for _, bc := range []struct {
		name                string
		records, size, deep int
	}{
		{"one record at a time", 1, 1024, 1},
		{"batches of 1000 x 1 KiB", 1000, 1024, 16},
		{"batches of 1000 x 100 B", 1000, 100, 16},
		{"batches of 1 x 100 KB", 1, 100_000, 16},
	} {
		b.Run(bc.name, func(b *testing.B) {
			n := benchNode(b)
			ref := benchTopic(b, n)
			batch := benchBatch(b, bc.records, bc.size)
			req := wire.Encode(wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0)})
			slots := make(chan struct{}, bc.deep)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				slots <- struct{}{}
				_, err := n.conn.Go(wire.KindProduce, req, [][]byte{batch}, func(_ mux.Response, err error) {
					if err != nil {
						b.Error(err)
					}
					<-slots
				})
				require.NoError(b, err)
			}
			for range bc.deep {
				slots <- struct{}{}
			}
			b.ReportMetric(float64(b.N*bc.records)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkFetch reads a range of 256 MiB from its beginning, again and again: most of it comes from segment files.
func BenchmarkFetch(b *testing.B) {
	for _, bc := range []struct {
		name  string
		cache int
	}{{"from the tail", 64}, {"from files", 512}} {
		b.Run(bc.name, func(b *testing.B) {
			n := benchNode(b)
			ref := benchTopic(b, n)
			batch := benchBatch(b, 1000, 1024)
			req := wire.Encode(wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0)})
			for range bc.cache { // MiB written, against a tail cache of 128
				_, err := n.conn.Call(b.Context(), wire.KindProduce, req, [][]byte{batch})
				require.NoError(b, err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			var bytes, at int64
			for b.Loop() {
				a, payload, err := call[wire.FetchResponse](n, wire.KindFetch, wire.FetchRequest{
					MaxBytes: 4 << 20, Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, Offset: at, MaxBytes: 4 << 20}},
				})
				require.NoError(b, err)
				bytes += int64(len(payload))
				if at = a.Ranges[0].Next; at >= a.Ranges[0].Commit || at >= 128_000 {
					at = 0 // stay in the part that has left memory
				}
			}
			b.SetBytes(bytes / int64(b.N))
		})
	}
}
