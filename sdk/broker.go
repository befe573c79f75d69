package sdk

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// probeTimeout is how long a live connection may take for a ping.
const probeTimeout = 2 * time.Second

// broker is one address and the one connection to it. All users of the client share the connection; it is opened
// when first needed and opened again when needed after it broke.
type broker struct {
	c    *Client
	addr string
	conn atomic.Pointer[mux.Conn] // the last one opened; it may have ended

	suspected  atomic.Bool              // a probe is under way
	rtt        atomic.Int64             // of pings, smoothed; 0 before the first
	measured   atomic.Int64             // when the last ping began, in Unix nanoseconds
	doubtUntil atomic.Int64             // in Unix nanoseconds
	silent     atomic.Pointer[mux.Conn] // the last one that did not answer a probe

	mu struct {
		sync.Mutex
		dial      *dialing // under way; nil when none is
		failures  int      // dials that failed since one succeeded
		notBefore time.Time
		closed    bool
	}
}

// dialing is an attempt to connect that any number of callers wait for.
type dialing struct {
	began time.Time
	done  chan struct{}
	conn  *mux.Conn
	err   error
}

// live is the connection, or nil when there is none at the moment. It never waits.
func (b *broker) live() *mux.Conn {
	conn := b.conn.Load()
	if conn == nil {
		return nil
	}
	select {
	case <-conn.Done():
		return nil
	default:
		return conn
	}
}

// usable reports whether there is a connection, and no doubt about it.
func (b *broker) usable() bool { return b.live() != nil && !b.suspected.Load() && !b.doubted() }

// doubtFor is how long a broker that does not get done what it was sent is not asked about the rest of the cluster.
const doubtFor = 2 * time.Second

// doubt makes others be asked first for a while: one that is cut off from the rest of the cluster answers its pings, and
// knows nothing new.
func (b *broker) doubt() { b.doubtUntil.Store(time.Now().Add(doubtFor).UnixNano()) }

func (b *broker) doubted() bool { return time.Now().UnixNano() < b.doubtUntil.Load() }

// dialSlow is how long an attempt to connect may take before the broker counts as out of reach.
const dialSlow = 250 * time.Millisecond

// resting reports whether the broker is better left alone for now: its connection is silent, or a new one does not come,
// or is not tried before the pause after a failure has passed.
func (b *broker) resting() bool {
	if b.live() != nil {
		return b.suspected.Load()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.mu.notBefore) || b.mu.dial != nil && time.Since(b.mu.dial.began) > dialSlow
}

// connectSoon begins to connect, for whoever needs it later.
func (b *broker) connectSoon() { _, _ = b.join() } // a client that is closed has no later

// connect returns the connection, opening it if need be. Callers share one attempt, which outlives a caller whose
// context ends: the others still want it.
func (b *broker) connect(ctx context.Context) (*mux.Conn, error) {
	if conn := b.live(); conn != nil {
		return conn, nil
	}
	d, err := b.join()
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, contextError(ctx, "connect to "+b.addr, base.NotApplied)
	}
}

// connectWithin is connect for whoever has others to turn to: one that has vanished without a word would cost the whole
// dial timeout. The attempt itself goes on.
func (b *broker) connectWithin(ctx context.Context, patience time.Duration) (*mux.Conn, error) {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := b.connect(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		err = base.Errorf(base.CodeUnreachable, "connect to "+b.addr, "no connection within %v", patience)
	}
	return conn, err
}

// expected ends the pause after failed dials: somebody who knows has named the broker, so it may be back.
func (b *broker) expected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.notBefore = time.Time{}
}

// join finds the attempt under way or begins one.
func (b *broker) join() (*dialing, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.dial != nil {
		return b.mu.dial, nil
	}
	d := &dialing{began: time.Now(), done: make(chan struct{})}
	if conn := b.live(); conn != nil { // an attempt ended between the caller's look and the lock
		d.conn = conn
		close(d.done)
		return d, nil
	}
	if b.mu.closed || !b.c.group.Go("dial", func(ctx context.Context) error { b.dial(ctx, d); return nil }) {
		return nil, errClosed("client")
	}
	b.mu.dial = d
	return d, nil
}

// dial waits until the backoff after earlier failures has passed, connects, and publishes the result. The name is
// resolved by the dialer, so anew each time.
func (b *broker) dial(ctx context.Context, d *dialing) {
	b.mu.Lock()
	delay := time.Until(b.mu.notBefore)
	b.mu.Unlock()
	if task.Pause(ctx, delay) {
		d.conn, d.err = b.open(ctx)
	} else {
		d.err = errClosed("client")
	}

	b.mu.Lock()
	b.mu.dial = nil
	closed := b.mu.closed
	if d.err != nil {
		b.mu.failures++
		b.mu.notBefore = time.Now().Add(dialBackoff.wait(b.mu.failures))
	} else {
		b.mu.failures, b.mu.notBefore = 0, time.Time{}
		b.conn.Store(d.conn)
	}
	b.mu.Unlock()

	if closed && d.conn != nil { // close() came while the handshake ran, and found no connection to close
		_ = d.conn.Close()
		d.conn, d.err = nil, errClosed("client")
	}
	close(d.done)
}

func (b *broker) open(ctx context.Context) (*mux.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	conn, err := mux.Dial(ctx, b.addr, mux.ClientOptions{
		Dial:             mux.Dialer(b.c.cfg.dial),
		Hello:            wire.HelloRequest{ClientName: b.c.cfg.name, ClientVersion: clientVersion, Cluster: b.c.brokers.cluster()},
		HandshakeTimeout: b.c.cfg.dialTimeout,
		Logger:           b.c.cfg.logger,
		Guard:            b.c.cfg.guard,
	})
	if err != nil {
		b.c.cfg.logger.Debug("connect to broker", "address", b.addr, "error", err)
		return nil, b.c.brokers.named(b.addr, dialError(b.addr, err))
	}
	hello := conn.Hello()
	b.c.maxRecord.Store(hello.MaxRecordBytes)
	b.c.maxBatch.Store(hello.MaxBatchBytes)
	b.c.brokers.met(hello, b.addr)
	b.c.cfg.logger.Debug("connected to broker", "address", b.addr, "node", hello.Node, "version", hello.Version)
	return conn, nil
}

// suspect looks whether a connection on which a request ran out of time is still alive, and ends it if not. The
// request alone does not say: it may wait for an election. Without this, a connection whose other end has vanished
// would cost every request its whole deadline until TCP gives up, which takes minutes.
func (b *broker) suspect(conn *mux.Conn) {
	if !b.suspected.CompareAndSwap(false, true) {
		return
	}
	started := b.c.group.Go("probe", func(ctx context.Context) error {
		defer b.suspected.Store(false)
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		if _, err := conn.Call(ctx, wire.KindPing, wire.Encode(wire.PingRequest{}), nil); errors.Is(err, context.DeadlineExceeded) {
			b.c.cfg.logger.Warn("no answer to a ping; closing the connection", "address", b.addr)
			b.silent.Store(conn)
			_ = conn.Close()
		}
		return nil
	})
	if !started {
		b.suspected.Store(false)
	}
}

// suspectSoon does it in a while, unless the timer is stopped: the answer has come.
func (b *broker) suspectSoon(conn *mux.Conn) *time.Timer {
	return time.AfterFunc(suspectAfter, b.c.cfg.guard.Func(func() { b.suspect(conn) }))
}

// close ends the connection and waits for its goroutines.
func (b *broker) close() {
	b.mu.Lock()
	b.mu.closed = true
	b.mu.Unlock()
	if conn := b.conn.Load(); conn != nil {
		_ = conn.Close()
	}
}

// clientVersion is what this SDK calls itself in the handshake.
const clientVersion = "0.1.0"
