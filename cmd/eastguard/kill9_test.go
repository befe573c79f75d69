package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/sim/testport"
	"github.com/eastguard/eastguard/sdk"
)

// TestKill9 kills the broker under load, again and again, sometimes while it still recovers from the last time.
// After each restart everything is read back: every record that was acknowledged is there once, at the offset of
// its ack, each producer's records are dense and in order, and every topic whose creation was acknowledged is
// known. The producers live through it all, so their retries meet a broker that must recognise what it has already.
//
// EASTGUARD_KILL9_ROUNDS sets the number of rounds.
func TestKill9(t *testing.T) {
	needsProcess(t)
	rounds := 2
	if text := os.Getenv("EASTGUARD_KILL9_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		rounds = n
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	dir := t.TempDir()
	port := freePort(t)
	// Small segments, so that rolls and checkpoints are among what is interrupted.
	start := func() *process { return spawn(t, dir, "--client-port", port, "--segment-size-limit-bytes", "1MiB") }

	p := start()
	c := newClient(t, p.address())
	_, err := c.Admin().CreateTopic(within(t, limit), sdk.CreateTopic{Name: "load", Config: sdk.TopicConfig{ReplicationFactor: 1}, Ranges: 2})
	require.NoError(t, err)
	l := startLoad(t, c, "load", 4)

	for round := 1; round <= rounds; round++ {
		createTopic(t, c, fmt.Sprintf("round-%d", round), sdk.TopicConfig{})
		l.awaitAcks(200 + rng.IntN(3000))
		p.signal(syscall.SIGKILL)
		require.Equal(t, -1, p.exit())
		for rng.IntN(3) == 0 { // and once more while it starts
			early := start()
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond) // a random moment, nothing waits for it
			early.signal(syscall.SIGKILL)
			early.exit()
		}
		p = start()
		acked := l.acked()
		reader := newClient(t, p.address())
		verify(t, readAll(t, reader, "load"), acked)
		for i := 1; i <= round; i++ {
			_, err := reader.Admin().DescribeTopic(within(t, limit), fmt.Sprintf("round-%d", i))
			require.NoError(t, err)
		}
		require.NoError(t, reader.Close())
		t.Logf("round %d: %d records acknowledged so far", round, total(acked))
	}
	l.stop()
	verify(t, readAll(t, c, "load"), l.acked())
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit())
}

// freePort is a port that nobody else uses, for a broker that must come back under the same one.
func freePort(t *testing.T) string {
	t.Helper()
	p, err := testport.Take("127.0.0.1")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Release() })
	return strconv.Itoa(p.Number)
}

// load is a set of producers that write numbered records as fast as they are taken.
type load struct {
	t    *testing.T
	quit context.Context // ends when the producers must stop: at the end, or at the first failure
	end  context.CancelFunc
	wg   sync.WaitGroup

	failed sync.Once
	count  atomic.Int64  // of acks
	woken  chan struct{} // capacity one: an ack has come

	mu      sync.Mutex
	granted sync.Cond // allowed has grown, or quit has ended
	allowed int       // how many records may be sent in all
	sent    int
	acks    [][]int64 // by producer: offset of each record acknowledged, by its number; -1 while unknown
}

func startLoad(t *testing.T, c *sdk.Client, topic string, producers int) *load {
	l := &load{t: t, woken: make(chan struct{}, 1), acks: make([][]int64, producers)}
	l.granted.L = &l.mu
	l.quit, l.end = context.WithCancel(context.Background())
	context.AfterFunc(l.quit, func() {
		l.mu.Lock()
		l.granted.Broadcast()
		l.mu.Unlock()
	})
	t.Cleanup(l.stop)
	codecs := []sdk.Compression{sdk.CompressionNone, sdk.CompressionLZ4, sdk.CompressionZstd}
	for i := range producers {
		producer, err := c.NewProducer(topic, sdk.WithCompression(codecs[i%len(codecs)]),
			sdk.WithDeliveryTimeout(5*time.Minute), sdk.WithBufferBytes(1<<20), sdk.WithLinger(time.Millisecond))
		require.NoError(t, err)
		l.wg.Go(func() { l.produce(producer, i) })
	}
	return l
}

// produce sends records until told to stop. Half of a record is its number, the rest says whose it is.
func (l *load) produce(producer *sdk.Producer, i int) {
	for n := int64(0); ; n++ {
		if !l.next(i) {
			if err := producer.Close(within(l.t, time.Minute)); err != nil {
				l.fail("producer %d: close: %v", i, err)
			}
			return
		}
		value := binary.BigEndian.AppendUint64(make([]byte, 0, 256), uint64(n))[:256]
		err := producer.SendAsync(sdk.Record{Key: []byte{byte(i)}, Value: value}, func(ack sdk.Ack, err error) {
			if err != nil {
				l.fail("producer %d: record %d: %v", i, n, err)
				return
			}
			l.mu.Lock()
			l.acks[i][n] = ack.Offset
			l.mu.Unlock()
			l.count.Add(1)
			select {
			case l.woken <- struct{}{}:
			default:
			}
		})
		if err != nil {
			l.fail("producer %d: record %d: %v", i, n, err)
			return
		}
	}
}

// next takes producer i's next record from what is allowed; false means that it is time to stop.
func (l *load) next(i int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.sent >= l.allowed && l.quit.Err() == nil {
		l.granted.Wait()
	}
	l.sent++
	l.acks[i] = append(l.acks[i], -1)
	return l.quit.Err() == nil
}

// fail reports the first failure and ends the load; the others are its consequences.
func (l *load) fail(format string, args ...any) {
	l.failed.Do(func() { l.t.Errorf(format, args...) })
	l.end()
}

// awaitAcks lets enough records go that plenty are under way when n more have been acknowledged, and returns then.
func (l *load) awaitAcks(n int) {
	l.t.Helper()
	l.mu.Lock()
	l.allowed += n + 20_000
	l.granted.Broadcast()
	l.mu.Unlock()
	goal := l.count.Load() + int64(n)
	deadline := time.After(limit)
	for l.count.Load() < goal {
		select {
		case <-l.woken:
		case <-l.quit.Done():
			l.t.FailNow()
		case <-deadline:
			l.t.Fatalf("%d acks are missing", goal-l.count.Load())
		}
	}
}

// acked copies what has been acknowledged so far.
func (l *load) acked() [][]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	acks := make([][]int64, len(l.acks))
	for i := range acks {
		acks[i] = append([]int64(nil), l.acks[i]...)
	}
	return acks
}

func (l *load) stop() {
	l.end()
	l.wg.Wait()
}

func total(acks [][]int64) (n int) {
	for _, offsets := range acks {
		for _, o := range offsets {
			if o >= 0 {
				n++
			}
		}
	}
	return n
}

// verify checks what was read, in the order in which it was read, against what had been acknowledged before.
func verify(t *testing.T, all []sdk.Message, acks [][]int64) {
	t.Helper()
	next := make([]int64, len(acks))    // by producer: the number that must come next
	ends := make(map[sdk.RangeID]int64) // offsets are dense from 0
	for _, m := range all {
		if m.Offset != ends[m.Range] || len(m.Key) != 1 || len(m.Value) != 256 {
			t.Fatalf("record %d of %s has offset %d, a key of %d and a value of %d bytes", ends[m.Range], m.Range, m.Offset, len(m.Key), len(m.Value))
		}
		ends[m.Range]++
		i, n := int(m.Key[0]), int64(binary.BigEndian.Uint64(m.Value))
		if n != next[i] {
			t.Fatalf("producer %d at offset %d: record %d where %d must follow: one is lost, repeated or out of order", i, m.Offset, n, next[i])
		}
		next[i]++
		if n < int64(len(acks[i])) && acks[i][n] >= 0 && acks[i][n] != m.Offset {
			t.Fatalf("producer %d, record %d: acknowledged at offset %d, and read at %d", i, n, acks[i][n], m.Offset)
		}
	}
	for i, offsets := range acks {
		for n, o := range offsets {
			if o >= 0 && int64(n) >= next[i] {
				t.Fatalf("producer %d, record %d: acknowledged at offset %d, and not there", i, n, o)
			}
		}
	}
}
