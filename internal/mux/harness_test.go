package mux

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers a request with its own message and payload.
func echo(_ context.Context, r *Request) { r.Reply(r.Message, vfs.MemPart(r.Payload)) }

// kept collects requests for a test to answer when it likes.
type kept struct{ requests chan *Request }

func newKept() *kept { return &kept{requests: make(chan *Request, 1024)} }

func (k *kept) Handle(_ context.Context, r *Request) { k.requests <- r }

func options(h Handler) ServerOptions {
	return ServerOptions{
		Handler: h,
		Hello: func(wire.HelloRequest) (wire.HelloResponse, error) {
			return wire.HelloResponse{Node: "n1", Version: "test", MaxRecordBytes: 1 << 20}, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// pipeNet is a network of net.Pipe, for bubbles.
type pipeNet struct {
	server *Server
	mu     sync.Mutex
	ends   []net.Conn // the server's ends
}

func (p *pipeNet) dial(context.Context, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.mu.Lock()
	p.ends = append(p.ends, server)
	p.mu.Unlock()
	p.server.ServeConn(server)
	return client, nil
}

// overPipe makes a server and a connection to it over net.Pipe. Both are closed at the end of the test.
func overPipe(t testing.TB, o ServerOptions, co ClientOptions) (*Server, *Conn) {
	s := NewServer(o)
	co.Dial = (&pipeNet{server: s}).dial
	c, err := Dial(t.Context(), "pipe", co)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
	return s, c
}

// overTCP is overPipe over the loopback.
func overTCP(t testing.TB, o ServerOptions, co ClientOptions) (*Server, *Conn) {
	s, addr := listen(t, o)
	c, err := Dial(t.Context(), addr, co)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return s, c
}

func listen(t testing.TB, o ServerOptions) (*Server, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return s, l.Addr().String()
}
