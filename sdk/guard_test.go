package sdk

import (
	"bytes"
	"context"
	"net"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// caught is a guard that keeps what it has caught.
type caught struct {
	mu     sync.Mutex
	panics []any
	stacks [][]byte
}

func (g *caught) run(f func()) {
	defer func() {
		if r := recover(); r != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.panics, g.stacks = append(g.panics, r), append(g.stacks, debug.Stack())
		}
	}()
	f()
}

// planted panics where it is told to.
type planted struct {
	net.Conn
	where string
}

func (c planted) Read(b []byte) (int, error) {
	c.on("(*Conn).read(", "reader")
	return c.Conn.Read(b)
}

func (c planted) Write(b []byte) (int, error) {
	c.on("(*outbox).run(", "writer")
	return c.Conn.Write(b)
}

func (c planted) SetDeadline(t time.Time) error {
	err := c.Conn.SetDeadline(t)
	c.on("afterFunc", "deadline of the handshake")
	return err
}

func (c planted) on(caller, where string) {
	if c.where == where && bytes.Contains(debug.Stack(), []byte(caller)) {
		panic(where)
	}
}

// TestGuard panics on each kind of goroutine that a client has: its guard sees it.
func TestGuard(t *testing.T) {
	for _, where := range []string{"dial", "reader", "writer", "deadline of the handshake", "callback"} {
		t.Run(where, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *fakeCluster, _ *Client) {
				c.addTopic("orders", 1)
				var g caught
				cl := c.client(WithGuard(g.run), WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
					if where == "dial" {
						panic(where)
					}
					conn, err := c.net.dial(ctx, addr)
					return planted{conn, where}, err
				}))
				defer func() { _ = cl.Close() }() // these panics leave nothing locked
				c.freeze("n1", where == "deadline of the handshake")
				p, err := cl.NewProducer("orders", WithLinger(time.Millisecond))
				require.NoError(t, err)
				_ = p.SendAsync(Record{Value: []byte("x")}, func(Ack, error) { // whether it works or not
					if where == "callback" {
						panic(where)
					}
				})
				time.Sleep(time.Minute)
				if where == "callback" { // Close would wait for it
					p.finisher.mu.Lock()
					p.finisher.running = false
					p.finisher.mu.Unlock()
				}
				g.mu.Lock()
				defer g.mu.Unlock()
				require.NotEmpty(t, g.panics)
				require.Equal(t, where, g.panics[0], "%s", g.stacks[0])
				require.Contains(t, string(g.stacks[0]), "guard_test.go")
			})
		})
	}
}
