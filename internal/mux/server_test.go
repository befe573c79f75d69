package mux

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// raw is a client that writes whatever bytes a test likes.
type raw struct {
	t  testing.TB
	nc net.Conn
	in frameReader
}

func dialRaw(t testing.TB, addr string) *raw {
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, nc.SetDeadline(time.Now().Add(20*time.Second)))
	t.Cleanup(func() { _ = nc.Close() })
	return &raw{t: t, nc: nc, in: newFrameReader(nc)}
}

func (r *raw) frame(h wire.FrameHeader, body []byte) {
	if h.Version == 0 {
		h.Version = wire.Version
	}
	if h.MessageLen == 0 {
		h.MessageLen = uint32(len(body)) - h.PayloadLen
	}
	_, err := r.nc.Write(append(h.Append(nil), body...))
	require.NoError(r.t, err)
}

func (r *raw) hello() {
	r.frame(wire.FrameHeader{Kind: wire.KindHello, RequestID: 1}, wire.Encode(wire.HelloRequest{MinVersion: 1, MaxVersion: 9}))
	h, _ := r.read()
	require.Equal(r.t, wire.FlagResponse, h.Flags)
}

func (r *raw) read() (wire.FrameHeader, []byte) {
	h, err := r.in.header()
	require.NoError(r.t, err)
	msg, payload, err := r.in.body(h, nil)
	require.NoError(r.t, err)
	return h, append(msg, payload...)
}

// refused reads an error frame and then the end of the connection.
func (r *raw) refused(id uint64, code base.Code) {
	r.t.Helper()
	h, msg := r.read()
	require.Equal(r.t, wire.FlagResponse|wire.FlagError, h.Flags)
	require.Equal(r.t, id, h.RequestID)
	require.ErrorIs(r.t, wire.DecodeError(msg), code)
	if id == 0 {
		_, err := r.in.header()
		require.ErrorIs(r.t, err, io.EOF)
	}
}

func TestBadFramesCloseTheirConnectionOnly(t *testing.T) {
	_, addr := listen(t, options(HandlerFunc(echo)))
	good := dialRaw(t, addr)
	good.hello()
	hello := wire.Encode(wire.HelloRequest{MinVersion: 1, MaxVersion: 1})

	for _, c := range []struct {
		name string
		do   func(r *raw)
		code base.Code
	}{
		{"http", func(r *raw) { _, _ = r.nc.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, base.CodeCorruptFrame},
		{"one wrong byte", func(r *raw) { _, _ = r.nc.Write([]byte{0, 0}) }, base.CodeCorruptFrame},
		{"random", func(r *raw) {
			b := make([]byte, 4000)
			_, _ = rand.Read(b)
			b[0] = 0
			_, _ = r.nc.Write(b)
		}, base.CodeCorruptFrame},
		{"no hello", func(r *raw) { r.frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: 5}, nil) }, base.CodeCorruptFrame},
		{"a huge hello", func(r *raw) { r.frame(wire.FrameHeader{Kind: wire.KindHello, MessageLen: 1 << 20}, nil) }, base.CodeCorruptFrame},
		{"a hello with payload", func(r *raw) { r.frame(wire.FrameHeader{Kind: wire.KindHello, PayloadLen: 1 << 20}, nil) }, base.CodeCorruptFrame},
		{"a hello of garbage", func(r *raw) { r.frame(wire.FrameHeader{Kind: wire.KindHello}, []byte("garbage")) }, base.CodeCorruptFrame},
		{"future version", func(r *raw) {
			r.frame(wire.FrameHeader{Kind: wire.KindHello}, wire.Encode(wire.HelloRequest{MinVersion: 7, MaxVersion: 9}))
		}, base.CodeUnsupportedVersion},
		{"frame of a future version", func(r *raw) { r.frame(wire.FrameHeader{Kind: wire.KindHello, Version: 9}, hello) }, base.CodeUnsupportedVersion},
		{"message of 2^31", func(r *raw) {
			r.hello()
			r.frame(wire.FrameHeader{Kind: wire.KindPing, MessageLen: 1 << 31}, nil)
		}, base.CodeCorruptFrame},
		{"payload of 2^31", func(r *raw) {
			r.hello()
			r.frame(wire.FrameHeader{Kind: wire.KindPing, PayloadLen: 1 << 31}, nil)
		}, base.CodeCorruptFrame},
		{"everything set", func(r *raw) {
			r.hello()
			r.frame(wire.FrameHeader{Flags: 0xff, Kind: math.MaxUint16, MessageLen: math.MaxUint32, PayloadLen: math.MaxUint32}, nil)
		}, base.CodeCorruptFrame},
		{"an answer", func(r *raw) {
			r.hello()
			r.frame(wire.FrameHeader{Kind: wire.KindPing, Flags: wire.FlagResponse, RequestID: 3}, nil)
		}, base.CodeCorruptFrame},
		{"a truncated frame", func(r *raw) {
			r.hello()
			r.frame(wire.FrameHeader{Kind: wire.KindPing, MessageLen: 100}, []byte("short"))
			require.NoError(r.t, r.nc.(*net.TCPConn).CloseWrite())
		}, base.CodeCorruptFrame},
		{"a truncated header", func(r *raw) {
			r.hello()
			_, _ = r.nc.Write([]byte("EG\x01"))
			require.NoError(r.t, r.nc.(*net.TCPConn).CloseWrite())
		}, base.CodeCorruptFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialRaw(t, addr)
			c.do(r)
			r.refused(0, c.code)
		})
	}

	good.frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: 9}, []byte("still here"))
	_, msg := good.read()
	require.Equal(t, "still here", string(msg))
}

func TestRefusedRequestsLeaveTheConnection(t *testing.T) {
	o := options(HandlerFunc(echo))
	o.PayloadLimit = 1000
	_, addr := listen(t, o)
	r := dialRaw(t, addr)
	r.hello()
	r.frame(wire.FrameHeader{Kind: 999, RequestID: 2}, []byte("from the future"))
	r.refused(2, base.CodeUnknownKind)
	r.frame(wire.FrameHeader{Kind: wire.KindProduce, RequestID: 3, PayloadLen: 1001, MessageLen: 4}, make([]byte, 1005))
	r.refused(3, base.CodeBatchTooLarge)
	r.frame(wire.FrameHeader{Kind: wire.KindHello, RequestID: 4}, wire.Encode(wire.HelloRequest{MinVersion: 1, MaxVersion: 1}))
	r.refused(4, base.CodeInvalidArgument)
	r.frame(wire.FrameHeader{Kind: wire.KindRoute, RequestID: 6}, make([]byte, 1<<20+1))
	r.refused(6, base.CodeInvalidArgument)
	r.frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: 5}, []byte("x"))
	_, msg := r.read()
	require.Equal(t, "x", string(msg))
}

func TestAPanicFailsItsRequestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := overPipe(t, options(HandlerFunc(func(ctx context.Context, r *Request) {
			if string(r.Message) == "panic" {
				panic("on purpose")
			}
			echo(ctx, r)
			if string(r.Message) == "late" {
				panic("after the answer")
			}
		})), ClientOptions{})
		_, err := c.Call(t.Context(), wire.KindPing, []byte("panic"), nil)
		require.ErrorIs(t, err, base.CodeInternal)
		require.Equal(t, base.Unknown, base.OutcomeOf(err))
		for _, msg := range []string{"late", "fine"} {
			r, err := c.Call(t.Context(), wire.KindPing, []byte(msg), nil)
			require.NoError(t, err)
			require.Equal(t, msg, string(r.Message))
		}
	})
}

func TestASecondAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int32
		s, c := overPipe(t, options(HandlerFunc(func(_ context.Context, r *Request) {
			r.Reply([]byte("one"))
			r.Reply([]byte("two"), part{release: func() { released.Add(1) }})
			r.Fail(errors.New("three"))
		})), ClientOptions{})
		for range 3 {
			r, err := c.Call(t.Context(), wire.KindPing, nil, nil)
			require.NoError(t, err)
			require.Equal(t, "one", string(r.Message))
		}
		synctest.Wait()
		require.Equal(t, int32(3), released.Load())
		require.Zero(t, s.Stats().InFlight)
	})
}

func TestHelloMayBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(HandlerFunc(echo))
		o.Hello = func(h wire.HelloRequest) (wire.HelloResponse, error) {
			return wire.HelloResponse{}, base.Errorf(base.CodeDenied, "", "%s is not welcome", h.ClientName)
		}
		s := NewServer(o)
		_, err := Dial(t.Context(), "x", ClientOptions{Dial: (&pipeNet{server: s}).dial, Hello: wire.HelloRequest{ClientName: "mallory"}})
		require.ErrorIs(t, err, base.CodeDenied)
		require.ErrorContains(t, err, "mallory is not welcome")
		require.NoError(t, s.Close())
	})
}

// A client that has sent all it wants to may close its sending half, and still gets its answers.
func TestHalfClose(t *testing.T) {
	k := newKept()
	_, addr := listen(t, options(k))
	r := dialRaw(t, addr)
	r.hello()
	r.frame(wire.FrameHeader{Kind: wire.KindPing, RequestID: 2}, []byte("x"))
	require.NoError(t, r.nc.(*net.TCPConn).CloseWrite())
	request := <-k.requests
	request.Reply([]byte("y"))
	_, msg := r.read()
	require.Equal(t, "y", string(msg))
	_, err := r.in.header()
	require.ErrorIs(t, err, io.EOF)
}

// A fetch that waits is told when its client has closed, and what it answers may still arrive.
func TestHalfCloseEndsTheContext(t *testing.T) {
	_, addr := listen(t, options(HandlerFunc(func(ctx context.Context, r *Request) {
		context.AfterFunc(ctx, func() { r.Reply([]byte("nothing yet")) })
	})))
	r := dialRaw(t, addr)
	r.hello()
	r.frame(wire.FrameHeader{Kind: wire.KindFetch, RequestID: 2}, []byte("x"))
	require.NoError(t, r.nc.(*net.TCPConn).CloseWrite())
	_, msg := r.read()
	require.Equal(t, "nothing yet", string(msg))
}

func TestTheContextEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s, c := overPipe(t, options(HandlerFunc(func(ctx context.Context, r *Request) {
			context.AfterFunc(ctx, func() { close(ended); r.Fail(ctx.Err()) })
		})), ClientOptions{})
		a, _ := send(t, c, "wait")
		synctest.Wait()
		require.NoError(t, s.Close())
		<-ended
		require.ErrorIs(t, (<-a).err, base.CodeUnreachable)
	})
}

func TestShutdownFinishesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		s, c := overPipe(t, options(k), ClientOptions{})
		a, _ := send(t, c, "a")
		request := <-k.requests
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		require.Empty(t, stopped)

		b, _ := send(t, c, "b")
		got := <-b
		require.ErrorIs(t, got.err, base.CodeShuttingDown)
		require.Equal(t, base.NotApplied, base.OutcomeOf(got.err))

		request.Reply([]byte("done"))
		require.Equal(t, "done", string((<-a).r.Message))
		require.NoError(t, <-stopped)
		<-c.Done()
	})
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		s, c := overPipe(t, options(k), ClientOptions{})
		a, _ := send(t, c, "never answered")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, (<-a).err, base.CodeUnreachable)
		(<-k.requests).Reply(nil)
	})
}

// flaky is a listener whose Accept fails a few times.
type flaky struct {
	net.Listener
	fails int
}

func (l *flaky) Accept() (net.Conn, error) {
	if l.fails > 0 {
		l.fails--
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestAcceptErrorsAreWaitedOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(options(HandlerFunc(echo)))
	done := make(chan error, 1)
	go func() { done <- s.Serve(&flaky{Listener: l, fails: 4}) }()
	c, err := Dial(t.Context(), l.Addr().String(), ClientOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
	require.NoError(t, s.Serve(l), "a closed server serves nothing")
}

// Payloads of memory and files, in parts, arrive as they were; their parts are released once each.
func TestPayloadParts(t *testing.T) {
	want := make([]byte, 3<<20)
	_, _ = rand.Read(want)
	name := t.TempDir() + "/segment"
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS, name, want, 0o600))
	f, err := vfs.OS.OpenFile(name, 0, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()

	var released sync.WaitGroup
	released.Add(2 * 10)
	_, c := overTCP(t, options(HandlerFunc(func(_ context.Context, r *Request) {
		r.Reply([]byte("message"),
			vfs.MemPart(want[:100]), vfs.MemPart(want[100:1<<20]),
			vfs.FilePart(f, 1<<20, 1<<20, released.Done),
			vfs.MemPart(want[2<<20:5<<19]),
			vfs.FilePart(f, 5<<19, 1<<19, released.Done))
	})), ClientOptions{})
	results := make(chan result, 10)
	for range cap(results) {
		_, err := c.Go(wire.KindFetch, nil, nil, func(r Response, err error) { results <- result{r, err} })
		require.NoError(t, err)
	}
	for range cap(results) {
		got := <-results
		require.NoError(t, got.err)
		require.Equal(t, "message", string(got.r.Message))
		require.True(t, bytes.Equal(want, got.r.Payload))
	}
	released.Wait()
}

// A file that is shorter than was promised would shift every frame behind it: the connection ends.
func TestAShortPartEndsTheConnection(t *testing.T) {
	released := make(chan struct{})
	_, c := overTCP(t, options(HandlerFunc(func(_ context.Context, r *Request) {
		r.Reply(nil, part{b: []byte("short"), claim: 1000, release: func() { close(released) }})
	})), ClientOptions{})
	_, err := c.Call(t.Context(), wire.KindFetch, nil, nil)
	require.ErrorIs(t, err, base.CodeUnreachable)
	<-released
}

// An answer that no frame can hold becomes a failure, not a broken connection.
func TestAnAnswerTooLargeForAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := false
		_, c := overPipe(t, options(HandlerFunc(func(_ context.Context, r *Request) {
			r.Reply(nil, part{claim: wire.MaxPayload + 1, release: func() { released = true }})
		})), ClientOptions{})
		for range 2 {
			_, err := c.Call(t.Context(), wire.KindFetch, nil, nil)
			require.ErrorIs(t, err, base.CodeInternal)
			require.True(t, released)
		}
	})
}
