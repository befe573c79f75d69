package mux

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// BenchmarkRoundTrip is the latency of one request at a time over the loopback.
func BenchmarkRoundTrip(b *testing.B) {
	_, c := overTCP(b, options(HandlerFunc(echo)), ClientOptions{})
	msg := make([]byte, 44)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(context.Background(), wire.KindPing, msg, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRoundTripOtherGoroutine is the same when the answer comes from a goroutine that is not the reader, as an
// ack does.
func BenchmarkRoundTripOtherGoroutine(b *testing.B) {
	k := newKept()
	_, c := overTCP(b, options(k), ClientOptions{})
	go func() {
		for r := range k.requests {
			r.Reply(r.Message)
		}
	}()
	b.Cleanup(func() { close(k.requests) })
	msg := make([]byte, 44)
	for b.Loop() {
		if _, err := c.Call(context.Background(), wire.KindPing, msg, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInFlight64 is the throughput of requests with 64 in flight: bare, and with a record of 1 KiB each.
func BenchmarkInFlight64(b *testing.B) {
	b.Run("bare", func(b *testing.B) { inFlight64(b, nil) })
	b.Run("1KiB", func(b *testing.B) { inFlight64(b, [][]byte{make([]byte, 1<<10)}) })
}

func inFlight64(b *testing.B, payload [][]byte) {
	_, c := overTCP(b, options(HandlerFunc(func(_ context.Context, r *Request) { r.Reply(r.Message) })), ClientOptions{})
	msg := make([]byte, 44)
	slots := make(chan struct{}, 64)
	b.ReportAllocs()
	for b.Loop() {
		slots <- struct{}{}
		_, err := c.Go(wire.KindPing, msg, payload, func(_ Response, err error) {
			if err != nil {
				b.Error(err)
			}
			<-slots
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// BenchmarkPayload1MiB sends 1 MiB to the server, five requests in flight as a producer has them.
func BenchmarkPayload1MiB(b *testing.B) {
	_, c := overTCP(b, options(HandlerFunc(func(_ context.Context, r *Request) { r.Reply(nil) })), ClientOptions{})
	payload := make([]byte, 1<<20)
	b.SetBytes(int64(len(payload)))
	slots := make(chan struct{}, 5)
	for b.Loop() {
		slots <- struct{}{}
		_, err := c.Go(wire.KindProduce, make([]byte, 44), [][]byte{payload}, func(Response, error) { <-slots })
		require.NoError(b, err)
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// BenchmarkAnswer1MiB gets 1 MiB from the server's memory, one request at a time.
func BenchmarkAnswer1MiB(b *testing.B) {
	payload := vfs.MemPart(make([]byte, 1<<20))
	_, c := overTCP(b, options(HandlerFunc(func(_ context.Context, r *Request) { r.Reply(nil, payload) })), ClientOptions{})
	b.SetBytes(1 << 20)
	for b.Loop() {
		r, err := c.Call(context.Background(), wire.KindFetch, nil, nil)
		if err != nil || len(r.Payload) != 1<<20 {
			b.Fatal(err, len(r.Payload))
		}
	}
}

// BenchmarkAnswer1MiBFile gets it from a file by sendfile.
func BenchmarkAnswer1MiBFile(b *testing.B) {
	name := b.TempDir() + "/segment"
	require.NoError(b, vfs.WriteFileAtomic(vfs.OS, name, make([]byte, 1<<20), 0o600))
	f, err := vfs.OS.OpenFile(name, 0, 0)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	_, c := overTCP(b, options(HandlerFunc(func(_ context.Context, r *Request) {
		r.Reply(nil, vfs.FilePart(f, 0, 1<<20, nil))
	})), ClientOptions{})
	b.SetBytes(1 << 20)
	for b.Loop() {
		r, err := c.Call(context.Background(), wire.KindFetch, nil, nil)
		if err != nil || len(r.Payload) != 1<<20 {
			b.Fatal(err, len(r.Payload))
		}
	}
}
