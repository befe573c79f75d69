package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// A fetch that is woken when the pool is full is refused, and leaves nothing behind on the ranges that stay idle.
func TestRefusedFetchLeavesNoWaiter(t *testing.T) {
	n := start(t, vfs.NewMem())
	ref := n.create("t", base.TopicConfig{})
	answers := make(chan error, 1)
	_, err := n.conn.Go(wire.KindFetch, wire.Encode(wire.FetchRequest{
		MaxWaitMs: 15_000, MinBytes: 1, MaxBytes: 1, Ranges: []wire.FetchRange{{Topic: ref.Topic, Range: ref.Range, MaxBytes: 1}},
	}), nil, func(_ mux.Response, err error) { answers <- err })
	require.NoError(t, err)
	eventually(t, func() bool { return n.parked.len() == 1 })
	p := n.parked.all()[0]
	waits := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.cancels)
	}
	eventually(t, func() bool { return waits() == 3 })

	block := make(chan struct{})
	for n.fetchPool.run(func() { <-block }) == nil {
	}
	p.wake()
	require.ErrorIs(t, <-answers, base.CodeBusy)
	require.Zero(t, waits())
	close(block)
}
