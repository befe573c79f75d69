package shard

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func TestStandstill(t *testing.T) {
	var s standstill
	require.False(t, s.lasts(at0, time.Time{}), "nothing is to be written")
	s.begin(at0)
	require.False(t, s.lasts(at0.Add(stillAfter-1), time.Time{}))
	require.True(t, s.lasts(at0.Add(stillAfter), time.Time{}))
	require.False(t, s.lasts(at0.Add(stillAfter), at0.Add(1)), "the process stood still, not the disk")

	s.begin(at0.Add(stillAfter))
	require.True(t, s.lasts(at0.Add(stillAfter), time.Time{}), "more work is no progress")
	s.end(at0.Add(stillAfter))
	require.False(t, s.lasts(at0.Add(2*stillAfter-1), time.Time{}))
	require.True(t, s.lasts(at0.Add(2*stillAfter), time.Time{}), "the other one waits still")
	s.end(at0.Add(2 * stillAfter))
	require.False(t, s.lasts(at0.Add(9*stillAfter), time.Time{}))
}

// TestALeaderWhoseDiskHangsIsReplaced: it can be reached, and its heartbeats go on.
func TestALeaderWhoseDiskHangsIsReplaced(t *testing.T) {
	disks := make(map[base.NodeID]*vfs.Fault)
	faulty := func(o *Options) {
		disks[o.Node] = vfs.NewFault(o.FS)
		o.FS = disks[o.Node]
	}
	synctestPlant(t, 3, 2, faulty, func(t *testing.T, p *plant) {
		p.seatAll()
		p.converge()
		require.Same(t, p.nodes["n1"].host, p.leader(base.RootShard))
		mended := make(chan struct{})
		mend := sync.OnceFunc(func() { close(mended) })
		defer mend()
		disks["n1"].Add(vfs.Rule{Ops: vfs.OpSyncs, Before: func(vfs.Call) { <-mended }})

		refused := make(chan error, 1)
		go func() { refused <- create(p.within(20*time.Second), p.nodes["n1"].host, 100) }()
		took := p.awaitLeaders(5*time.Second, "n2", "n3")
		t.Logf("led elsewhere after %s", took)
		p.create(1, "n2", "n3")

		mend()
		<-refused // it may be applied or not: nobody was told that it was
		p.converge()
		require.True(t, p.has(1))
	})
}
