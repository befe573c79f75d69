package mux

import (
	"bytes"
	"net"
	"testing"

	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/wire"
)

// sink is a connection that keeps what is written to it.
type sink struct {
	net.Conn
	bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) { return s.Buffer.Write(b) }
func (s *sink) Read(b []byte) (int, error)  { return s.Buffer.Read(b) }

// Whatever the pieces are, and wherever partial writes cut them, the same bytes come out in the same order.
func TestGatherKeepsBytesInOrder(t *testing.T) {
	var g gather
	rapid.Check(t, func(t *rapid.T) {
		var want, got []byte
		size := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(copyBelow-2, copyBelow+2), rapid.IntRange(0, 3*scratchBytes))
		for range rapid.IntRange(1, 60).Draw(t, "pieces") {
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				h := wire.FrameHeader{RequestID: uint64(len(want))}
				g.addHeader(h)
				want = h.Append(want)
				continue
			}
			piece := bytes.Repeat([]byte{byte(len(want))}, size.Draw(t, "size"))
			g.add(piece)
			want = append(want, piece...)
		}
		if g.size != len(want) {
			t.Fatalf("size %d of %d", g.size, len(want))
		}
		if n := rapid.IntRange(0, len(want)).Draw(t, "partial"); n > 0 {
			got = append(got, bytes.Join(g.bufs, nil)[:n]...)
			g.advance(n)
		}
		var s sink
		if g.size > 0 {
			if err := g.writeTo(&s); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, s.Bytes()...)
		if !bytes.Equal(want, got) || g.size != 0 || len(g.vector) != 0 {
			t.Fatalf("%d bytes in, %d out", len(want), len(got))
		}
	})
}
