package server

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func smallCache(c *config.Config) { c.CacheBudgetBytes = 1 << 20 }

// A disk that takes 300 ms a sync, and far more work than it can do: every request has an answer by its deadline, and
// each error says whether the batch may still be applied.
func TestOverloadIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, fault)
	ref := n.create("t", base.TopicConfig{})
	fault.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "/data/wal/*", Delay: 300 * time.Millisecond})
	const clients, each = 8, 40
	body := makeBatch(t, header.NoProducer, -1, strings.Repeat("x", 900_000))
	var mu sync.Mutex
	codes := map[base.Code]int{}
	var all sync.WaitGroup
	for range clients {
		conn := n.dial()
		t.Cleanup(func() { _ = conn.Close() })
		for i := range each {
			timeout := 1500 * time.Millisecond
			if i == 0 { // who comes first and has the time gets through, however slow the machine is
				timeout = patience
			}
			all.Add(1)
			began := time.Now()
			req := wire.Encode(wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: uint32(timeout.Milliseconds())})
			_, err := conn.Go(wire.KindProduce, req, [][]byte{body}, func(_ mux.Response, err error) {
				defer all.Done()
				mu.Lock()
				defer mu.Unlock()
				code := base.CodeOK
				if err != nil {
					code = base.CodeOf(err)
				}
				codes[code]++
				// Requests wait in the client's and the kernel's buffers too, where the broker cannot see them: for as long as
				// the machine needs to carry them all.
				if late := time.Since(began) - timeout; late > patience {
					t.Errorf("answered %s after the deadline: %v", late, err)
				}
			})
			require.NoError(t, err)
		}
	}
	all.Wait()
	require.Positive(t, codes[base.CodeOK])
	for code := range codes {
		require.Contains(t, []base.Code{base.CodeOK, base.CodeBusy, base.CodeTimeout}, code, "%v", codes)
	}
	fault.Clear()
	n.mustProduce(ref, "and it goes on")
}

// Memory stays flat under whatever comes in.
func TestGarbageCostsNoMemory(t *testing.T) {
	n := start(t, vfs.NewMem())
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// A header that claims 65 MiB, of which nothing comes; and one that is not a header.
	claim := wire.FrameHeader{Version: 1, Kind: wire.KindProduce, PayloadLen: wire.MaxPayload}.Append(nil)
	before := heap()
	for i := range 300 {
		c, err := net.Dial("tcp", n.Addr())
		require.NoError(t, err)
		junk := claim
		if i%2 == 0 {
			junk = []byte(strings.Repeat("\xff", 4096))
		}
		if _, err := c.Write(junk); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("write: %v", err) // the broker may have hung up already
		}
		require.NoError(t, c.Close())
	}
	eventually(t, func() bool { return n.mux.Stats().Connections <= 1 })
	require.Less(t, int64(heap())-int64(before), int64(16<<20))
	must[wire.PingResponse](n, wire.KindPing, wire.PingRequest{})
}
