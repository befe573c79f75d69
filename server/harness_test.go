package server

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// memberlist's goroutines cannot be waited for; they end by themselves a few seconds after the node's.
//
// Clusters wait for most of their time: more of them run side by side than there are cores, unless -parallel says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).triggerFunc"))
}

// testConfig is a broker on a free port with a few shards, so that a start takes milliseconds.
func testConfig() config.Config {
	cfg := config.Default()
	cfg.Host, cfg.AdvertiseHost = "127.0.0.1", "127.0.0.1"
	cfg.ClientPort, cfg.ClusterPort, cfg.DataPort, cfg.AdminPort = 0, 0, 0, 0
	cfg.DataDir, cfg.MetaDir, cfg.NodeID = "/data", "/meta", "n1"
	cfg.Shards, cfg.ReserveBytes = 4, 0
	cfg.CacheBudgetBytes = 8 << 20
	return cfg
}

// node is a running broker of a test and one connection to it.
type node struct {
	*Server
	t    *testing.T
	fs   vfs.FS
	cfg  config.Config
	conn *mux.Conn
}

func start(t *testing.T, fs vfs.FS, edit ...func(*config.Config)) *node {
	t.Helper()
	cfg := testConfig()
	for _, e := range edit {
		e(&cfg)
	}
	n := &node{t: t, fs: fs, cfg: cfg}
	n.boot()
	t.Cleanup(n.stop)
	return n
}

func (n *node) boot() {
	n.t.Helper()
	s, err := New(n.cfg, Deps{FS: n.fs, Logger: testLogger(n.t), Version: "test"})
	require.NoError(n.t, err)
	require.NoError(n.t, s.Start(n.t.Context()))
	n.Server = s
	n.conn = n.dial()
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil { // after the test nobody reads it
		w.t.Log(string(b))
	}
	return len(b), nil
}

func (n *node) dial() *mux.Conn {
	n.t.Helper()
	c, err := mux.Dial(n.t.Context(), n.Addr(), mux.ClientOptions{Hello: wire.HelloRequest{ClientName: "test"}})
	require.NoError(n.t, err)
	return c
}

func (n *node) stop() {
	if n.conn != nil {
		_ = n.conn.Close()
	}
	if err := n.Server.Close(); err != nil {
		n.t.Errorf("close: %v", err)
	}
}

// restart stops the broker gracefully and starts it on the same disk.
func (n *node) restart() {
	n.t.Helper()
	n.stop()
	n.boot()
}

// crash starts another broker on what a power failure would have left of the disk, and stops this one.
func (n *node) crash(mem *vfs.Mem) {
	n.t.Helper()
	left := mem.CrashClone(rand.New(rand.NewSource(1)), 0.5)
	n.stop()
	n.fs = left
	n.boot()
}

// patience is how long a test waits for what must come. It says nothing of the product's speed: a machine that does many
// things at once, or one under the race detector, may take that long.
const patience = 2 * time.Minute

// call sends a request and decodes its answer.
func call[A any](n *node, kind wire.Kind, req any, payload ...[]byte) (A, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var a A
	resp, err := n.conn.Call(ctx, kind, wire.Encode(req), payload)
	if err != nil {
		return a, nil, err
	}
	err = wire.Decode(resp.Message, &a)
	return a, resp.Payload, err
}

// must gets an answer. As a client does, it asks again where the cluster says that the same request may succeed later: a
// shard may look for a leader at any time.
func must[A any](n *node, kind wire.Kind, req any, payload ...[]byte) A {
	n.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		a, _, err := call[A](n, kind, req, payload...)
		if err != nil && base.CodeOf(err).Info().Retryable && time.Since(began) < patience {
			continue
		}
		require.NoError(n.t, err)
		return a
	}
}

var requestSeq atomic.Uint32

func requestID() (id base.RequestID) {
	binary.BigEndian.PutUint32(id[:], requestSeq.Add(1))
	return id
}

func (n *node) create(name string, c base.TopicConfig) base.RangeRef {
	n.t.Helper()
	resp := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: name, Config: c})
	return base.RangeRef{Topic: resp.Topic.Summary.ID, Range: resp.Topic.Ranges[0].ID}
}

// makeBatch builds a batch of values.
func makeBatch(t testing.TB, producer int64, seq int32, values ...string) []byte {
	b := record.NewBuilder(header.None, 0)
	for _, v := range values {
		b.Append(record.Record{Key: []byte("k"), Value: []byte(v), TimestampMs: time.Now().UnixMilli()})
	}
	out, err := b.Build(nil, producer, 0, seq)
	require.NoError(t, err)
	return out
}

func (n *node) produce(ref base.RangeRef, batch []byte) (wire.ProduceResponse, error) {
	a, _, err := call[wire.ProduceResponse](n, wire.KindProduce, wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: 10_000}, batch)
	return a, err
}

func (n *node) mustProduce(ref base.RangeRef, values ...string) int64 {
	n.t.Helper()
	a, err := n.produce(ref, makeBatch(n.t, header.NoProducer, -1, values...))
	require.NoError(n.t, err)
	return a.Base
}

// fetched is one range's answer with its records decoded.
type fetched struct {
	wire.FetchRangeResult
	values  []string
	offsets []int64
}

func (n *node) fetch(ref base.RangeRef, offset int64, wait time.Duration, edit ...func(*wire.FetchRequest)) fetched {
	n.t.Helper()
	req := wire.FetchRequest{
		MaxWaitMs: uint32(wait.Milliseconds()), MinBytes: 1, MaxBytes: 8 << 20,
		Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, Offset: offset, MaxBytes: 8 << 20}},
	}
	for _, e := range edit {
		e(&req)
	}
	a, payload, err := call[wire.FetchResponse](n, wire.KindFetch, req)
	require.NoError(n.t, err)
	parts, err := a.Payloads(payload)
	require.NoError(n.t, err)
	f := fetched{FetchRangeResult: a.Ranges[0]}
	f.decode(n.t, parts[0], offset)
	return f
}

func (f *fetched) decode(t *testing.T, b []byte, from int64) {
	t.Helper()
	r := record.NewReader(64 << 20)
	for len(b) > 0 {
		h, err := header.Parse(b)
		require.NoError(t, err)
		require.NoError(t, r.Reset(b[:h.Size()]))
		for {
			rec, ok := r.Next()
			if !ok {
				break
			}
			if rec.Offset >= from {
				f.values = append(f.values, string(rec.Value))
				f.offsets = append(f.offsets, rec.Offset)
			}
		}
		require.NoError(t, r.Err())
		b = b[h.Size():]
	}
}

// readAll reads a range from an offset until count records are there.
func (n *node) readAll(ref base.RangeRef, from int64, count int) (values []string) {
	n.t.Helper()
	deadline := time.Now().Add(patience)
	var f fetched
	for at := from; len(values) < count; {
		require.True(n.t, time.Now().Before(deadline), "only %d of %d records came, and last %+v", len(values), count, f.FetchRangeResult)
		f = n.fetch(ref, at, time.Second)
		if f.Code == base.CodeBehind { // being recovered
			continue
		}
		require.Equal(n.t, base.CodeOK, f.Code, "at %d: %+v", at, f.FetchRangeResult)
		for i, v := range f.values {
			require.Equal(n.t, at+int64(i), f.offsets[i], "offsets are dense")
			values = append(values, v)
		}
		require.GreaterOrEqual(n.t, f.Next, at)
		at = f.Next
	}
	return values
}

func numbered(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("value %d", i)
	}
	return s
}
