package app

import (
	"bytes"
	"context"
	"io"
	"os"
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

// TestScreenNoticesSlowWrites takes a write that had to wait for whoever reads for what it is.
func TestScreenNoticesSlowWrites(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	s := &screen{File: w, tty: &terminal{in: r}, gone: func(error) {}}
	read := make(chan struct{})
	time.AfterFunc(2*slowWrite, func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, r)
	})
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
