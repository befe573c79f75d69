package mux

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// Headers that claim much and send little cost little.
func TestMemoryIsFlatUnderClaims(t *testing.T) {
	s, addr := listen(t, options(HandlerFunc(echo)))
	const n = 20
	for range n {
		r := dialRaw(t, addr)
		r.hello()
		r.frame(wire.FrameHeader{Kind: wire.KindProduce, PayloadLen: wire.MaxPayload, MessageLen: 10}, make([]byte, 1000))
	}
	require.Eventually(t, func() bool {
		st := s.Stats()
		return st.InFlight == n && st.HeldBytes == n*trust
	}, 10*time.Second, time.Millisecond)
}

// A request that memory is short for is read to its end and refused; the connection and the others go on.
func TestMemoryIsBounded(t *testing.T) {
	k := newKept()
	o := options(k)
	o.MaxBytes = 3 * trust
	s, addr := listen(t, o)
	c, err := Dial(t.Context(), addr, ClientOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	answers := make(chan result, 2)
	keep := func(size int) *Request {
		_, err := c.Go(wire.KindProduce, nil, [][]byte{make([]byte, size)}, func(r Response, err error) { answers <- result{r, err} })
		require.NoError(t, err)
		return <-k.requests
	}
	refused := func(size int) {
		_, err := c.Call(t.Context(), wire.KindProduce, nil, [][]byte{make([]byte, size)})
		require.ErrorIs(t, err, base.CodeBusy)
		require.Equal(t, base.NotApplied, base.OutcomeOf(err))
	}
	one := keep(trust)
	refused(2*trust + 1) // has leave for its first part
	refused(10 * trust)
	two := keep(2 * trust)
	refused(1) // has none
	one.Reply(nil)
	two.Reply(nil)
	for range 2 {
		require.NoError(t, (<-answers).err)
	}
	require.Eventually(t, func() bool { return s.Stats().HeldBytes == 0 }, 10*time.Second, time.Millisecond)
}

// A peer that goes silent in the middle of a request is closed; its memory is free again.
func TestAStalledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(HandlerFunc(echo))
		o.StallTimeout = 7 * time.Second
		s, c := overPipe(t, o, ClientOptions{})
		client, server := net.Pipe()
		s.ServeConn(server)
		in := newFrameReader(client)
		hello := wire.Encode(wire.HelloRequest{MinVersion: 1, MaxVersion: 1})
		frame := wire.FrameHeader{Version: 1, Kind: wire.KindHello, MessageLen: uint32(len(hello))}.Append(nil)
		_, err := client.Write(append(frame, hello...))
		require.NoError(t, err)
		h, err := in.header()
		require.NoError(t, err)
		require.NoError(t, in.skip(h))
		time.Sleep(time.Hour) // idle is allowed
		_, err = client.Write(append(wire.FrameHeader{Version: 1, Kind: wire.KindPing, MessageLen: 100}.Append(nil), "some"...))
		require.NoError(t, err)
		began := time.Now()
		_, err = in.header()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 7*time.Second, time.Since(began))
		require.Zero(t, s.Stats().HeldBytes)
		_, err = c.Call(t.Context(), wire.KindPing, nil, nil)
		require.NoError(t, err)
	})
}

// At its limits a connection is not read any more, and goes on when answers have been written.
func TestWindowStopsReading(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*ServerOptions)
		want int
	}{
		{"requests", func(o *ServerOptions) { o.MaxInFlightRequests = 3 }, 3},
		{"bytes", func(o *ServerOptions) { o.MaxInFlightBytes = 4200 }, 4},
		{"one above all", func(o *ServerOptions) { o.MaxInFlightBytes = 10 }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKept()
				o := options(k)
				c.set(&o)
				_, conn := overPipe(t, o, ClientOptions{})
				const n = 20
				var answers sync.WaitGroup
				for range n {
					answers.Add(1)
					_, err := conn.Go(wire.KindProduce, nil, [][]byte{make([]byte, 1000)}, func(_ Response, err error) {
						if err != nil {
							t.Error(err)
						}
						answers.Done()
					})
					require.NoError(t, err)
				}
				for done := 0; done < n; done++ {
					synctest.Wait()
					require.Len(t, k.requests, min(c.want, n-done))
					(<-k.requests).Reply(nil)
				}
				answers.Wait()
			})
		})
	}
}

// A peer that asks and does not read its answers is closed after the write timeout; what it held is released.
func TestASlowReaderIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{}, 1)
		o := options(HandlerFunc(func(_ context.Context, r *Request) {
			r.Reply(nil, part{b: make([]byte, 100), release: func() { released <- struct{}{} }})
		}))
		o.WriteTimeout = 5 * time.Second
		s := NewServer(o)
		client, server := net.Pipe()
		s.ServeConn(server)
		in := newFrameReader(client)
		write := func(h wire.FrameHeader, msg []byte) {
			h.Version, h.MessageLen = wire.Version, uint32(len(msg))
			_, err := client.Write(append(h.Append(nil), msg...))
			require.NoError(t, err)
		}
		write(wire.FrameHeader{Kind: wire.KindHello}, wire.Encode(wire.HelloRequest{MinVersion: 1, MaxVersion: 1}))
		h, err := in.header()
		require.NoError(t, err)
		require.NoError(t, in.skip(h))
		began := time.Now()
		write(wire.FrameHeader{Kind: wire.KindFetch, RequestID: 2}, nil)
		<-released
		require.GreaterOrEqual(t, time.Since(began), 5*time.Second)
		require.Less(t, time.Since(began), 6*time.Second)
		require.NoError(t, s.Close())
		require.Zero(t, s.Stats().InFlight)
	})
}

func TestTimeouts(t *testing.T) {
	t.Run("handshake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := options(HandlerFunc(echo))
			o.HandshakeTimeout = 4 * time.Second
			s := NewServer(o)
			client, server := net.Pipe()
			s.ServeConn(server)
			began := time.Now()
			_, err := client.Read(make([]byte, 1))
			require.Error(t, err)
			require.Equal(t, 4*time.Second, time.Since(began))
			require.NoError(t, s.Close())
		})
	})
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newKept()
			o := options(k)
			o.IdleTimeout = 10 * time.Second
			_, c := overPipe(t, o, ClientOptions{})
			a, _ := send(t, c, "slow")
			request := <-k.requests
			time.Sleep(time.Minute)
			select {
			case <-c.Done():
				t.Fatal("a connection that waits for an answer is not idle")
			default:
			}
			request.Reply([]byte("at last"))
			require.Equal(t, "at last", string((<-a).r.Message))
			began := time.Now()
			<-c.Done()
			require.LessOrEqual(t, time.Since(began), 10*time.Second)
		})
	})
}

func TestMaxConns(t *testing.T) {
	o := options(HandlerFunc(echo))
	o.MaxConns = 2
	s, addr := listen(t, o)
	a, b := dialRaw(t, addr), dialRaw(t, addr)
	a.hello()
	b.hello()
	_, err := Dial(t.Context(), addr, ClientOptions{})
	require.ErrorIs(t, err, base.CodeBusy)

	require.NoError(t, a.nc.Close())
	require.Eventually(t, func() bool { return s.Stats().Connections == 1 }, 10*time.Second, time.Millisecond)
	c, err := Dial(t.Context(), addr, ClientOptions{})
	require.NoError(t, err, "a place is free again")
	require.NoError(t, c.Close())
}
