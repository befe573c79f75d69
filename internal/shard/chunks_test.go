package shard

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// TestASilentStreamMakesRoomWhicheverShardItIsOf: also that of the root shard, whose number is zero.
func TestASilentStreamMakesRoomWhicheverShardItIsOf(t *testing.T) {
	h := &Host{o: Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)}}
	h.incoming.streams = make(map[base.ShardID]*arriving)
	begin := func(shard base.ShardID) error {
		g := &group{id: shard, snapshots: &snapshotStore{dir: shard.String()}}
		require.NoError(t, h.o.FS.MkdirAll(g.snapshots.dir, 0o700))
		_, err := h.arriving(g, &chunkMessage{Envelope: envelope{From: base.UUID{1}, Term: 1}, Stream: 1})
		return err
	}
	require.NoError(t, begin(base.RootShard))
	for i := 1; i < streamsIn; i++ {
		require.NoError(t, begin(base.ShardID{Root: uint16(i)}))
	}
	late := base.ShardID{Root: streamsIn}
	require.ErrorIs(t, begin(late), base.CodeBusy)
	h.incoming.streams[base.RootShard].last = time.Now().Add(-2 * streamIdle)
	require.NoError(t, begin(late))
	require.Len(t, h.incoming.streams, streamsIn)
	require.NotContains(t, h.incoming.streams, base.RootShard)
	for shard := range h.incoming.streams {
		h.dropArriving(shard)
	}
}
