package server

import (
	"context"
	"net"
	"sync"

	"github.com/eastguard/eastguard/internal/peer"
)

// cable is what connects a machine with the others of a test, all but its clients. While it is pulled nothing arrives and
// nothing is refused: the machine is only silent.
type cable struct {
	mu     sync.Mutex
	pulled chan struct{} // nil while it is in; closed when it is put back
}

// wire gives a machine, before it starts, a cable to pull.
func (m *machine) wire() *cable {
	c := new(cable)
	m.deps = func(d *Deps) {
		ports := 0
		d.Listen = func(network, addr string) (net.Listener, error) {
			l, err := net.Listen(network, addr)
			if ports++; err != nil || ports == 1 { // the first is for clients
				return l, err
			}
			return cabledListener{l, c}, nil
		}
		d.ListenPacket = func(network, addr string) (net.PacketConn, error) {
			p, err := net.ListenPacket(network, addr)
			return cabledPackets{p, c}, err
		}
		d.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if err := c.wait(ctx.Done()); err != nil {
				return nil, err
			}
			conn, err := peer.DialTCP(ctx, addr)
			if err != nil {
				return nil, err
			}
			return newCabledConn(conn, c), nil
		}
	}
	return c
}

func (c *cable) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pulled == nil {
		c.pulled = make(chan struct{})
	}
}

func (c *cable) putBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pulled != nil {
		close(c.pulled)
		c.pulled = nil
	}
}

func (c *cable) out() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pulled
}

// wait returns once the cable is in, or with an error when somebody gives up.
func (c *cable) wait(gaveUp <-chan struct{}) error {
	for out := c.out(); out != nil; out = c.out() {
		select {
		case <-out:
		case <-gaveUp:
			return net.ErrClosed
		}
	}
	return nil
}

type cabledListener struct {
	net.Listener
	cable *cable
}

func (l cabledListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newCabledConn(conn, l.cable), nil
}

type cabledConn struct {
	net.Conn
	cable  *cable
	closed chan struct{}
	once   sync.Once
}

func newCabledConn(conn net.Conn, c *cable) *cabledConn {
	return &cabledConn{Conn: conn, cable: c, closed: make(chan struct{})}
}

func (c *cabledConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if werr := c.cable.wait(c.closed); werr != nil {
		return 0, werr
	}
	return n, err
}

func (c *cabledConn) Write(b []byte) (int, error) {
	if err := c.cable.wait(c.closed); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *cabledConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

type cabledPackets struct {
	net.PacketConn
	cable *cable
}

func (p cabledPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(b)
		if err != nil || p.cable.out() == nil {
			return n, from, err
		}
	}
}

func (p cabledPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	if p.cable.out() != nil {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}
