package gossip

import (
	"context"
	"errors"
	"log"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Timers of the failure detector. A lone death is certain after about 6 s in a small cluster (a probe, then 4 s in which
// the suspicion can be cleared) and 12 s among 200; of several at once after at most twice that, where memberlist's own
// default would take 29 s.
const (
	suspicionMult    = 4
	suspicionMaxMult = 2
	retransmitMult   = 4
	packetBytes      = 1400
	packetQueue      = 2048
	streamQueue      = 64
	handoffQueue     = 4096
	protocol         = 1 // of our own messages
)

// generation is one memberlist, under one name. A renamed process gets another one; the network is lent to the
// current.
type generation struct {
	agent   *Agent
	name    string
	life    life
	retired atomic.Bool
	ctx     context.Context // of its streams; ends when it is retired
	cancel  context.CancelFunc
	packets chan *memberlist.Packet
	streams chan net.Conn
	list    *memberlist.Memberlist
}

// newGeneration starts a memberlist under the name of l; it knows nobody yet.
func (a *Agent) newGeneration(l life) (*generation, error) {
	g := &generation{
		agent: a, life: l, name: l.name(a.id),
		packets: make(chan *memberlist.Packet, packetQueue),
		streams: make(chan net.Conn, streamQueue),
	}
	g.ctx, g.cancel = context.WithCancel(a.ctx)
	c := memberlist.DefaultLANConfig()
	c.Name = g.name
	c.Label = a.label
	c.Transport = g
	c.ProtocolVersion = memberlist.ProtocolVersionMax
	c.DelegateProtocolVersion, c.DelegateProtocolMin, c.DelegateProtocolMax = protocol, protocol, protocol
	c.SuspicionMult, c.SuspicionMaxTimeoutMult, c.RetransmitMult = suspicionMult, suspicionMaxMult, retransmitMult
	c.HandoffQueueDepth = handoffQueue
	c.UDPBufferSize = packetBytes
	c.EnableCompression = false // LZW costs more than it saves on what is mostly random ids
	c.SecretKey = a.o.SecretKey
	c.Delegate, c.Events, c.Alive = delegate{g}, delegate{g}, delegate{g}
	c.Logger = log.New(&logWriter{log: a.log}, "", 0)
	a.o.Network.Receive(g.packet, g.stream)
	list, err := memberlist.Create(c)
	if err != nil {
		g.retire()
		return nil, err
	}
	g.list = list
	return g, nil
}

// retire ends a generation: from here on it neither hears nor says anything. Its goroutines end by themselves.
func (g *generation) retire() {
	if g.retired.Swap(true) {
		return
	}
	g.cancel()
	if g.list != nil {
		_ = g.list.Shutdown() // it has nothing to report: our transport's Shutdown does not fail
	}
	for {
		select {
		case c := <-g.streams:
			_ = c.Close()
		default:
			return
		}
	}
}

// states asks the memberlist for everybody it knows, and tells it about others first.
func (g *generation) states(tell []state) ([]state, error) {
	if g.retired.Load() {
		return nil, errRetired
	}
	near, far := net.Pipe()
	g.stream(far)
	return exchange(near, g.agent.label, g.agent.o.SecretKey, tell)
}

var errRetired = errors.New("this name was given up")

// packet takes what the network received. It drops what memberlist is too slow for, as a socket's buffer would.
func (g *generation) packet(b []byte, from net.Addr) {
	if g.retired.Load() {
		return
	}
	select {
	case g.packets <- &memberlist.Packet{Buf: b, From: from, Timestamp: time.Now()}:
	default:
		g.agent.dropped.Add(1)
	}
}

func (g *generation) stream(c net.Conn) {
	if !g.retired.Load() {
		select {
		case g.streams <- c:
			return
		default:
			g.agent.dropped.Add(1)
		}
	}
	_ = c.Close()
}

// What follows is memberlist's NodeAwareTransport.

func (g *generation) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	addr := g.agent.o.Network.Addr()
	return addr.Addr().AsSlice(), int(addr.Port()), nil
}

func (g *generation) WriteTo(b []byte, addr string) (time.Time, error) {
	if g.retired.Load() {
		return time.Time{}, errRetired
	}
	return time.Now(), g.agent.o.Network.Send(addr, b)
}

func (g *generation) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return g.WriteTo(b, to.Addr)
}

func (g *generation) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	if g.retired.Load() {
		return nil, errRetired
	}
	ctx, cancel := context.WithTimeout(g.ctx, timeout)
	defer cancel()
	c, err := g.agent.o.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &dialed{c, context.AfterFunc(g.ctx, func() { _ = c.Close() })}, nil
}

// dialed is a stream that ends with its generation, so that nobody waits for an answer to a name that was given up.
type dialed struct {
	net.Conn
	forget func() bool
}

func (d *dialed) Close() error {
	d.forget()
	return d.Conn.Close()
}

func (g *generation) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return g.DialTimeout(to.Addr, timeout)
}

func (g *generation) PacketCh() <-chan *memberlist.Packet { return g.packets }
func (g *generation) StreamCh() <-chan net.Conn           { return g.streams }
func (g *generation) Shutdown() error                     { return nil }

var _ memberlist.NodeAwareTransport = (*generation)(nil)

// hostPort is an address in the form in which addresses are compared: 10.0.0.1:2922.
func hostPort(ip []byte, port uint16) string {
	if a, ok := netip.AddrFromSlice(ip); ok {
		return netip.AddrPortFrom(a.Unmap(), port).String()
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.Itoa(int(port)))
}
