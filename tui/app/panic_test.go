package app

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/sdk/sdktest"
)

// planted is the mode of a child that has a cluster, and a panic of its client in the goroutine that the mode ends with.
const planted = "panic in the client's "

// plantedIn is the option of such a client.
func plantedIn(mode string) sdk.ClientOption {
	where := strings.TrimPrefix(mode, planted)
	return sdk.WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		for where == "dial" && ctx.Err() == nil {
			panicOnScreen(mode)
			time.Sleep(time.Millisecond)
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return &mined{conn, mode, where}, err
	})
}

// mined is a connection that panics when it is used on a certain goroutine.
type mined struct {
	net.Conn
	mode, where string
}

func (c *mined) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.on("reader", "mux.(*Conn).read")
	return n, err
}

func (c *mined) Write(b []byte) (int, error) {
	c.on("writer", "mux.(*outbox).run")
	return c.Conn.Write(b)
}

func (c *mined) on(where, caller string) {
	if c.where == where && bytes.Contains(debug.Stack(), []byte(caller)) {
		panicOnScreen(c.mode)
	}
}

// panicOnScreen panics once the program has the terminal.
func panicOnScreen(what string) {
	if onScreen() {
		panic(what)
	}
}

func onScreen() bool {
	s, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
	return err == nil && s.Lflag&unix.ICANON == 0
}

// TestPanicInTheClient has a panic in each kind of goroutine that the SDK has for eg-top.
func TestPanicInTheClient(t *testing.T) {
	broker := sdktest.Start(t)
	for _, where := range []string{"dial", "reader", "writer"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, planted+where, 100, 30, "--seeds", broker.Addr())
			c.end(cli.ExitError)
			c.wrote("the panic with its stack", func(raw string) bool {
				after := raw[strings.LastIndex(raw, "?1049l")+1:]
				return strings.Contains(after, planted+where) && strings.Contains(after, "panicOnScreen")
			})
		})
	}
}

// unguarded are ways to die that no guard of the program sees, and what is said of them.
var unguarded = map[string]string{
	"panic where nobody looks":   "panic: panic where nobody looks",
	"an error that nobody stops": "fatal error: sync: unlock of unlocked mutex",
}

// dieOnScreen does so once the program has the terminal, if that is what the mode says.
func dieOnScreen(mode string) {
	if unguarded[mode] == "" {
		return
	}
	for !onScreen() {
		time.Sleep(time.Millisecond)
	}
	switch mode {
	case "panic where nobody looks":
		panic(mode)
	case "an error that nobody stops":
		new(sync.Mutex).Unlock()
	}
}

// TestDiesWithTheTerminal checks that the terminal is as before, and what was said can be read, where the process could do
// nothing for it. The exit code is that of Go's runtime.
func TestDiesWithTheTerminal(t *testing.T) {
	for mode, says := range unguarded {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, mode, 100, 30)
			c.end(2)
			c.wrote("what it died of, and where", func(raw string) bool {
				after := raw[strings.LastIndex(raw, "?1049l")+1:]
				return strings.Count(raw, says) == 1 && strings.Contains(after, says) && strings.Contains(after, "dieOnScreen")
			})
		})
	}
}

// TestKilled is of a process that had no time for anything, with a shell that has the terminal at once and without one.
func TestKilled(t *testing.T) {
	for _, shell := range []bool{false, true} {
		t.Run(fmt.Sprintf("shell %v", shell), func(t *testing.T) {
			t.Parallel()
			var c *child
			if shell {
				j := startJob(t, "")
				c = j.child
				j.signal(syscall.SIGKILL)
			} else {
				c = startChild(t, "well", 100, 30)
				c.until("n5")
				require.NoError(t, c.cmd.Process.Kill())
			}
			for deadline := time.Now().Add(30 * time.Second); c.before != c.settings(); time.Sleep(5 * time.Millisecond) {
				require.True(t, time.Now().Before(deadline), "the line settings are not as they were")
			}
			c.modesAreOff()
		})
	}
}
