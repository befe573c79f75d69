package peer

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

func encode(f frame) []byte { return append(f.appendHeader(nil), f.body...) }

// Nodes of different versions must agree on these bytes.
func TestGoldenFrames(t *testing.T) {
	require.Equal(t, "020501e60000000401020304dcca30b2112233445566778865617374",
		hex.EncodeToString(encode(frame{kind: Raft + 5, flags: flagResponse, group: 0x01020304, id: 0x1122334455667788, body: []byte("east")})))
	require.Equal(t, "a70101020103500100000000000000000000000000000004626e31050706500200000000000000000000000000000007626e32", hex.EncodeToString(wire.Encode(Hello{
		MinVersion: 1, MaxVersion: 1, Cluster: base.UUID{1}, Node: "n1", Boot: 7, Instance: base.UUID{2}, To: "n2",
	})))
	require.Equal(t, "snapshot/1", kindChunk.String())
	require.Equal(t, "class-9/1", Kind(0x0901).String())
}

func TestFrameReader(t *testing.T) {
	good := encode(frame{kind: kindEcho, group: 3, id: 9, body: []byte("hello")})
	r := newFrameReader(bytes.NewReader(append(bytes.Clone(good), good...)))
	for range 2 {
		f, err := r.next(5)
		require.NoError(t, err)
		require.Equal(t, frame{kind: kindEcho, group: 3, id: 9, body: []byte("hello")}, f)
	}
	_, err := r.next(5)
	require.Equal(t, io.EOF, err)

	_, err = newFrameReader(bytes.NewReader(good)).next(4)
	require.ErrorIs(t, err, base.CodeCorruptFrame, "too long")
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		_, err := newFrameReader(bytes.NewReader(bad)).next(5)
		require.Error(t, err, "byte %d", i)
		if i > 0 {
			_, err = newFrameReader(bytes.NewReader(good[:i])).next(5)
			require.Equal(t, errCut, err, "cut at %d", i)
		}
	}
}

// A header that claims the most and then nothing costs little.
func TestClaimsCostLittle(t *testing.T) {
	f := frame{kind: kindEcho, body: make([]byte, MaxBody)}
	header := f.appendHeader(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newFrameReader(bytes.NewReader(header)).next(MaxBody)
	runtime.ReadMemStats(&after)
	require.Equal(t, errCut, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*bodyAtATime))
}

// FuzzFrameReader: any bytes give frames that encode to the same bytes again, or an error; never a panic.
func FuzzFrameReader(f *testing.F) {
	f.Add(encode(frame{kind: kindEcho, id: 1, body: []byte("body")}))
	f.Add(append(encode(frame{kind: kindPing, flags: flagResponse, id: 1}), encode(frame{kind: Raft + 1, group: 7, id: 2, body: make([]byte, 300)})...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n........................"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newFrameReader(bytes.NewReader(b))
		at := 0
		for {
			got, err := r.next(MaxBody)
			if err != nil {
				return
			}
			again := encode(got)
			if !bytes.Equal(again, b[at:at+len(again)]) {
				t.Fatalf("at %d: %x became %x", at, b[at:at+len(again)], again)
			}
			at += len(again)
		}
	})
}

// FuzzHost sends any bytes to a host after a proper hello: it answers or closes, and serves others on.
func FuzzHost(f *testing.F) {
	f.Add(encode(frame{kind: kindEcho, id: 1, body: []byte("body")}))
	f.Add(encode(frame{kind: kindPing, flags: flagResponse, id: 1 << 63}))
	f.Add(encode(frame{kind: kindHello, id: 1}))
	f.Add(encode(frame{kind: Control + 77, flags: flagResponse | flagError, id: 5, body: []byte{0xff}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		network := NewNetwork()
		l, err := network.Listen("n1:1")
		require.NoError(t, err)
		n := launch(t, l, Options{Node: "n1", Resolve: func(base.NodeID) (string, bool) { return "", false }})
		nc, err := DialTag(t.Context(), network.Dialer("n2"), "n1:1", TagMain)
		require.NoError(t, err)
		hello := encode(frame{kind: kindHello, id: 1, body: wire.Encode(Hello{MinVersion: 1, MaxVersion: 1, Node: "n2", Instance: base.UUID{2}})})
		require.NoError(t, nc.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = nc.Write(hello)
		require.NoError(t, err)
		_, err = newFrameReader(nc).next(maxHello)
		require.NoError(t, err)
		_, _ = nc.Write(b)
		_ = nc.Close()
		n.stop()
		require.Zero(t, n.Stats().Connections)
	})
}

func TestDemux(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := NewDemux(under, nil)
	gossip := d.Listener(TagGossip)
	d.Start()
	addr := d.Addr().String()
	require.Equal(t, addr, gossip.Addr().String())

	stuck, err := DialTCP(t.Context(), addr) // says nothing, and holds nobody up
	require.NoError(t, err)
	nc, err := DialTag(t.Context(), DialTCP, addr, TagGossip)
	require.NoError(t, err)
	_, err = nc.Write([]byte("rumour"))
	require.NoError(t, err)
	accepted, err := gossip.Accept()
	require.NoError(t, err)
	got := make([]byte, 6)
	_, err = io.ReadFull(accepted, got)
	require.NoError(t, err)
	require.Equal(t, "rumour", string(got))

	stranger, err := DialTag(t.Context(), DialTCP, addr, Tag('?'))
	require.NoError(t, err)
	require.NoError(t, stranger.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = stranger.Read(got)
	require.Error(t, err, "nobody listens for that tag")
	require.NotErrorIs(t, err, context.DeadlineExceeded)

	done := make(chan error, 1)
	go func() {
		_, err := gossip.Accept()
		done <- err
	}()
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
	for _, nc := range []net.Conn{stuck, nc, accepted, stranger} {
		_ = nc.Close()
	}
}
