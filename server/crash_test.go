package server

import (
	"fmt"
	"math/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

func rounds(quick, soak int) int {
	if os.Getenv("EASTGUARD_SOAK") != "" {
		return soak
	}
	return quick
}

// loader keeps some batches of one producer in flight on a connection of its own, each with its number in it, and
// knows how many have been acked.
type loader struct {
	id    int64
	conn  *mux.Conn
	acked atomic.Int64 // all below were acked, in order
	stop  atomic.Bool
	done  sync.WaitGroup
}

const window = 4

func (l *loader) run(t *testing.T, ref base.RangeRef) {
	slots := make(chan struct{}, window)
	for seq := int32(0); !l.stop.Load(); seq++ {
		slots <- struct{}{}
		b := makeBatch(t, l.id, seq, fmt.Sprintf("%d:%d", l.id, seq))
		req := wire.Encode(wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: 5000})
		_, err := l.conn.Go(wire.KindProduce, req, [][]byte{b}, func(_ mux.Response, err error) {
			if err == nil && !l.stop.Load() {
				l.acked.CompareAndSwap(int64(seq), int64(seq)+1)
			}
			<-slots
		})
		if err != nil {
			return
		}
	}
	for range window {
		slots <- struct{}{}
	}
}

// The power fails under load, at any moment, again and again: all that was acked is there, once, in each producer's
// order, and the range takes appends again.
func TestPowerLossUnderLoad(t *testing.T) {
	t.Parallel()
	for round := range rounds(6, 200) {
		t.Run(fmt.Sprint(round), func(t *testing.T) { powerLoss(t, rand.New(rand.NewSource(int64(round)))) })
	}
}

func powerLoss(t *testing.T, rng *rand.Rand) {
	mem := vfs.NewMem()
	n := start(t, mem)
	ref := n.create("t", base.TopicConfig{SegmentBytes: base.MinSegmentBytes})
	loaders := make([]*loader, 3)
	for i := range loaders {
		l := &loader{id: int64(i + 1), conn: n.dial()}
		loaders[i] = l
		l.done.Go(func() { l.run(t, ref) })
	}
	until := int64(rng.Intn(600))
	eventually(t, func() bool { return loaders[0].acked.Load() >= until })
	acked := make([]int64, len(loaders))
	for i, l := range loaders {
		acked[i] = l.acked.Load() // read before the clone: each of these acks was given before the power failed
	}
	left := mem.CrashClone(rng, rng.Float64())
	for _, l := range loaders {
		l.stop.Store(true)
		require.NoError(t, l.conn.Close())
		l.done.Wait()
	}
	n.stop()
	n.fs = left
	n.boot()

	next := map[string]int64{}
	for at := int64(0); ; {
		f := n.fetch(ref, at, 50*time.Millisecond)
		if f.Code == base.CodeBehind {
			continue
		}
		require.Equal(t, base.CodeOK, f.Code)
		for i, v := range f.values {
			require.Equal(t, at+int64(i), f.offsets[i])
			id, seq, _ := strings.Cut(v, ":")
			require.Equal(t, fmt.Sprint(next[id]), seq, "producer %s", id)
			next[id]++
		}
		if at = f.Next; len(f.values) == 0 && f.State == wire.FetchActive && f.Commit == at {
			break
		}
	}
	for i, a := range acked {
		require.GreaterOrEqual(t, next[fmt.Sprint(i+1)], a, "producer %d", i+1)
	}
	// And a producer that retries what it does not know goes on where it was.
	resume := next["1"]
	p, err := n.produce(ref, makeBatch(t, 1, int32(resume), "1:after"))
	require.NoError(t, err)
	require.False(t, p.Duplicate)
	if resume > 0 {
		p, err = n.produce(ref, makeBatch(t, 1, int32(resume-1), fmt.Sprintf("1:%d", resume-1)))
		require.NoError(t, err)
		require.True(t, p.Duplicate)
	}
	require.GreaterOrEqual(t, p.Base, int64(0))
	require.Empty(t, n.Fatal())
}

// A consumer that starts at the beginning while a producer rolls through many segments sees everything, in order.
func TestSlowConsumerThroughManySegments(t *testing.T) {
	n := start(t, vfs.NewMem(), smallCache)
	ref := n.create("t", base.TopicConfig{SegmentBytes: 1 << 20})
	batches := rounds(400, 10_000)
	const perBatch = 100
	values := make([]string, perBatch)
	produced := make(chan error, 1)
	go func() {
		for i := range batches {
			for j := range values {
				values[j] = fmt.Sprintf("%d %s", i*perBatch+j, strings.Repeat("z", 80))
			}
			if _, err := n.produce(ref, makeBatch(t, header.NoProducer, -1, values...)); err != nil {
				produced <- err
				return
			}
		}
		produced <- nil
	}()
	for i, v := range n.readAll(ref, 0, batches*perBatch) {
		if !strings.HasPrefix(v, fmt.Sprintf("%d ", i)) {
			t.Fatalf("record %d is %q", i, v)
		}
	}
	require.NoError(t, <-produced)
}
