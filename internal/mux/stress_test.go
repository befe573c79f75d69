package mux

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// TestStress runs many callers over few connections. Requests differ in size, some are cancelled, some are answered
// from other goroutines and late, with parts of memory and of a file, one connection is closed in the middle. Every
// answer must be that of its request, every done is called once, and in the end nothing is left over.
func TestStress(t *testing.T) {
	rounds := 300
	if os.Getenv("EASTGUARD_SOAK") != "" {
		rounds = 20_000
	}
	content := make([]byte, 256<<10)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	name := t.TempDir() + "/segment"
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS, name, content, 0o600))
	f, err := vfs.OS.OpenFile(name, 0, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()

	o := options(HandlerFunc(func(_ context.Context, r *Request) {
		// The message: offset and length of the content to answer with, and how.
		off, n := int64(binary.BigEndian.Uint32(r.Message)), int64(binary.BigEndian.Uint32(r.Message[4:]))
		answer := func() {
			r.Reply(r.Message, vfs.MemPart(content[off:off+n/2]), vfs.FilePart(f, off+n/2, n-n/2, nil), vfs.MemPart(r.Payload))
		}
		switch r.Message[8] % 4 {
		case 0:
			answer()
		case 1:
			go answer()
		case 2:
			time.AfterFunc(time.Duration(r.Message[9])*10*time.Microsecond, answer)
		case 3:
			r.Reply(r.Message, vfs.MemPart(content[off:off+n]), vfs.MemPart(r.Payload))
		}
	}))
	o.MaxInFlightRequests, o.MaxInFlightBytes = 32, 1<<20
	s, addr := listen(t, o)

	var conns []*Conn
	for range 3 {
		c, err := Dial(t.Context(), addr, ClientOptions{})
		require.NoError(t, err)
		conns = append(conns, c)
	}
	var callers sync.WaitGroup
	for i := range 12 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range rounds {
				c := conns[rng.IntN(len(conns))]
				off := rng.IntN(len(content) / 2)
				n := rng.IntN(1 << rng.IntN(17))
				msg := binary.BigEndian.AppendUint32(nil, uint32(off))
				msg = binary.BigEndian.AppendUint32(msg, uint32(n))
				msg = append(msg, byte(rng.Uint32()), byte(rng.Uint32()))
				payload := content[:rng.IntN(1<<rng.IntN(17))]
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if rng.IntN(10) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
				}
				r, err := c.Call(ctx, wire.KindFetch, msg, [][]byte{payload[:len(payload)/2], payload[len(payload)/2:]})
				cancel()
				switch {
				case err != nil:
					if code := base.CodeOf(err); code != base.CodeTimeout && code != base.CodeUnreachable {
						t.Error(err)
					}
				case !bytes.Equal(r.Message, msg) || !bytes.Equal(r.Payload, append(content[off:off+n:off+n], payload...)):
					t.Errorf("the answer to (%d, %d) is another's", off, n)
				}
			}
		})
	}
	callers.Go(func() { require.NoError(t, conns[2].Close()) })
	callers.Wait()
	for _, c := range conns {
		if n := c.InFlight(); n != 0 {
			t.Errorf("%d calls left", n)
		}
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { st := s.Stats(); return st.InFlight == 0 && st.HeldBytes == 0 && st.Connections == 0 },
		10*time.Second, time.Millisecond, "%+v", s.Stats())
}
