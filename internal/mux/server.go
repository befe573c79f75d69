package mux

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Handler serves requests. Handle is called on the connection's reader goroutine, in the order of arrival, and
// must not block: long work goes to a bounded goroutine of the handler's own. ctx is the connection's.
type Handler interface {
	Handle(ctx context.Context, r *Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, r *Request)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) { f(ctx, r) }

// Peer is what is known of a connection's other end.
type Peer struct {
	ID     uint64 // of the connection, unique in the process
	Remote string // address
	Hello  wire.HelloRequest
}

// Request is one request. Message and Payload belong to the handler from the call on. Exactly one of Reply and
// Fail must be called, from any goroutine, at any time.
type Request struct {
	Kind    wire.Kind
	Flags   wire.Flags
	Message []byte
	Payload []byte
	Peer    *Peer
	Arrived time.Time
}

// Reply answers with a message and payload parts, which are released when they are sent or will never be.
func (r *Request) Reply(msg []byte, parts ...vfs.Part) {}

// Fail answers with an error.
func (r *Request) Fail(err error) {}

// ServerOptions are the settings of a Server; zero fields get defaults.
type ServerOptions struct {
	Handler Handler
	Hello   func(wire.HelloRequest) (wire.HelloResponse, error)

	MaxConns            int           // beyond it a new connection is told Busy and closed. 10,000
	MaxInFlightRequests int           // a connection's requests without an answer sent; at it reading stops. 1,024
	MaxInFlightBytes    int64         // their bytes, answers included; at it reading stops. 64 MiB
	PayloadLimit        int           // of one request. wire.MaxPayload
	HandshakeTimeout    time.Duration // from accept to hello. 10 s
	IdleTimeout         time.Duration // a connection without requests in flight. 0 = for ever
	WriteTimeout        time.Duration // a peer that does not read. 60 s
	Logger              *slog.Logger
}

// Server accepts connections on any number of listeners.
type Server struct{}

// NewServer makes a Server; it starts nothing.
func NewServer(o ServerOptions) *Server { return &Server{} }

// Serve accepts connections until l fails or the server is closed, which is no error.
func (s *Server) Serve(l net.Listener) error { return nil }

// Close closes listeners and connections and waits for their goroutines.
func (s *Server) Close() error { return nil }
