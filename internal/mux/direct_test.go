package mux

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/wire"
)

// What a write without blocking leaves over goes out through the writer goroutine, before anything that was pushed
// behind it.
func TestPartialDirectWrites(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			acceptHello(nc)
		}
		accepted <- nc
	}()
	c, err := Dial(t.Context(), l.Addr().String(), ClientOptions{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			err = nc.(*net.TCPConn).SetWriteBuffer(4 << 10) // far less than a frame
		}
		return nc, err
	}})
	require.NoError(t, err)
	server := <-accepted
	defer func() { require.NoError(t, server.Close()) }()

	const frames, size = 200, 50 << 10
	go func() {
		for i := range frames {
			payload := bytes.Repeat([]byte{byte(i)}, size)
			if _, err := c.Go(wire.KindProduce, []byte{byte(i)}, [][]byte{payload[:10], payload[10:]}, func(Response, error) {}); err != nil {
				t.Error(err)
			}
		}
	}()
	in := newFrameReader(server)
	for i := range frames {
		h, err := in.header()
		require.NoError(t, err)
		msg, payload, err := in.body(h, nil)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, msg)
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, size), payload), "frame %d", i)
		head := wire.FrameHeader{Version: 1, Flags: wire.FlagResponse, Kind: h.Kind, RequestID: h.RequestID}
		_, err = server.Write(head.Append(nil)) // keeps the connection quiet, so that frames go out directly
		require.NoError(t, err)
	}
	require.NoError(t, c.Close())
}

// The deadline of a blocking write long ago must not fail a direct write now.
func TestAnOldWriteDeadlineIsHarmless(t *testing.T) {
	const timeout = time.Second
	_, c := overTCP(t, options(HandlerFunc(echo)), ClientOptions{WriteTimeout: timeout})
	_, err := c.Call(t.Context(), wire.KindProduce, nil, [][]byte{make([]byte, 128<<10)}) // too large to go directly
	require.NoError(t, err)
	<-time.After(timeout + time.Second/4) // it passes, and the eighth of a second for the bytes too
	_, err = c.Call(t.Context(), wire.KindPing, nil, nil)
	require.NoError(t, err)
}
