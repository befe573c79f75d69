package server

import (
	"net"
	"sync"
)

// limitConns lets at most n connections of a listener be open at once; the next waits in the kernel's queue.
func limitConns(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	free   chan struct{} // one token an open connection
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: c, give: sync.OnceFunc(func() { <-l.free })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	give func()
}

func (c *limitedConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}
