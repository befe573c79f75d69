package lobby

import (
	"net"
	"sync"
)

// Guard is a listener whose connections keep a seat in the room until their first byte has been read. It is for those who
// accept connections and read them without knowing of rooms.
func (r *Room) Guard(l net.Listener) net.Listener { return &guarded{Listener: l, room: r} }

type guarded struct {
	net.Listener
	room *Room
}

// Accept implements net.Listener.
func (l *guarded) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &guardedConn{Conn: nc, leave: sync.OnceFunc(l.room.Enter(nc).leave)}, nil
}

// leave is Leave for those who find out by the connection itself.
func (g *Guest) leave() { g.Leave() }

type guardedConn struct {
	net.Conn
	leave func()
}

// Read implements net.Conn.
func (c *guardedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.leave()
	}
	return n, err
}

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
