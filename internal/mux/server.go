package mux

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/lobby"
	"github.com/eastguard/eastguard/internal/wire"
)

// Handler serves requests. Handle is called on the connection's reader goroutine, in the order of arrival, and
// must not block: long work goes to a bounded goroutine of the handler's own. ctx is the connection's: it ends when
// the peer has closed its sending half or the connection is gone. A request that waits for something to happen should
// then be answered with what there is; one whose work is under way is finished and answered as ever.
type Handler interface {
	Handle(ctx context.Context, r *Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, r *Request)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) { f(ctx, r) }

// ServerOptions are the settings of a Server; zero fields get defaults.
type ServerOptions struct {
	Handler Handler
	Hello   func(wire.HelloRequest) (wire.HelloResponse, error) // ProtocolVersion and limits are filled in

	MaxConns            int           // beyond it a new connection is told Busy and closed. 10,000
	MaxInFlightRequests int           // of a connection, until their answers are written; at it reading stops. 1,024
	MaxInFlightBytes    int64         // of a connection, requests and answers; at it reading stops. 64 MiB
	MaxBytes            int64         // of unanswered requests, all connections; beyond it they get Busy. 1 GiB
	MessageLimit        int           // bytes of one request's message; a longer one fails. 1 MiB
	PayloadLimit        int           // bytes of one request's payload; a longer one fails. wire.MaxPayload
	HandshakeTimeout    time.Duration // from accept to hello. 10 s
	IdleTimeout         time.Duration // of a connection without requests in flight. 0 = for ever
	StallTimeout        time.Duration // of a peer that sends nothing in the middle of a request. 30 s
	WriteTimeout        time.Duration // a peer that reads nothing, on top of 1 s a MiB. 60 s
	Logger              *slog.Logger  // none
}

func (o ServerOptions) withDefaults() ServerOptions {
	o.MaxConns = cmp.Or(o.MaxConns, 10_000)
	o.MaxInFlightRequests = cmp.Or(o.MaxInFlightRequests, 1024)
	o.MaxInFlightBytes = cmp.Or(o.MaxInFlightBytes, 64<<20)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	o.MessageLimit = cmp.Or(o.MessageLimit, 1<<20)
	o.PayloadLimit = cmp.Or(o.PayloadLimit, wire.MaxPayload)
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	o.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxGreeting is how many connections may be within their handshake; of more, those that are silent are closed.
const maxGreeting = 1024

// Server accepts connections on any number of listeners.
type Server struct {
	opts   ServerOptions
	log    *slog.Logger
	room   *lobby.Room // of connections within their handshake
	tasks  sync.WaitGroup
	closed chan struct{}

	draining atomic.Bool
	drained  chan struct{} // capacity 1; a token when the last request leaves a draining server

	inFlight atomic.Int64 // requests
	held     atomic.Int64 // bytes of requests without an answer
	requests atomic.Int64
	bytesIn  atomic.Int64
	bytesOut atomic.Int64

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*serverConn]struct{}
	refusing  int // connections above MaxConns that are being told
	lastID    uint64
	isClosed  bool
}

// Stats is a server's state at one moment, and its counts since the start.
type Stats struct {
	Connections int
	ShownOut    int64 // connections that were closed for others, for they said nothing
	InFlight    int   // requests
	HeldBytes   int64 // of requests without an answer
	Requests    int64
	BytesIn     int64
	BytesOut    int64
}

// NewServer makes a Server; it starts nothing.
func NewServer(o ServerOptions) *Server {
	o = o.withDefaults()
	return &Server{
		opts: o, log: o.Logger, room: lobby.New(maxGreeting, nil), closed: make(chan struct{}), drained: make(chan struct{}, 1),
		listeners: make(map[net.Listener]struct{}), conns: make(map[*serverConn]struct{}),
	}
}

// Stats reports what the server is doing.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	conns := len(s.conns)
	s.mu.Unlock()
	return Stats{
		Connections: conns, ShownOut: s.room.ShownOut(), InFlight: int(s.inFlight.Load()), HeldBytes: s.held.Load(),
		Requests: s.requests.Load(), BytesIn: s.bytesIn.Load(), BytesOut: s.bytesOut.Load(),
	}
}

// Serve accepts connections until l fails or the server is closed, which is no error. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if !s.addListener(l) {
		_ = l.Close() // by its owner, perhaps
		return nil
	}
	defer s.removeListener(l)
	var delay time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			delay = 0
			s.accept(nc)
		case s.isClosing():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of file descriptors, most likely: existing connections go on, so wait for one to end.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.log.Warn("accept failed", "error", err, "retry_in", delay)
			if !s.pause(delay) {
				return nil
			}
		}
	}
}

func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.closed:
		return false
	}
}

// ServeConn serves one connection that somebody else has accepted. It does not wait for it.
func (s *Server) ServeConn(nc net.Conn) { s.accept(nc) }

// accept starts a connection, or the goroutine that tells it why not. There are few of the latter at a time:
// when connections come faster than they can be told they are just closed. Where there are too many connections, one that
// is silent has to go first.
func (s *Server) accept(nc net.Conn) {
	guest := s.room.Enter(nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	const maxRefusing = 64
	full := len(s.conns) >= s.opts.MaxConns && !s.room.ShowOut()
	if full || s.isClosed {
		guest.Leave()
	}
	switch {
	case s.isClosed || full && s.refusing >= maxRefusing:
		_ = nc.Close()
	case full:
		s.refusing++
		s.tasks.Go(func() {
			s.refuse(nc)
			s.mu.Lock()
			s.refusing--
			s.mu.Unlock()
		})
	default:
		s.lastID++
		c := newServerConn(s, nc, guest, s.lastID)
		s.conns[c] = struct{}{}
		s.tasks.Go(func() {
			c.serve()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// refuse tells a connection that there are too many.
func (s *Server) refuse(nc net.Conn) {
	err := base.Errorf(base.CodeBusy, "accept", "the broker serves %d connections already", s.opts.MaxConns)
	msg := wire.EncodeError(err)
	head := wire.FrameHeader{Version: wire.Version, Flags: wire.FlagResponse | wire.FlagError, Kind: wire.KindHello, MessageLen: uint32(len(msg))}
	_ = nc.SetDeadline(time.Now().Add(lingerTime))
	if _, err := nc.Write(append(head.Append(nil), msg...)); err == nil {
		linger(nc)
	}
	_ = nc.Close()
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed {
		s.listeners[l] = struct{}{}
	}
	return !s.isClosed
}

func (s *Server) removeListener(l net.Listener) {
	_ = l.Close() // twice when the server is closing
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isClosed || s.draining.Load()
}

// hold counts n bytes of memory for a request, unless there are too many already.
func (s *Server) hold(n int64) bool {
	if s.held.Add(n) > s.opts.MaxBytes {
		s.held.Add(-n)
		return false
	}
	return true
}

func (s *Server) enter() {
	s.inFlight.Add(1)
	s.requests.Add(1)
}

func (s *Server) leave() {
	if s.inFlight.Add(-1) == 0 && s.draining.Load() {
		select {
		case s.drained <- struct{}{}:
		default: // it has been told
		}
	}
}

// Shutdown stops accepting, answers new requests with CodeShuttingDown, waits until the answers of those under way
// are written or ctx ends, and closes.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	for l := range s.listeners {
		_ = l.Close() // its Serve notices
	}
	s.mu.Unlock()
	var err error
	for s.inFlight.Load() > 0 && err == nil {
		select {
		case <-s.drained:
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.closed:
		}
	}
	return errors.Join(err, s.Close())
}

// Close closes listeners and connections and waits for their goroutines. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.isClosed {
		s.isClosed = true
		close(s.closed)
	}
	for l := range s.listeners {
		_ = l.Close() // its Serve notices
	}
	for c := range s.conns {
		c.abort()
	}
	s.mu.Unlock()
	s.tasks.Wait()
	return nil
}
