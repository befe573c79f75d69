package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/eastguard/eastguard/internal/base"
)

// ports are the broker's listeners. They are bound before anything is made, because a port that is taken should be told
// before an empty directory is filled or a large log replayed, and because their numbers go into what others are told.
type ports struct {
	client  net.Listener
	cluster net.Listener   // TCP
	packets net.PacketConn // UDP, of the same number as cluster
	data    net.Listener
	admin   net.Listener // nil: switched off
}

// samePortTries is how often a free number is looked for that is free for TCP and UDP alike.
const samePortTries = 20

// bind takes all ports. Nothing is accepted yet.
func (s *Server) bind(ctx context.Context) error {
	host, warning, err := s.cfg.Advertise(s.deps.Interfaces)
	if err != nil {
		return err
	}
	if warning != "" {
		s.deps.Logger.Warn("advertised address was chosen", "advertise_host", host, "reason", warning)
	}
	s.cfg.AdvertiseHost = host
	if s.ports.client, err = s.listen("client_port", s.cfg.ClientAddress()); err != nil {
		return err
	}
	if err := s.bindCluster(); err != nil {
		return err
	}
	if s.ports.data, err = s.listen("data_port", s.cfg.DataAddress()); err != nil {
		return err
	}
	if addr := s.cfg.AdminAddress(); addr != "" {
		if s.ports.admin, err = s.listen("admin_port", addr); err != nil {
			return err
		}
	}
	s.listener = s.ports.client
	s.advertised = s.advertise(s.ports.client.Addr())
	s.self = s.describe(ctx)
	return nil
}

// listen opens one TCP port and gives it back when the broker stops; who serves it closes it earlier.
func (s *Server) listen(key, addr string) (net.Listener, error) {
	l, err := s.deps.Listen("tcp", addr)
	if err != nil {
		return nil, portError(key, addr, err)
	}
	s.undo.Push(key, func() error { return ignoreClosed(l.Close()) })
	return l, nil
}

// bindCluster opens the cluster port for TCP and UDP. With port 0 the system chooses a number for TCP, which may be
// taken for UDP; then it chooses again.
func (s *Server) bindCluster() error {
	const key = "cluster_port"
	addr := s.cfg.ClusterAddress()
	for try := 1; ; try++ {
		l, err := s.deps.Listen("tcp", addr)
		if err != nil {
			return portError(key, addr, err)
		}
		p, err := s.deps.ListenPacket("udp", l.Addr().String())
		if err == nil {
			s.ports.cluster, s.ports.packets = l, p
			s.undo.Push(key, func() error { return ignoreClosed(errors.Join(ignoreClosed(l.Close()), ignoreClosed(p.Close()))) })
			return nil
		}
		_ = l.Close() // nobody has connected
		if s.cfg.ClusterPort != 0 || try == samePortTries || !errors.Is(err, syscall.EADDRINUSE) {
			return portError(key+" (UDP)", l.Addr().String(), err)
		}
	}
}

// portError says which port cannot be had, and which setting moves it.
func portError(key, addr string, err error) error {
	host, port, split := net.SplitHostPort(addr)
	if errors.Is(err, syscall.EADDRINUSE) && split == nil {
		return base.Errorf(base.CodeInvalidArgument, "listen", "port %s of %s is in use, wanted as %s", port, host, key).
			WithHint("another broker runs there, or choose another %s", settingOf(key))
	}
	return base.Wrap(base.CodeInvalidArgument, fmt.Sprintf("listen on %s for %s", addr, key), err).WithHint("check host and %s", settingOf(key))
}

// settingOf drops what is not part of a setting's name.
func settingOf(key string) string {
	for i, r := range key {
		if r == ' ' {
			return key[:i]
		}
	}
	return key
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
