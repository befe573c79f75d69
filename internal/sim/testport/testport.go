// Package testport gives tests ports that stay theirs while nobody listens on them: a broker that is stopped comes back
// under the same address. A port that the kernel chose and that was closed again belongs to whoever comes next, and
// with several test binaries side by side somebody comes.
package testport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// The ports given out lie below those that the kernel chooses from (32768 and more), and those of scripts/e2e.
const (
	first = 10_000
	count = 10_000
)

// next is where the search goes on: processes begin at different places.
var next atomic.Uint32

func init() { next.Store(uint32(os.Getpid()) * 61) }

// Port is a port of one test, until it is released or the process ends.
type Port struct {
	Number int
	claim  net.Listener
}

// Take finds a port of host that is free for TCP and UDP, and claims it before all processes of this machine that ask
// here: the claim is a name among the kernel's abstract sockets, which are as many as there are sets of ports.
func Take(host string) (*Port, error) {
	for range count {
		p := &Port{Number: int(first + next.Add(1)%count)}
		var err error
		if p.claim, err = net.Listen("unix", fmt.Sprintf("@eastguard-test-port-%d", p.Number)); err != nil {
			continue
		}
		if free(net.JoinHostPort(host, strconv.Itoa(p.Number))) {
			return p, nil
		}
		_ = p.Release()
	}
	return nil, errors.New("no free port")
}

func free(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	defer p.Close()
	return true
}

// Release lets others have the port.
func (p *Port) Release() error { return p.claim.Close() }
