package mux

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/wire"
)

// A client gets through thousands of connections that say nothing, and they are not all held.
func TestAClientGetsThroughAFlood(t *testing.T) {
	for name, most := range map[string]int{"few connections": 50, "many": 10_000} {
		t.Run(name, func(t *testing.T) {
			o := options(HandlerFunc(echo))
			o.MaxConns = most
			s, addr := listen(t, o)
			for range maxGreeting + 200 {
				nc, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				defer nc.Close()
			}
			var c *Conn
			require.Eventually(t, func() bool { // who is not let run for as long as silence is borne comes again
				var err error
				c, err = Dial(t.Context(), addr, ClientOptions{})
				return err == nil
			}, 10*time.Second, time.Millisecond)
			defer c.Close()
			_, err := c.Call(t.Context(), wire.KindPing, []byte("hello"), nil)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return s.Stats().Connections <= min(most, maxGreeting)+1 }, 10*time.Second, time.Millisecond)
			require.Greater(t, s.Stats().ShownOut, int64(100))
		})
	}
}

// Who has shaken hands is not silent, however long it says nothing.
func TestAnIdleClientIsNoFlood(t *testing.T) {
	o := options(HandlerFunc(echo))
	o.MaxConns = 3
	s, addr := listen(t, o)
	for range 3 {
		c, err := Dial(t.Context(), addr, ClientOptions{})
		require.NoError(t, err)
		defer c.Close()
	}
	_, err := Dial(t.Context(), addr, ClientOptions{})
	require.ErrorContains(t, err, "3 connections already")
	require.Zero(t, s.Stats().ShownOut)
}
