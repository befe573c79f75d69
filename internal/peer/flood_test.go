package peer

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// dialFrom dials over TCP from an address of the loopback.
func dialFrom(addr string) Dialer {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	return func(ctx context.Context, to string) (net.Conn, error) { return d.DialContext(ctx, "tcp", to) }
}

// flood opens connections that say what is given and then nothing more. They are closed at the end of the test.
func flood(t *testing.T, dial Dialer, addr string, connections int, says []byte) {
	var mu sync.Mutex
	var all []net.Conn
	t.Cleanup(func() {
		for _, nc := range all {
			_ = nc.Close()
		}
	})
	var done sync.WaitGroup
	slots := make(chan struct{}, 64)
	for range connections {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			nc, err := dial(t.Context(), addr)
			if err != nil {
				return // the kernel's queue is full
			}
			_, _ = nc.Write(says)
			mu.Lock()
			all = append(all, nc)
			mu.Unlock()
		})
	}
	done.Wait()
	require.Greater(t, len(all), connections/2)
}

// A peer gets through thousands of connections that say nothing, or that say what they are for and nothing more, within
// the attempts that it makes anyway: from an address of its own, known or not, or from the same one.
func TestAPeerGetsThroughAFlood(t *testing.T) {
	for _, c := range []struct {
		name, peer  string
		connections int
		says        string
	}{
		{"silent", "127.0.0.3", 3000, ""},
		{"silent, from the peer's own address", "127.0.0.2", 700, ""},
		{"on the main lane", "127.0.0.3", 500, string(TagMain)},
		{"on the data lane, from the peer's own address", "127.0.0.2", 500, string(TagData)},
		{"half a hello", "127.0.0.3", 500, string(TagData) + "\x00\x01\x00\xe6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := l.Addr().String()
			nowhere := func(base.NodeID) (string, bool) { return "", false }
			at := launch(t, l, Options{Node: "n1", Boot: 1, Instance: base.UUID{1}, Resolve: nowhere, ResolveData: nowhere})
			flood(t, dialFrom("127.0.0.2"), addr, c.connections, []byte(c.says))

			to := func(base.NodeID) (string, bool) { return addr, true }
			own, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			n2 := launch(t, own, Options{
				Node: "n2", Boot: 1, Instance: base.UUID{2}, Dial: dialFrom(c.peer), Resolve: to, ResolveData: to,
			})
			began := time.Now()
			require.NoError(t, n2.Keep([]base.NodeID{"n1"}))
			require.Eventually(t, func() bool {
				return n2.status("n1") == Reachable && n2.DataLink("n1").Up && at.DataLink("n2").Up
			}, 20*time.Second, 5*time.Millisecond)
			t.Logf("connected after %s", time.Since(began))
			require.True(t, at.Knows(netip.MustParseAddr(c.peer)))
			require.False(t, at.Knows(netip.MustParseAddr("127.0.0.9")))
		})
	}
}

// Connections of a tag that nobody accepts keep those of others from nothing.
func TestADemuxWhoseConnectionsNobodyAccepts(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := NewDemux(under, nil)
	defer d.Close()
	d.Listener(TagGossip)
	main := d.Listener(TagMain)
	d.Start()
	flood(t, dialFrom("127.0.0.2"), d.Addr().String(), 2*maxWaiting, []byte{byte(TagGossip)})
	nc, err := DialTag(t.Context(), DialTCP, d.Addr().String(), TagMain)
	require.NoError(t, err)
	defer nc.Close()
	accepted, err := main.Accept()
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
}
