package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/internal/peer"
)

// Network carries streams and packets between machines, which are named by their IP address.
type Network struct {
	streams *peer.Network

	mu      sync.Mutex
	sockets map[string]*socket
	cuts    map[peer.Cut]bool // as streams has them, for packets
	lose    func() bool       // packets
	latency time.Duration     // on average; set before the first machine
}

// NewNetwork makes a network without machines, on which everything takes a while to arrive.
func NewNetwork(latency time.Duration) *Network {
	return &Network{streams: peer.NewNetwork(), sockets: make(map[string]*socket), cuts: make(map[peer.Cut]bool), latency: latency}
}

// delay is how long one message takes. What order that gives the messages of different connections is left to chance.
func (n *Network) delay() time.Duration { return rand.N(2*n.latency + 1) }

// Split cuts each group of machines off from the others. A machine in no group reaches everybody.
func (n *Network) Split(groups ...[]string) {
	for i, near := range groups {
		for _, far := range groups[i+1:] {
			for _, a := range near {
				for _, b := range far {
					n.Cut(a, b)
					n.Cut(b, a)
				}
			}
		}
	}
}

// Cut loses what goes from one machine to another.
func (n *Network) Cut(from, to string) { n.Lose(peer.Cut{From: from, To: to}) }

// Lose loses what the cut says; packets go to the port of their receiver.
func (n *Network) Lose(c peer.Cut) {
	n.mu.Lock()
	n.cuts[c] = true
	n.mu.Unlock()
	n.streams.Cut(c)
}

// Mend ends one cut.
func (n *Network) Mend(c peer.Cut) {
	n.mu.Lock()
	delete(n.cuts, c)
	n.mu.Unlock()
	n.streams.Mend(c)
}

// Heal ends every cut.
func (n *Network) Heal() {
	n.mu.Lock()
	clear(n.cuts)
	n.mu.Unlock()
	n.streams.Heal()
}

// LosePackets makes packets disappear where f says so; nil = none.
func (n *Network) LosePackets(f func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = f
}

// Machine is one process's door to the network. It can be shut for good, which ends what the process can do to others.
func (n *Network) Machine(ip string) *Machine { return &Machine{network: n, ip: ip} }

// Machine is a machine while one process runs on it.
type Machine struct {
	network *Network
	ip      string
	dead    atomic.Bool
}

// Listen opens a port.
func (m *Machine) Listen(_, addr string) (net.Listener, error) {
	if m.dead.Load() {
		return nil, m.down("listen")
	}
	l, err := m.network.streams.Listen(addr)
	if err != nil {
		return nil, err
	}
	return slowListener{l, m.network}, nil
}

// Dial opens a connection.
func (m *Machine) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if m.dead.Load() {
		return nil, m.down("dial")
	}
	nc, err := m.network.streams.Dialer(m.ip)(ctx, addr)
	if err != nil {
		return nil, err
	}
	return slowConn{nc, m.network}, nil
}

// ListenPacket binds a port for packets.
func (m *Machine) ListenPacket(_, addr string) (net.PacketConn, error) {
	if m.dead.Load() {
		return nil, m.down("listen")
	}
	return m.network.bind(addr)
}

// Kill shuts the door: connections are reset, ports closed, nothing opens any more.
func (m *Machine) Kill() {
	m.dead.Store(true)
	m.network.streams.Kill(m.ip)
	m.network.mu.Lock()
	var mine []*socket
	for addr, s := range m.network.sockets {
		if strings.HasPrefix(addr, m.ip+":") {
			mine = append(mine, s)
		}
	}
	m.network.mu.Unlock()
	for _, s := range mine {
		_ = s.Close()
	}
}

func (m *Machine) down(op string) error {
	return &net.OpError{Op: op, Net: "sim", Err: syscall.ENETDOWN}
}

// slowConn takes its time to send.
type slowConn struct {
	net.Conn
	network *Network
}

// Write implements net.Conn.
func (c slowConn) Write(b []byte) (int, error) {
	time.Sleep(c.network.delay())
	return c.Conn.Write(b)
}

type slowListener struct {
	net.Listener
	network *Network
}

// Accept implements net.Listener.
func (l slowListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowConn{nc, l.network}, nil
}

func (n *Network) bind(addr string) (*socket, error) {
	ip, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sockets[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "sim", Err: syscall.EADDRINUSE}
	}
	s := &socket{network: n, addr: ip, in: make(chan packet, 1024), done: make(chan struct{}), moved: make(chan struct{})}
	n.sockets[addr] = s
	return s, nil
}

// route finds the receiver of a packet; nil when it is lost.
func (n *Network) route(from netip.AddrPort, to string) *socket {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, port, err := net.SplitHostPort(to)
	if err != nil || n.lose != nil && n.lose() {
		return nil
	}
	for c := range n.cuts {
		if c.Loses(from.Addr().String(), host, port) {
			return nil
		}
	}
	return n.sockets[to]
}

// socket is a bound packet port.
type socket struct {
	network *Network
	addr    netip.AddrPort
	in      chan packet
	close   sync.Once
	done    chan struct{}

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline is set anew
}

type packet struct {
	from netip.AddrPort
	data []byte
}

// ReadFrom implements net.PacketConn.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		timeout, moved, stop := s.timeout()
		select {
		case p := <-s.in:
			stop()
			return copy(b, p.data), net.UDPAddrFromAddrPort(p.from), nil
		case <-s.done:
			stop()
			return 0, nil, net.ErrClosed
		case <-timeout:
			return 0, nil, os.ErrDeadlineExceeded
		case <-moved:
			stop()
		}
	}
}

// over is a time that has passed.
var over = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

func (s *socket) timeout() (passed <-chan time.Time, moved <-chan struct{}, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline.IsZero() {
		return nil, s.moved, func() {}
	}
	left := time.Until(s.deadline)
	if left <= 0 { // with Go 1.26 the race detector may crash over a timer that is due already, in virtual time
		return over, s.moved, func() {}
	}
	t := time.NewTimer(left)
	return t.C, s.moved, func() { t.Stop() }
}

// WriteTo implements net.PacketConn. A receiver whose queue is full loses the packet, as a kernel does.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-s.done:
		return 0, net.ErrClosed
	default:
	}
	if far := s.network.route(s.addr, to.String()); far != nil {
		p := packet{from: s.addr, data: append([]byte(nil), b...)}
		time.AfterFunc(s.network.delay(), func() {
			select {
			case far.in <- p:
			default:
			}
		})
	}
	return len(b), nil
}

// Close implements net.PacketConn.
func (s *socket) Close() error {
	err := net.ErrClosed
	s.close.Do(func() {
		s.network.mu.Lock()
		if name := s.addr.String(); s.network.sockets[name] == s {
			delete(s.network.sockets, name)
		}
		s.network.mu.Unlock()
		close(s.done)
		err = nil
	})
	return err
}

// LocalAddr implements net.PacketConn.
func (s *socket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.addr) }

// SetDeadline implements net.PacketConn; writes never wait.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

// SetWriteDeadline implements net.PacketConn.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }
