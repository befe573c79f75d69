package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"net/netip"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Deps are what a broker takes from its surroundings; zero fields get the real ones.
//
// A whole broker runs in virtual time, inside testing/synctest, when everything that could wait outside of the bubble is
// in memory: FS a vfs.Mem, Listen and Dial those of one machine of a peer.Network, ListenPacket a socket in memory.
// Addresses must then be IP addresses with fixed ports (host and advertise_host "10.0.0.1", the same in
// join_seed_nodes), because a machine in memory has no resolver and no port to give away; or Lookup answers for names.
type Deps struct {
	FS     vfs.FS
	Logger *slog.Logger

	// Listen opens the client, cluster, data and admin ports, in this order and before anything else happens.
	Listen func(network, addr string) (net.Listener, error)
	// ListenPacket opens the UDP side of the cluster port, at the number that Listen got.
	ListenPacket func(network, addr string) (net.PacketConn, error)
	// Dial opens streams to the cluster ports of other nodes.
	Dial peer.Dialer
	// Lookup resolves host names, of seeds, of this node and of those it dials.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Interfaces lists the machine's addresses, for when neither host nor advertise_host says what to tell others.
	Interfaces func() ([]net.Addr, error)

	ClusterKey []byte // encrypts the gossip: 16, 24 or 32 bytes; nil = it is not encrypted
	// Settings says where each value of the configuration came from, for people who ask this node.
	Settings config.Sources

	Rand    io.Reader
	Version string // of the binary, told to clients
}

func (d *Deps) ensureDefaults() {
	if d.FS == nil {
		d.FS = vfs.OS
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Listen == nil {
		d.Listen = net.Listen
	}
	if d.ListenPacket == nil {
		d.ListenPacket = net.ListenPacket
	}
	if d.Dial == nil {
		d.Dial = peer.DialTCP
		if d.Lookup != nil {
			d.Dial = dialThrough(d.Lookup)
		}
	}
	if d.Lookup == nil {
		d.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if d.Interfaces == nil {
		d.Interfaces = net.InterfaceAddrs
	}
	if d.Rand == nil {
		d.Rand = rand.Reader
	}
	if d.Version == "" {
		d.Version = "dev"
	}
}

// dialThrough dials over TCP what the lookup says, one address after the other: a broker that was given a resolver of
// its own asks no other one.
func dialThrough(lookup func(context.Context, string) ([]netip.Addr, error)) peer.Dialer {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return peer.DialTCP(ctx, addr)
		}
		ips, err := lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		for _, ip := range ips {
			nc, failed := peer.DialTCP(ctx, net.JoinHostPort(ip.Unmap().String(), port))
			if failed == nil {
				return nc, nil
			}
			err = failed
		}
		return nil, err
	}
}
