package mux

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// result is what a done callback got.
type result struct {
	r   Response
	err error
}

// send starts a request whose result arrives on a channel.
func send(t testing.TB, c *Conn, msg string) (<-chan result, func()) {
	results := make(chan result, 2) // a second call of done would show
	cancel, err := c.Go(wire.KindPing, []byte(msg), nil, func(r Response, err error) { results <- result{r, err} })
	require.NoError(t, err)
	return results, cancel
}

func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := overPipe(t, options(HandlerFunc(echo)), ClientOptions{Hello: wire.HelloRequest{ClientName: "test"}})
		require.Equal(t, base.NodeID("n1"), c.Hello().Node)
		require.Equal(t, uint8(wire.Version), c.Hello().ProtocolVersion)
		require.Equal(t, 1024, c.Hello().MaxInFlight)

		r, err := c.Call(t.Context(), wire.KindProduce, []byte("message"), [][]byte{[]byte("pay"), []byte("load")})
		require.NoError(t, err)
		require.Equal(t, "message", string(r.Message))
		require.Equal(t, "payload", string(r.Payload))

		r, err = c.Call(t.Context(), wire.KindPing, nil, nil)
		require.NoError(t, err)
		require.Empty(t, r.Message)
		require.Empty(t, r.Payload)
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Connections)
		require.Equal(t, int64(3), s.Stats().Requests)
		require.Zero(t, s.Stats().InFlight)
		require.Zero(t, s.Stats().HeldBytes)
	})
}

func TestAnswersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		_, c := overPipe(t, options(k), ClientOptions{})
		a, _ := send(t, c, "a")
		b, _ := send(t, c, "b")
		ra, rb := <-k.requests, <-k.requests
		require.Equal(t, "a", string(ra.Message), "requests arrive in order")

		rb.Reply([]byte("to b"))
		require.Equal(t, "to b", string((<-b).r.Message))
		ra.Reply([]byte("to a"))
		require.Equal(t, "to a", string((<-a).r.Message))
	})
}

func TestErrorsKeepTheirShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := base.Errorf(base.CodeNotLeader, "produce", "n2 leads").WithHint("ask n2").
			WithOutcome(base.Unknown).WithRedirect(base.Redirect{Node: "n2", Address: "h:1"})
		_, c := overPipe(t, options(HandlerFunc(func(_ context.Context, r *Request) { r.Fail(want) })), ClientOptions{})
		_, err := c.Call(t.Context(), wire.KindProduce, nil, nil)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		want.Node = "n1" // who answered, filled in on the way
		require.Equal(t, want, e)
	})
}

func TestCancelDropsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		_, c := overPipe(t, options(k), ClientOptions{})
		a, cancel := send(t, c, "a")
		request := <-k.requests
		cancel()
		cancel()
		got := <-a
		require.ErrorIs(t, got.err, base.CodeCanceled)
		require.Equal(t, base.Unknown, base.OutcomeOf(got.err), "it may have been applied")

		request.Reply([]byte("late"), vfs.MemPart([]byte("payload")))
		b, _ := send(t, c, "b")
		(<-k.requests).Reply([]byte("to b"))
		require.Equal(t, "to b", string((<-b).r.Message), "the connection goes on")
		require.Empty(t, a, "done was called once")
		require.Zero(t, c.InFlight())
	})
}

func TestCallTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		_, c := overPipe(t, options(k), ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Call(ctx, wire.KindPing, nil, nil)
		require.ErrorIs(t, err, base.CodeTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))

		_, err = c.Call(ctx, wire.KindPing, nil, nil)
		require.ErrorIs(t, err, base.CodeTimeout)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err), "this one was never sent")
		(<-k.requests).Reply(nil)
	})
}

// A request that is cancelled while it waits for the socket is not sent, and that is certain.
func TestCancelOfAQueuedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go acceptHello(server)
		c, err := Dial(t.Context(), "x", ClientOptions{Dial: func(context.Context, string) (net.Conn, error) { return client, nil }})
		require.NoError(t, err)
		first, _ := send(t, c, "first") // the writer is stuck in it: nobody reads
		synctest.Wait()
		second, cancel := send(t, c, "second")
		cancel()
		got := <-second
		require.ErrorIs(t, got.err, base.CodeCanceled)
		require.Equal(t, base.NotApplied, base.OutcomeOf(got.err))

		in := newFrameReader(server)
		h, err := in.header()
		require.NoError(t, err)
		msg, _, err := in.body(h, nil)
		require.NoError(t, err)
		require.Equal(t, "first", string(msg))
		third, _ := send(t, c, "third")
		h, err = in.header()
		require.NoError(t, err)
		msg, _, err = in.body(h, nil)
		require.NoError(t, err)
		require.Equal(t, "third", string(msg), "the second was left out")

		require.NoError(t, server.Close())
		for _, results := range []<-chan result{first, third} {
			got := <-results
			require.ErrorIs(t, got.err, base.CodeUnreachable)
			require.Equal(t, base.Unknown, base.OutcomeOf(got.err))
		}
		require.NoError(t, c.Close())
	})
}

// acceptHello is a server that shakes hands and then does nothing.
func acceptHello(nc net.Conn) {
	in := newFrameReader(nc)
	h, err := in.header()
	if err != nil {
		return
	}
	if in.skip(h) != nil {
		return
	}
	msg := wire.Encode(wire.HelloResponse{ProtocolVersion: wire.Version})
	head := wire.FrameHeader{Version: wire.Version, Flags: wire.FlagResponse, Kind: wire.KindHello, MessageLen: uint32(len(msg)), RequestID: h.RequestID}
	_, _ = nc.Write(append(head.Append(nil), msg...))
}

func TestQueueAndFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go acceptHello(server)
		c, err := Dial(t.Context(), "x", ClientOptions{
			Dial:        func(context.Context, string) (net.Conn, error) { return client, nil },
			MaxInFlight: 4, WriteQueueBytes: 2000,
		})
		require.NoError(t, err)
		var ended atomic.Int32
		start := func(size int) error {
			_, err := c.Go(wire.KindProduce, nil, [][]byte{make([]byte, size)}, func(Response, error) { ended.Add(1) })
			return err
		}
		require.NoError(t, start(5000), "one is always taken, whatever its size")
		require.ErrorIs(t, start(1000), base.CodeBusy, "bytes")
		require.Equal(t, 1, c.InFlight(), "what was refused is forgotten")

		in := newFrameReader(server) // now somebody reads
		h, err := in.header()
		require.NoError(t, err)
		require.NoError(t, in.skip(h))
		synctest.Wait()
		for range 3 {
			require.NoError(t, start(10))
		}
		require.ErrorIs(t, start(10), base.CodeBusy, "requests")
		require.NoError(t, c.Close())
		require.Equal(t, int32(4), ended.Load())
		require.ErrorIs(t, start(10), base.CodeUnreachable)
	})
}

func TestCloseFailsWhatIsOutstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		_, c := overPipe(t, options(k), ClientOptions{})
		a, _ := send(t, c, "a")
		request := <-k.requests
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		got := <-a
		require.ErrorIs(t, got.err, base.CodeUnreachable)
		require.Equal(t, base.Unknown, base.OutcomeOf(got.err))
		<-c.Done()
		require.ErrorIs(t, c.Err(), base.CodeUnreachable)
		request.Reply(nil) // to nobody
	})
}

func TestServerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		s, c := overPipe(t, options(k), ClientOptions{})
		a, _ := send(t, c, "a")
		request := <-k.requests
		require.NoError(t, s.Close())
		require.ErrorIs(t, (<-a).err, base.CodeUnreachable)
		<-c.Done()
		released := make(chan struct{})
		request.Reply(nil, part{release: func() { close(released) }})
		<-released
	})
}

// part is a Part that tells when it is released, and can fail or write short.
type part struct {
	b       []byte
	claim   int // Len; 0 = the truth
	release func()
}

func (p part) Len() int {
	if p.claim != 0 {
		return p.claim
	}
	return len(p.b)
}

func (p part) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p.b)
	return int64(n), err
}

func (p part) Release() { p.release() }

func TestAnswersThatAreNone(t *testing.T) {
	frame := func(h wire.FrameHeader, body string) []byte {
		h.Version, h.MessageLen = wire.Version, uint32(len(body))
		return append(h.Append(nil), body...)
	}
	id := uint64(helloID + 1)
	for _, c := range []struct {
		name  string
		bytes []byte
		want  base.Code
	}{
		{"garbage", []byte("HTTP/1.1 400 Bad Request\r\n"), base.CodeCorruptFrame},
		{"a request", frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: id}, ""), base.CodeCorruptFrame},
		{"of another kind", frame(wire.FrameHeader{Kind: wire.KindFetch, Flags: wire.FlagResponse, RequestID: id}, ""), base.CodeCorruptFrame},
		{"one of several", frame(wire.FrameHeader{Kind: wire.KindPing, Flags: wire.FlagResponse | wire.FlagMore, RequestID: id}, ""), base.CodeCorruptFrame},
		{"an error about the connection", frame(wire.FrameHeader{Flags: wire.FlagResponse | wire.FlagError}, string(wire.EncodeError(base.CodeShuttingDown))), base.CodeShuttingDown},
		{"to nothing", frame(wire.FrameHeader{Flags: wire.FlagResponse}, ""), base.CodeCorruptFrame},
		{"cut", frame(wire.FrameHeader{Kind: wire.KindPing, Flags: wire.FlagResponse, RequestID: id}, "abc")[:25], base.CodeUnreachable},
		{"none", nil, base.CodeUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				go acceptHello(server)
				conn, err := Dial(t.Context(), "x", ClientOptions{Dial: func(context.Context, string) (net.Conn, error) { return client, nil }})
				require.NoError(t, err)
				a, _ := send(t, conn, "a")
				in := newFrameReader(server)
				h, err := in.header()
				require.NoError(t, err)
				require.NoError(t, in.skip(h))
				_, _ = server.Write(c.bytes)
				_ = server.Close()
				got := <-a
				require.ErrorIs(t, got.err, c.want)
				require.Equal(t, base.Unknown, base.OutcomeOf(got.err))
				require.NoError(t, conn.Close())
			})
		})
	}
}

func TestDialFails(t *testing.T) {
	dialer := func(f func(nc net.Conn)) Dialer {
		return func(context.Context, string) (net.Conn, error) {
			client, server := net.Pipe()
			go f(server)
			return client, nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := Dial(t.Context(), "x", ClientOptions{Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }})
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.ErrorContains(t, err, "connect to x: refused")

		began := time.Now()
		_, err = Dial(t.Context(), "x", ClientOptions{Dial: dialer(func(nc net.Conn) { _, _ = nc.Read(make([]byte, 1000)) }), HandshakeTimeout: 3 * time.Second})
		require.ErrorIs(t, err, base.CodeUnreachable, "nobody answers the hello")
		require.Equal(t, 3*time.Second, time.Since(began))

		_, err = Dial(t.Context(), "x", ClientOptions{Dial: dialer(func(nc net.Conn) { _, _ = nc.Read(make([]byte, 1000)); _ = nc.Close() })})
		require.ErrorIs(t, err, base.CodeUnreachable)
		require.ErrorContains(t, err, "x closed the connection without an answer")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = Dial(ctx, "x", ClientOptions{Dial: dialer(func(net.Conn) {})})
		require.ErrorIs(t, err, base.CodeCanceled)

		_, err = Dial(t.Context(), "x", ClientOptions{Dial: dialer(func(nc net.Conn) {
			_, _ = nc.Read(make([]byte, 1000))
			_, _ = nc.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
		})})
		require.ErrorIs(t, err, base.CodeCorruptFrame)

		_, err = Dial(t.Context(), "x", ClientOptions{Dial: dialer(func(nc net.Conn) { _ = nc.Close() })})
		require.ErrorIs(t, err, base.CodeUnreachable)
	})
}

func TestTooLargeForAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := overPipe(t, options(HandlerFunc(echo)), ClientOptions{})
		_, err := c.Call(t.Context(), wire.KindProduce, nil, [][]byte{make([]byte, wire.MaxPayload), {1}})
		require.ErrorIs(t, err, base.CodeInvalidArgument)
		_, err = c.Call(t.Context(), wire.KindProduce, make([]byte, wire.MaxMessage+1), nil)
		require.ErrorIs(t, err, base.CodeInvalidArgument)
	})
}
