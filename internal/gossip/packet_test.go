package gossip

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// memberlist's messages, for tests that speak for somebody.
const (
	suspectMessage = 3
	aliveMessage   = 4
	deadMessage    = 5
)

type suspicion struct { // and death
	Incarnation uint32
	Node        string
	From        string
}

type alive struct {
	Incarnation uint32
	Node        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Vsn         []uint8
}

func packet(t *testing.T, kind byte, m any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	require.NoError(t, codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(m))
	p, err := memberlist.AddLabelHeaderToPacket(b.Bytes(), string(theCluster[:]))
	require.NoError(t, err)
	return p
}

func TestSealedStates(t *testing.T) {
	key, label := []byte("0123456789abcdef"), "the label"
	plain, err := encodePushPull([]state{{Name: "n1#1.0", Port: 7, Incarnation: 3}})
	require.NoError(t, err)
	sealed, err := seal(plain, label, key)
	require.NoError(t, err)
	opened, err := unseal(sealed, label, key)
	require.NoError(t, err)
	states, err := decodePushPull(opened)
	require.NoError(t, err)
	require.Equal(t, "n1#1.0", states[0].Name)
	_, err = unseal(sealed, "another", key)
	require.Error(t, err)
	_, err = unseal(sealed[:9], label, key)
	require.Error(t, err)
}

// The largest description that fits: a longer one is refused before memberlist sees it, which would panic.
func TestMetaLimit(t *testing.T) {
	s := Self{Node: "n1", Boot: 1, Instance: base.UUID{1}, Labels: map[string]string{"a": ""}}
	for n := 0; ; n++ {
		s.Labels["a"] = string(bytes.Repeat([]byte{'x'}, n))
		b, err := s.encode(theCluster)
		if err != nil {
			require.ErrorIs(t, err, base.CodeInvalidArgument)
			require.Greater(t, n, 300)
			return
		}
		require.LessOrEqual(t, len(b), MaxMeta)
	}
}

// Real sockets: two agents over UDP and TCP on the loopback find each other and part.
func TestUDP(t *testing.T) {
	t.Cleanup(func() { // memberlist's goroutines end within their timeouts, which here are real
		for end := time.Now().Add(15 * time.Second); goleak.Find() != nil && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	})
	start := func(name string, seeds ...string) (*Agent, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		socket, err := net.ListenPacket("udp", l.Addr().String())
		require.NoError(t, err)
		at := l.Addr().(*net.TCPAddr).AddrPort()
		u := NewUDP(socket, at, func(ctx context.Context, to string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", to)
		})
		u.Start()
		accepted := make(chan struct{})
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				u.Accept(c)
			}
		}()
		a, err := New(Options{Cluster: theCluster, Self: Self{Node: base.NodeID(name), Boot: 1, Instance: base.UUID{name[1]}}, Network: u, Seeds: seeds})
		require.NoError(t, err)
		require.NoError(t, a.Start(t.Context()))
		t.Cleanup(func() {
			require.NoError(t, a.Close())
			require.NoError(t, l.Close())
			<-accepted
			require.NoError(t, u.Close())
		})
		return a, at.String()
	}
	a, addr := start("n1")
	b, _ := start("n2", addr)
	changed, stop := a.Subscribe()
	defer stop()
	deadline := time.After(10 * time.Second)
	for len(a.Snapshot().Members) < 2 {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("n1 does not see n2")
		}
	}
	require.NoError(t, b.Leave(t.Context()))
}
