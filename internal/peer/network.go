package peer

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Network is a network in memory, for tests in virtual time: every wait in it is one that testing/synctest sees.
// Addresses are any strings; the part before a colon names the machine, which is what faults are about.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*memListener
	links     map[*memLink]bool
	dead      map[string]bool // machines that Kill has ended
	cuts      map[Cut]bool
	healed    chan struct{} // closed and made anew when a cut heals
}

// Cut loses what goes from one machine to another over connections that were opened to a port. An empty field means any.
type Cut struct{ From, To, Port string }

// Loses reports whether the cut loses what goes from one machine to another.
func (c Cut) Loses(from, to, port string) bool {
	return (c.From == "" || c.From == from) && (c.To == "" || c.To == to) && (c.Port == "" || c.Port == port)
}

// memBuffer is how much a direction takes before a write waits.
const memBuffer = 1 << 20

// NewNetwork makes an empty network.
func NewNetwork() *Network {
	return &Network{
		listeners: make(map[string]*memListener), links: make(map[*memLink]bool),
		dead: make(map[string]bool), cuts: make(map[Cut]bool), healed: make(chan struct{}),
	}
}

// Listen opens a port. An address that is in use is an error.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: memAddr(addr), Err: syscall.EADDRINUSE}
	}
	delete(n.dead, machine(addr))
	l := &memListener{network: n, addr: addr, conns: make(chan net.Conn, 128), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dialer dials from a machine. A port that nobody listens on refuses at once, a machine beyond a split does not
// answer until it heals or ctx ends.
func (n *Network) Dialer(from string) Dialer {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		for {
			nc, healed, err := n.dial(from, addr)
			if healed == nil {
				return nc, err
			}
			select {
			case <-healed:
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Net: "mem", Addr: memAddr(addr), Err: ctx.Err()}
			}
		}
	}
}

// dial makes a connection, or returns what to wait for.
func (n *Network) dial(from, addr string) (net.Conn, <-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	to, port := machine(addr), portOf(addr)
	if n.dead[from] {
		return nil, nil, &net.OpError{Op: "dial", Net: "mem", Addr: memAddr(addr), Err: syscall.ENETDOWN}
	}
	if n.losesLocked(from, to, port) || n.losesLocked(to, from, port) {
		return nil, n.healed, nil
	}
	refused := &net.OpError{Op: "dial", Net: "mem", Addr: memAddr(addr), Err: syscall.ECONNREFUSED}
	l := n.listeners[addr]
	if l == nil {
		return nil, nil, refused
	}
	there, back := newMemPipe(), newMemPipe()
	link := &memLink{from: from, to: to, port: port, there: there, back: back}
	near := &memConn{network: n, link: link, in: back, out: there, local: memAddr(from), remote: memAddr(addr)}
	far := &memConn{network: n, link: link, in: there, out: back, local: memAddr(addr), remote: memAddr(from)}
	select {
	case l.conns <- far:
	default:
		return nil, nil, refused // the backlog is full
	}
	n.links[link] = true
	return near, nil, nil
}

// Split cuts the machines apart: nothing arrives in either direction, and nobody is told.
func (n *Network) Split(a, b string) {
	n.SplitOneWay(a, b)
	n.SplitOneWay(b, a)
}

// SplitOneWay loses what goes from one machine to another; the way back works.
func (n *Network) SplitOneWay(from, to string) { n.Cut(Cut{From: from, To: to}) }

// Cut loses what the cut says, until Mend or Heal.
func (n *Network) Cut(c Cut) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[c] = true
	n.applyLocked()
}

// Mend ends one cut. What was on its way arrives now, as TCP would send it again.
func (n *Network) Mend(c Cut) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cuts, c)
	n.healLocked()
}

// Heal ends every cut, as Mend does.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
	n.healLocked()
}

func (n *Network) healLocked() {
	n.applyLocked()
	close(n.healed)
	n.healed = make(chan struct{})
}

func (n *Network) applyLocked() {
	for l := range n.links {
		l.there.hold(n.losesLocked(l.from, l.to, l.port))
		l.back.hold(n.losesLocked(l.to, l.from, l.port))
	}
}

func (n *Network) losesLocked(from, to, port string) bool {
	for c := range n.cuts {
		if c.Loses(from, to, port) {
			return true
		}
	}
	return false
}

// Reset breaks all connections between two machines, as a router that lost its tables would.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		if l.from == a && l.to == b || l.from == b && l.to == a {
			l.there.reset()
			l.back.reset()
		}
	}
}

// Kill is the end of a machine's process: its ports are closed, its connections reset, and it dials no more, until
// somebody listens on the machine again. Who is beyond a split learns of it when that heals.
func (n *Network) Kill(name string) {
	n.mu.Lock()
	var listeners []*memListener
	for addr, l := range n.listeners {
		if machine(addr) == name {
			listeners = append(listeners, l)
		}
	}
	n.dead[name] = true
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		if l.from == name || l.to == name {
			l.there.reset()
			l.back.reset()
		}
	}
}

func (n *Network) forget(l *memLink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, l)
}

// Links is the number of connections that one end at least has not closed.
func (n *Network) Links() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links)
}

func machine(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

type memAddr string

// Network implements net.Addr.
func (memAddr) Network() string { return "mem" }

// String implements net.Addr.
func (a memAddr) String() string { return string(a) }

// memLink is one connection, as the network sees it.
type memLink struct {
	from, to    string
	port        string // of the machine that was dialled
	there, back *memPipe
}

type memListener struct {
	network *Network
	addr    string
	conns   chan net.Conn
	done    chan struct{}
}

// Accept implements net.Listener.
func (l *memListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections in the backlog are reset.
func (l *memListener) Close() error {
	n := l.network
	n.mu.Lock()
	first := n.listeners[l.addr] == l
	if first {
		delete(n.listeners, l.addr)
	}
	n.mu.Unlock()
	if !first {
		return net.ErrClosed
	}
	close(l.done)
	for {
		select {
		case nc := <-l.conns:
			_ = nc.Close()
		default:
			return nil
		}
	}
}

// Addr implements net.Listener.
func (l *memListener) Addr() net.Addr { return memAddr(l.addr) }

// memConn is one end of a connection.
type memConn struct {
	network       *Network
	link          *memLink
	in, out       *memPipe
	local, remote net.Addr
}

// Read implements net.Conn.
func (c *memConn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn.
func (c *memConn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close implements net.Conn. The other end reads what was written, then the end of the stream.
func (c *memConn) Close() error {
	c.in.closeRead()
	c.out.closeWrite()
	if c.in.over() && c.out.over() {
		c.network.forget(c.link)
	}
	return nil
}

// LocalAddr implements net.Conn.
func (c *memConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// memPipe is one direction of a connection.
type memPipe struct {
	mu       sync.Mutex
	moved    *sync.Cond
	buf      []byte
	held     bool // nothing arrives: behind a split
	writeEnd bool // the writer has closed
	readEnd  bool // the reader has
	broken   bool
	readBy   deadline
	writeBy  deadline
}

// deadline is a limit that wakes whoever waits when it comes.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newMemPipe() *memPipe {
	p := &memPipe{}
	p.moved = sync.NewCond(&p.mu)
	return p
}

func (p *memPipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readEnd:
			return 0, net.ErrClosed
		case p.broken && !p.held:
			return 0, syscall.ECONNRESET
		case p.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case !p.held && len(p.buf) > 0:
			n := copy(b, p.buf)
			if p.buf = p.buf[n:]; len(p.buf) == 0 {
				p.buf = nil
			}
			p.moved.Broadcast()
			return n, nil
		case !p.held && p.writeEnd:
			return 0, io.EOF
		}
		p.moved.Wait()
	}
}

func (p *memPipe) write(b []byte) (written int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.writeEnd:
			return written, net.ErrClosed
		case (p.broken || p.readEnd) && !p.held:
			return written, syscall.ECONNRESET
		case p.writeBy.passed:
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		case len(p.buf) < memBuffer:
			n := min(len(b), memBuffer-len(p.buf))
			p.buf = append(p.buf, b[:n]...)
			b, written = b[n:], written+n
			p.moved.Broadcast()
			continue
		}
		p.moved.Wait()
	}
}

func (p *memPipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.moved.Broadcast()
}

func (p *memPipe) hold(held bool) { p.change(func() { p.held = held }) }
func (p *memPipe) reset()         { p.change(func() { p.broken, p.buf = true, nil }) }
func (p *memPipe) closeRead()     { p.change(func() { p.readEnd = true; p.readBy.stop() }) }
func (p *memPipe) closeWrite()    { p.change(func() { p.writeEnd = true; p.writeBy.stop() }) }

// over reports whether both ends have closed.
func (p *memPipe) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readEnd && p.writeEnd
}

func (p *memPipe) setDeadline(d *deadline, t time.Time) {
	p.change(func() {
		d.stop()
		switch wait := time.Until(t); {
		case t.IsZero():
		case wait <= 0:
			d.passed = true
		default:
			var timer *time.Timer
			timer = time.AfterFunc(wait, func() {
				p.change(func() { d.passed = d.passed || d.timer == timer })
			})
			d.timer = timer
		}
	})
}

// stop forgets the limit.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.passed = nil, false
}
