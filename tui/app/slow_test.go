package app

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// TestSlowTerminal draws half as often while the terminal does not keep up, as over a bad line, and as often as before when
// it does again.
func TestSlowTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan store.Message)
		var shown, blocks, blocked atomic.Int64
		p := newPump(in, 250*time.Millisecond, time.Now, func(any) {
			shown.Add(1)
			blocked.Store(blocks.Load())
		})
		p.slow = func() bool { return blocked.Swap(0) != 0 }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go p.run(ctx)
		tenSeconds := func() int {
			before := shown.Load()
			for i := range 100 {
				time.Sleep(100 * time.Millisecond)
				in <- store.Message{Time: time.Now(), Node: "n1", Boot: 1, Counters: &sdk.NodeCounters{InBytesPerSec: int64(i)}}
			}
			return int(shown.Load() - before)
		}
		tenSeconds()
		require.InDelta(t, 40, tenSeconds(), 1)
		blocks.Store(1)
		require.InDelta(t, 20, tenSeconds(), 1)
		blocks.Store(0)
		tenSeconds()
		require.InDelta(t, 40, tenSeconds(), 1)
	})
}

// TestNewsDoNotWait shows what has happened before the next update is due, with all that happens meanwhile; and nothing
// else any sooner.
func TestNewsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan store.Message)
		var mu sync.Mutex
		var times []time.Time
		p := newPump(in, 250*time.Millisecond, time.Now, func(any) {
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Now())
		})
		p.count = opening // the screen is full
		shown := func() (n int, last time.Time) {
			mu.Lock()
			defer mu.Unlock()
			return len(times), times[len(times)-1]
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go p.run(ctx)
		say := func(m store.Message) {
			m.Time, m.Node, m.Boot = time.Now(), "n1", 1
			in <- m
			synctest.Wait()
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		begins := time.Now()
		count := func() { say(store.Message{Counters: &sdk.NodeCounters{InBytesPerSec: int64(time.Since(begins))}}) }
		count()
		pass(1010 * time.Millisecond) // just after an update
		before, _ := shown()
		count()
		pass(200 * time.Millisecond)
		n, _ := shown()
		require.Equal(t, before, n)
		pass(50 * time.Millisecond)
		n, _ = shown()
		require.Equal(t, before+1, n)

		happened := time.Now()
		say(store.Message{Event: &sdk.Event{Seq: 1, Type: "SEGMENT_SEALED", Subject: "orders/r1"}})
		pass(50 * time.Millisecond)
		say(store.Message{Event: &sdk.Event{Seq: 2, Type: "SEGMENT_OPENED", Subject: "orders/r1"}})
		pass(60 * time.Millisecond)
		n, last := shown()
		require.Equal(t, before+2, n)
		require.Equal(t, 100*time.Millisecond, last.Sub(happened))

		before, _ = shown()
		for seq := range 1000 { // a storm
			say(store.Message{Event: &sdk.Event{Seq: uint64(3 + seq), Type: "SEGMENT_SEALED", Subject: "orders/r1"}})
			pass(10 * time.Millisecond)
		}
		n, _ = shown()
		require.InDelta(t, 120, n-before, 25, "in ten seconds")
	})
}

// TestScreenNoticesSlowWrites takes a write that had to wait for whoever reads for what it is.
func TestScreenNoticesSlowWrites(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	s := &screen{File: w, tty: &terminal{in: r}, gone: func(error) {}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = r.Read(make([]byte, 1)) // it has begun to write
		<-time.After(2 * slowWrite)
		_, _ = io.Copy(io.Discard, r)
	}()
	frame := bytes.Repeat([]byte("x"), 1<<20) // more than a pipe holds
	n, err := s.Write(frame)
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
	require.True(t, s.slow())
	require.False(t, s.slow(), "once is enough")
	require.NoError(t, w.Close())
	<-read
}

// TestStillScreen tells the feed that the screen stands still, so that a recording waits, and that it does not any more.
func TestStillScreen(t *testing.T) {
	b := newBench(t, Options{})
	var told feed.Viewport
	b.env.look = func(v feed.Viewport) { told = v }
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	require.False(t, told.Still)
	b.press("p")
	require.True(t, told.Still)
	b.press("p")
	require.False(t, told.Still)
	b.press(",")
	require.True(t, told.Still, "in the past")
	b.press("L")
	require.False(t, told.Still)
}

// While the screen fills, each node is shown a frame after it has answered.
func TestTheFirstAnswersAreShownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan store.Message)
		shown := make(chan viewMsg, 100)
		p := newPump(in, 2*time.Second, time.Now, func(m any) { shown <- m.(viewMsg) })
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go p.run(ctx)
		in <- store.Message{Time: time.Now(), Nodes: &sdk.NodeList{Nodes: []sdk.NodeStatus{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}}}
		require.Equal(t, 3, (<-shown).view.Nodes.Len())
		for _, id := range []sdk.NodeID{"n1", "n2", "n3"} {
			in <- store.Message{Time: time.Now(), Node: id, Boot: 1, Stream: &store.Stream{State: store.StreamLive}}
		}
		began := time.Now()
		last := <-shown
		require.Equal(t, 3, last.view.Cluster.Streams)
		require.Equal(t, time.Second/framesPerSecond, time.Since(began))
	})
}
