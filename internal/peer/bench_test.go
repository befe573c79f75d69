package peer

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// overTCP makes two hosts that are connected over the loopback.
func overTCP(b testing.TB) (*node, *node) {
	addresses := make(map[base.NodeID]string)
	var nodes []*node
	var listeners []net.Listener
	for i := range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		listeners = append(listeners, l)
		addresses[base.NodeID(fmt.Sprint("n", i+1))] = l.Addr().String()
	}
	for i, l := range listeners {
		nodes = append(nodes, launch(b, l, Options{
			Node: base.NodeID(fmt.Sprint("n", i+1)), Boot: 1, Instance: base.UUID{byte(i + 1)},
			Resolve: func(n base.NodeID) (string, bool) { return addresses[n], true },
		}))
	}
	for _, n := range nodes {
		require.NoError(b, n.Keep([]base.NodeID{"n1", "n2"}))
	}
	w := &world{t: b}
	w.settle(nodes...)
	return nodes[0], nodes[1]
}

func TestOverTCP(t *testing.T) {
	a, b := overTCP(t)
	for _, size := range []int{10, copyBelow, 5 << 20} {
		got, err := a.Call(t.Context(), "n2", kindEcho, make([]byte, size))
		require.NoError(t, err)
		require.Len(t, got, size)
	}
	changed, unsubscribe := a.Subscribe()
	defer unsubscribe()
	b.stop()
	deadline := time.After(10 * time.Second)
	for a.status("n2") != Refused {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("the closed port was not noticed")
		}
	}
}

// BenchmarkCall is the latency of one call at a time over the loopback.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			a, _ := overTCP(b)
			msg := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Call(context.Background(), "n2", kindEcho, msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInFlight64 is the throughput with 64 calls in flight.
func BenchmarkInFlight64(b *testing.B) {
	for _, size := range []int{64, 4 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			a, _ := overTCP(b)
			msg := make([]byte, size)
			slots := make(chan struct{}, 64)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				slots <- struct{}{}
				_, err := a.Go("n2", kindEcho, 0, msg, func(_ []byte, err error) {
					if err != nil {
						b.Error(err)
					}
					<-slots
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			for range cap(slots) {
				slots <- struct{}{}
			}
		})
	}
}
