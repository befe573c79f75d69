package server

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// addresses are what this node tells others of itself.
type addresses struct {
	client, cluster, data, admin string         // host:port, the host as the operator gave it
	gossip                       netip.AddrPort // of the cluster port: packets go to addresses, not to names
}

// lookupWithin is how long a name may take to be resolved.
const lookupWithin = 5 * time.Second

// advertise is an address as others reach it: the advertised host with the port that was bound.
func (s *Server) advertise(bound net.Addr) string {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return bound.String() // a network in memory that names its ports otherwise
	}
	return net.JoinHostPort(s.cfg.AdvertiseHost, port)
}

// describe gathers the addresses of all ports.
func (s *Server) describe(ctx context.Context) addresses {
	a := addresses{
		client: s.advertised, cluster: s.advertise(s.ports.cluster.Addr()), data: s.advertise(s.ports.data.Addr()),
		gossip: netip.AddrPortFrom(s.advertisedIP(ctx), portOf(s.ports.cluster.Addr())),
	}
	if s.ports.admin != nil {
		// Bound to an address of its own, which for most is the loopback: told as it is, to people who know the machine.
		a.admin = s.ports.admin.Addr().String()
	}
	return a
}

func portOf(bound net.Addr) uint16 {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// advertisedIP is the address behind advertise_host. A name that this machine cannot resolve, as one of a public
// gateway, is still told to clients; the other nodes then get the address that was bound, or the machine's first.
func (s *Server) advertisedIP(ctx context.Context) netip.Addr {
	if ip, err := netip.ParseAddr(s.cfg.AdvertiseHost); err == nil {
		return ip.Unmap()
	}
	bound := netip.IPv4Unspecified()
	if ap, err := netip.ParseAddrPort(s.ports.cluster.Addr().String()); err == nil {
		bound = ap.Addr().Unmap()
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	ips, err := s.deps.Lookup(ctx, s.cfg.AdvertiseHost)
	if ip, ok := ofFamily(ips, bound); err == nil && ok {
		return ip
	}
	if bound.IsUnspecified() {
		unnamed := s.cfg
		unnamed.AdvertiseHost = bound.String()
		if host, _, e := unnamed.Advertise(s.deps.Interfaces); e == nil {
			bound, _ = netip.ParseAddr(host)
		}
	}
	s.deps.Logger.Warn("advertise_host has no address here: other nodes are told another one", "advertise_host", s.cfg.AdvertiseHost, "address", bound.String(), "error", err)
	return bound
}

// ofFamily picks the first address that a socket bound to bound can speak with; :: speaks both.
func ofFamily(ips []netip.Addr, bound netip.Addr) (netip.Addr, bool) {
	for _, ip := range ips {
		if ip = ip.Unmap(); bound == netip.IPv6Unspecified() || ip.Is4() == bound.Is4() {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// named is the cluster address if it has a name in it: the number is known to the gossip anyway.
func (a addresses) named() string {
	if a.cluster == a.gossip.String() {
		return ""
	}
	return a.cluster
}
