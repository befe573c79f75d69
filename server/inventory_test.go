package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/wire"
)

// Who only looks before a seal is forced must be told what a fence would tell.
func TestTheInventoryTellsOfDamage(t *testing.T) {
	t.Parallel()
	info := store.SegmentInfo{SegmentSpec: store.SegmentSpec{Segment: 7, Base: 100}, DurableEnd: 140, DamagedAbove: 120}
	require.Equal(t, meta.HeldSegment{Segment: 7, Base: 100, End: 140}, heldSegment(info))
	info.Damaged = true
	require.Equal(t, meta.HeldSegment{Segment: 7, Base: 100, End: 140, Damaged: true, Intact: 120}, heldSegment(info))
}

// A process that finds its copy damaged has started anew, and that is the lesser news.
func TestADamagedCopyOfAnEarlierStart(t *testing.T) {
	t.Parallel()
	disk := base.DiskID{2}
	seg := &meta.Segment{State: base.StateActive, Replicas: []base.Replica{{Node: "n2", Disk: disk}}, Boots: []uint64{4}}
	h := holding{disk: disk, boot: 5, held: true, durable: 110}
	require.Equal(t, wire.ReplicaRestarted, replicaState(seg, 0, h))
	h.damaged = true
	require.Equal(t, wire.ReplicaDamaged, replicaState(seg, 0, h))
}
