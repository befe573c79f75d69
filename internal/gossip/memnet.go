package gossip

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
)

// MemNet is a network in memory for tests in virtual time: packets arrive at once or are lost, nothing blocks but a
// dial across a cut, which lasts until its deadline as it would in the field.
type MemNet struct {
	mu    sync.Mutex
	hosts map[string]*MemHost
	side  map[string]int // of a partition, by address; absent = 0
	lose  func() bool    // packets

	packets, bytes atomic.Int64
}

// NewMemNet makes a network without hosts.
func NewMemNet() *MemNet {
	return &MemNet{hosts: make(map[string]*MemHost), side: make(map[string]int)}
}

// Split cuts the network: each group hears only itself. Hosts in no group form one more.
func (n *MemNet) Split(groups ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.side)
	for i, g := range groups {
		for _, addr := range g {
			n.side[addr] = i + 1
		}
	}
}

// Heal ends a partition.
func (n *MemNet) Heal() { n.Split() }

// Lose makes packets, not streams, disappear where f says so; nil = none.
func (n *MemNet) Lose(f func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = f
}

// Sent counts packets and their bytes.
func (n *MemNet) Sent() (packets, bytes int64) { return n.packets.Load(), n.bytes.Load() }

// Host adds a host, or takes over the address of an earlier one, as a restarted process does.
func (n *MemNet) Host(addr string) *MemHost {
	h := &MemHost{net: n, addr: netip.MustParseAddrPort(addr)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = h
	return h
}

// find is the host at to, as from sees it: refused when nobody listens, cut when there is a partition in between.
func (n *MemNet) find(from, to string, packet bool) (h *MemHost, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.side[from] != n.side[to] {
		return nil, true
	}
	if packet && n.lose != nil && n.lose() {
		return nil, false
	}
	return n.hosts[to], false
}

// MemHost is one address of a MemNet.
type MemHost struct {
	net  *MemNet
	addr netip.AddrPort

	mu     sync.Mutex
	packet func(b []byte, from net.Addr)
	stream func(net.Conn)
}

// Addr implements Network.
func (h *MemHost) Addr() netip.AddrPort { return h.addr }

// Send implements Network.
func (h *MemHost) Send(to string, b []byte) error {
	h.net.packets.Add(1)
	h.net.bytes.Add(int64(len(b)))
	peer, _ := h.net.find(h.addr.String(), to, true)
	if peer == nil {
		return nil // lost, as a packet is
	}
	if packet, _ := peer.receivers(); packet != nil {
		packet(append([]byte(nil), b...), net.UDPAddrFromAddrPort(h.addr))
	}
	return nil
}

// Dial implements Network.
func (h *MemHost) Dial(ctx context.Context, to string) (net.Conn, error) {
	peer, cut := h.net.find(h.addr.String(), to, false)
	if cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	refused := base.Errorf(base.CodeUnreachable, "dial", "%s: connection refused", to)
	if peer == nil {
		return nil, refused
	}
	_, stream := peer.receivers()
	if stream == nil {
		return nil, refused
	}
	near, far := net.Pipe()
	stream(far)
	return near, nil
}

// Receive implements Network.
func (h *MemHost) Receive(packet func(b []byte, from net.Addr), stream func(net.Conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.packet, h.stream = packet, stream
}

func (h *MemHost) receivers() (packet func(b []byte, from net.Addr), stream func(net.Conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.packet, h.stream
}
