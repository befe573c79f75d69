package sdk

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// fakeNet connects by address without a kernel, so that synctest sees every wait.
type fakeNet struct {
	mu        sync.Mutex
	listeners map[string]*fakeListener
	conns     map[string][]net.Conn
	dials     int
	frozen    map[string]bool
	rtt       map[string]time.Duration
}

func (n *fakeNet) listen(addr string) *fakeListener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &fakeListener{net: n, addr: addr, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l
}

func (n *fakeNet) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	l, frozen := n.listeners[addr], n.frozen[addr]
	n.mu.Unlock()
	if frozen { // the kernel takes the connection, and nobody reads from it
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		return client, nil
	}
	refused := &net.OpError{Op: "dial", Net: "fake", Err: net.UnknownNetworkError("connection refused: " + addr)}
	if l == nil {
		return nil, refused
	}
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.conns == nil {
			n.conns = make(map[string][]net.Conn)
		}
		n.conns[addr] = append(n.conns[addr], client)
		return &slowConn{Conn: client, by: n.rtt[addr]}, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut breaks every connection to an address.
func (n *fakeNet) cut(addr string) {
	n.mu.Lock()
	conns := n.conns[addr]
	delete(n.conns, addr)
	n.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

type fakeListener struct {
	net    *fakeNet
	addr   string
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *fakeListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if l.net.listeners[l.addr] == l {
			delete(l.net.listeners, l.addr)
		}
	})
	return nil
}

func (l *fakeListener) Addr() net.Addr { return fakeAddr(l.addr) }

type fakeAddr string

func (a fakeAddr) Network() string { return "fake" }
func (a fakeAddr) String() string  { return string(a) }

// freeze makes new connections to an address lead nowhere.
func (n *fakeNet) freeze(addr string, frozen bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen == nil {
		n.frozen = make(map[string]bool)
	}
	n.frozen[addr] = frozen
}

// delay makes what is sent to an address from now on arrive so much later.
func (n *fakeNet) delay(rtt map[string]time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rtt = rtt
}

// slowConn is a long way off.
type slowConn struct {
	net.Conn
	by time.Duration
}

func (c *slowConn) Write(b []byte) (int, error) {
	if c.by > 0 {
		time.Sleep(c.by)
	}
	return c.Conn.Write(b)
}
