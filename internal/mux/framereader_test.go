package mux

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

func TestFramesOfEverySize(t *testing.T) {
	for _, sizes := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {44, 100}, {readBuffer, readBuffer}, {100, trust - 100}, {100, trust}, {3, 3*trust + 7}} {
		msg, payload := bytes.Repeat([]byte("m"), sizes[0]), bytes.Repeat([]byte("p"), sizes[1])
		h := wire.FrameHeader{Version: 1, Kind: wire.KindPing, MessageLen: uint32(sizes[0]), PayloadLen: uint32(sizes[1]), RequestID: 7}
		one := append(append(h.Append(nil), msg...), payload...)
		f := newFrameReader(iotest.HalfReader(bytes.NewReader(append(one, one...))))
		for range 2 {
			got, err := f.header()
			require.NoError(t, err)
			require.Equal(t, h, got)
			m, p, err := f.body(got, nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(msg, m) && bytes.Equal(payload, p), sizes)
			require.Equal(t, len(m), cap(m), "an append to the message must not reach the payload")
		}
		_, err := f.header()
		require.ErrorIs(t, err, io.EOF)

		for _, cut := range []int{1, wire.FrameSize - 1, len(one) - 1} {
			f := newFrameReader(bytes.NewReader(one[:cut]))
			h, err := f.header()
			if err == nil {
				_, _, err = f.body(h, nil)
			}
			if cut < len(one) {
				require.ErrorIs(t, err, errCut, "%v cut at %d", sizes, cut)
			}
		}
	}
}

// FuzzFrameReader: any bytes are frames, the end, or an error; never a panic, and never an allocation that a header
// has only claimed.
func FuzzFrameReader(f *testing.F) {
	h := wire.FrameHeader{Version: 1, Kind: wire.KindPing, MessageLen: 3, PayloadLen: 2, RequestID: 7}
	f.Add(append(h.Append(nil), "msgpl"...))
	f.Add(append(append(h.Append(nil), "msgpl"...), "GET / HTTP/1.1"...))
	h.PayloadLen = wire.MaxPayload
	f.Add(h.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFrameReader(iotest.OneByteReader(bytes.NewReader(b)))
		total := 0
		for {
			h, err := in.header()
			var msg, payload []byte
			if err == nil {
				msg, payload, err = in.body(h, nil)
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errCut) && !errors.Is(err, base.CodeCorruptFrame) && !errors.Is(err, base.CodeUnsupportedVersion) {
					t.Fatalf("unexpected error %v", err)
				}
				return
			}
			total += wire.FrameSize + len(msg) + len(payload)
			if total > len(b) || len(msg) != int(h.MessageLen) || len(payload) != int(h.PayloadLen) {
				t.Fatalf("frame %+v of %d bytes", h, len(b))
			}
		}
	})
}

// A whole fetch of the default size comes in one allocation; from a stranger as much needs two, the first of them small.
func TestAnswersAreReadIntoOneAllocation(t *testing.T) {
	h := wire.FrameHeader{Version: wire.Version, Kind: wire.KindFetch, PayloadLen: 8 << 20}
	for limit, want := range map[int][]int{trust: {trust, 8<<20 - trust}, answerTrust: {8 << 20}} {
		f := newFrameReader(bytes.NewReader(make([]byte, 8<<20)))
		f.trust = limit
		var asked []int
		_, payload, err := f.body(h, func(n int) bool { asked = append(asked, n); return true })
		require.NoError(t, err)
		require.Len(t, payload, 8<<20)
		require.Equal(t, want, asked)
	}
}
