package config

import (
	"fmt"
	"net"
	"net/netip"
)

// Advertise is the host that clients and other nodes are told to reach this node at. An unspecified address
// (0.0.0.0, ::) may be bound but never told: it becomes the first routable address of the machine's interfaces,
// with a warning, and is refused when there is none. interfaces is net.InterfaceAddrs outside tests.
func (c Config) Advertise(interfaces func() ([]net.Addr, error)) (host, warning string, err error) {
	host = c.AdvertiseHost
	key := "advertise_host"
	if host == "" {
		host, key = c.Host, "host"
	}
	ip, parseErr := netip.ParseAddr(host)
	if parseErr != nil || !ip.IsUnspecified() {
		return host, "", nil
	}
	addrs, err := interfaces()
	if err != nil {
		return "", "", usageError("set advertise_host to this machine's address", "list the machine's addresses: %s", err)
	}
	found, ok := firstRoutable(addrs)
	if !ok {
		return "", "", usageError("set advertise_host to an address that others can reach (127.0.0.1 for this machine alone)",
			"%s is %s, which cannot be told to others, and no interface has a routable address", key, host)
	}
	return found.String(), fmt.Sprintf("advertise_host is not set: others are told %s; set it if they reach this machine at another address", found), nil
}

// firstRoutable prefers IPv4, which every client of a dual-stack machine can use.
func firstRoutable(addrs []net.Addr) (netip.Addr, bool) {
	var v6 netip.Addr
	for _, a := range addrs {
		ip, ok := addrOf(a)
		if !ok || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
			continue
		}
		if ip.Is4() {
			return ip, true
		}
		if !v6.IsValid() {
			v6 = ip
		}
	}
	return v6, v6.IsValid()
}

func addrOf(a net.Addr) (netip.Addr, bool) {
	switch v := a.(type) {
	case *net.IPNet:
		ip, ok := netip.AddrFromSlice(v.IP)
		return ip.Unmap(), ok
	case *net.IPAddr:
		ip, ok := netip.AddrFromSlice(v.IP)
		return ip.Unmap(), ok
	}
	return netip.Addr{}, false
}
