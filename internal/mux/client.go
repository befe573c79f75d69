package mux

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/wire"
)

// Dialer opens the byte stream under a connection.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// ClientOptions are the settings of Dial; zero fields get defaults.
type ClientOptions struct {
	Dial             Dialer            // default: TCP, dual stack
	Hello            wire.HelloRequest // versions are filled in
	HandshakeTimeout time.Duration     // 10 s
	MaxInFlight      int               // requests without an answer; beyond it Go fails with CodeBusy. 4,096
	WriteQueueBytes  int64             // bytes not yet handed to the kernel; beyond it Go fails with CodeBusy. 64 MiB
	Logger           *slog.Logger
}

// Response is the answer to a request. Both slices belong to whoever gets it.
type Response struct {
	Message []byte
	Payload []byte
}

// Conn is one client connection. All methods are safe for concurrent use.
type Conn struct{}

// Dial opens a connection and shakes hands.
func Dial(ctx context.Context, addr string, o ClientOptions) (*Conn, error) { return nil, nil }

// Hello is what the server said of itself.
func (c *Conn) Hello() wire.HelloResponse { return wire.HelloResponse{} }

// Go sends a request and calls done exactly once: with the answer, or with a *base.Error. done runs on the
// connection's reader goroutine (or, when the connection fails, on the one that noticed) and must not block. msg
// and payload must not change until then, nor after a cancel. An error from Go itself means that nothing was sent
// and done will not be called.
//
// cancel gives up waiting: done gets CodeCanceled with the outcome unknown, unless it was called already, and the
// answer is dropped when it comes.
func (c *Conn) Go(kind wire.Kind, msg []byte, payload [][]byte, done func(Response, error)) (cancel func(), err error) {
	return nil, nil
}

// Call is Go, waiting.
func (c *Conn) Call(ctx context.Context, kind wire.Kind, msg []byte, payload [][]byte) (Response, error) {
	return Response{}, nil
}

// Close fails every outstanding request and waits until the connection's goroutines have ended.
func (c *Conn) Close() error { return nil }

// Done is closed when the connection has failed or was closed.
func (c *Conn) Done() <-chan struct{} { return nil }

// Err is why, once Done is closed.
func (c *Conn) Err() error { return nil }
