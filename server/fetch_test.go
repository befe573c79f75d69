package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// What a fetch allocates depends on its ranges and batches, never on the records in them.
func TestFetchAllocatesNothingPerRecord(t *testing.T) {
	n := start(t, vfs.NewMem())
	allocs := func(name string, records int) float64 {
		ref := n.create(name, base.TopicConfig{})
		values := make([]string, records)
		for i := range values {
			values[i] = "v"
		}
		for range 16 {
			n.mustProduce(ref, values...)
		}
		f := &fetch{s: n.Server, req: wire.FetchRequest{MaxBytes: 8 << 20, Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, MaxBytes: 8 << 20}}}}
		return testing.AllocsPerRun(100, func() {
			a := f.read()
			if a.Ranges[0].Next != int64(16*records) {
				t.Fatal("not all read")
			}
		})
	}
	one, many := allocs("one", 1), allocs("many", 1000)
	require.InDelta(t, one, many, 1)
	require.LessOrEqual(t, one, 32.0)
}

func TestManyRangesInOneFetch(t *testing.T) {
	n := start(t, vfs.NewMem())
	var req wire.FetchRequest
	for _, name := range []string{"a", "b", "c"} {
		ref := n.create(name, base.TopicConfig{})
		n.mustProduce(ref, name)
		req.Ranges = append(req.Ranges, wire.FetchRange{Topic: ref.Topic, Range: ref.Range, MaxBytes: 1 << 20})
	}
	req.Ranges = append(req.Ranges, wire.FetchRange{Topic: base.TopicID{9}, Range: 1, MaxBytes: 1 << 20})
	req.MaxBytes, req.MinBytes = 1<<20, 1
	a, payload, err := call[wire.FetchResponse](n, wire.KindFetch, req)
	require.NoError(t, err)
	parts, err := a.Payloads(payload)
	require.NoError(t, err)
	for i := range 3 {
		h, err := header.Check(parts[i], 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, h.Records)
	}
	require.Equal(t, base.CodeNotReplica, a.Ranges[3].Code, "one range's error is its own")
	require.Empty(t, parts[3])
	require.EqualValues(t, 3, n.rates.outRecords.Value())

	// One range that is worth an answer does not wait for the others.
	for i := range 3 {
		req.Ranges[i].Offset = 1
	}
	req.MaxWaitMs = 15_000
	a, _, err = call[wire.FetchResponse](n, wire.KindFetch, req)
	require.NoError(t, err)
	require.Equal(t, base.CodeNotReplica, a.Ranges[3].Code)
}

func TestFetchOfNothing(t *testing.T) {
	n := start(t, vfs.NewMem())
	a, payload, err := call[wire.FetchResponse](n, wire.KindFetch, wire.FetchRequest{MinBytes: 1, MaxBytes: 1, MaxWaitMs: 50})
	require.NoError(t, err)
	require.Empty(t, a.Ranges)
	require.Empty(t, payload)
}

func TestSpanSkipsBatchesOutside(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	for i := range 8 {
		lo := uint64(i) << 60
		b := makeBatch(t, header.NoProducer, -1, strings.Repeat("x", 8_000))
		_, _, err := call[wire.ProduceResponse](n, wire.KindProduce, wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanLo: lo, SpanHi: lo}, b)
		require.NoError(t, err)
	}
	f := n.fetch(ref, 0, 0, func(r *wire.FetchRequest) { r.Ranges[0].Span.Start, r.Ranges[0].Span.End = 3<<60, 4<<60 })
	require.EqualValues(t, 8, f.Next, "what was left out is behind the reader")
	require.Less(t, len(f.values), 8)
	require.NotEmpty(t, f.values)
}
