package gossip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Network carries packets, which may be lost, and streams between processes. The cluster port provides it: packets by
// UDP, streams by the tagged TCP listener.
type Network interface {
	// Addr is where the others reach this process.
	Addr() netip.AddrPort
	// Send hands a packet of at most 1,400 bytes over, or loses it. It does not block and keeps no reference to b.
	Send(to string, b []byte) error
	// Dial opens a stream to the gossip of another process.
	Dial(ctx context.Context, to string) (net.Conn, error)
	// Receive names who gets packets and streams from now on; neither function blocks. Nil, nil = nobody.
	Receive(packet func(b []byte, from net.Addr), stream func(net.Conn))
}

// UDP is the Network of a running broker: packets on a socket of its own, streams from the cluster port's listener.
type UDP struct {
	socket    net.PacketConn
	advertise netip.AddrPort
	dial      func(ctx context.Context, to string) (net.Conn, error)

	mu     sync.RWMutex
	packet func(b []byte, from net.Addr)
	stream func(net.Conn)

	done chan struct{}
}

// NewUDP makes a Network of a bound socket and of dial, which opens a stream with the gossip tag. Start reads.
func NewUDP(socket net.PacketConn, advertise netip.AddrPort, dial func(ctx context.Context, to string) (net.Conn, error)) *UDP {
	return &UDP{socket: socket, advertise: advertise, dial: dial, done: make(chan struct{})}
}

// Start reads packets until Close.
func (u *UDP) Start() { go u.read() }

func (u *UDP) read() {
	defer close(u.done)
	buf := make([]byte, 1<<16)
	for {
		n, from, err := u.socket.ReadFrom(buf)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // a passing error of the socket, such as no buffers; do not spin on it
			continue
		}
		u.mu.RLock()
		packet := u.packet
		u.mu.RUnlock()
		if packet != nil && n > 0 {
			packet(append([]byte(nil), buf[:n]...), from)
		}
	}
}

// Accept takes a stream that the listener found to be gossip's. It does not block.
func (u *UDP) Accept(c net.Conn) {
	u.mu.RLock()
	stream := u.stream
	u.mu.RUnlock()
	if stream == nil {
		_ = c.Close()
		return
	}
	stream(c)
}

// Addr implements Network.
func (u *UDP) Addr() netip.AddrPort { return u.advertise }

// Send implements Network.
func (u *UDP) Send(to string, b []byte) error {
	addr, err := netip.ParseAddrPort(to)
	if err != nil {
		return err
	}
	_, err = u.socket.WriteTo(b, net.UDPAddrFromAddrPort(addr))
	return err
}

// Dial implements Network.
func (u *UDP) Dial(ctx context.Context, to string) (net.Conn, error) { return u.dial(ctx, to) }

// Receive implements Network.
func (u *UDP) Receive(packet func(b []byte, from net.Addr), stream func(net.Conn)) {
	u.mu.Lock()
	u.packet, u.stream = packet, stream
	u.mu.Unlock()
}

// Close closes the socket and waits for the reader. Call it after the agent's Close.
func (u *UDP) Close() error {
	err := u.socket.Close()
	<-u.done
	return err
}
