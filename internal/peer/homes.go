package peer

import (
	"net"
	"net/netip"
)

// homes are where a peer lives, as far as this node has found out: where it was dialled last, and where it came from. A
// node that this one keeps is dialled for as long as there is no connection, so it is known before it comes.
type homes struct {
	dialled, met netip.Addr // zero: none
}

// Knows reports whether a peer lives at an address.
func (h *Host) Knows(addr netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.homes[addr] > 0
}

// dials notes where a peer is about to be dialled. A name says nothing; what it leads to does, once there is an answer.
func (h *Host) dials(p *peer, addr string) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return
	}
	if at, err := netip.ParseAddr(host); err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.moveLocked(p, &p.homes.dialled, at)
	}
}

// meetsLocked notes where a peer was met.
func (h *Host) meetsLocked(p *peer, nc net.Conn) {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		h.moveLocked(p, &p.homes.met, a.AddrPort().Addr())
	}
}

// moveLocked changes one home of a peer. Of one that has been dropped meanwhile nothing is kept.
func (h *Host) moveLocked(p *peer, home *netip.Addr, to netip.Addr) {
	if to = to.Unmap(); to == *home || h.peers[p.node] != p {
		return
	}
	h.leaveLocked(*home)
	*home = to
	h.homes[to]++
}

// leaveLocked takes one home of a peer off the list.
func (h *Host) leaveLocked(home netip.Addr) {
	if h.homes[home]--; h.homes[home] <= 0 {
		delete(h.homes, home)
	}
}
