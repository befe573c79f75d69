package dataplane

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
)

// run is one process start of a plane on the real store.
type run struct {
	rig
	store *store.Store
	close func()
}

func startReal(t *testing.T, fs vfs.FS, coord *fakeCoord) *run {
	id, lock, err := store.OpenIdentity(fs, "/data", "/meta", store.IdentityRequest{Node: "n1", Rand: rand.Reader})
	require.NoError(t, err)
	st, err := store.Open(store.Options{FS: fs, DataDir: "/data", ReserveBytes: -1}, *id)
	require.NoError(t, err)
	require.NoError(t, st.Start(t.Context()))
	fenced := make(chan error)
	require.NoError(t, st.FenceAllLed(func(err error) { fenced <- err }))
	require.NoError(t, <-fenced)
	p := New(Options{Node: id.Node, Disk: id.Disk, Boot: id.Boot, Log: st, RequestRoll: coord.requestRoll})
	require.NoError(t, p.Start(t.Context()))
	coord.mu.Lock()
	coord.replica = base.Replica{Node: id.Node, Disk: id.Disk}
	coord.mu.Unlock()
	return &run{rig: rig{t: t, coord: coord, plane: p}, store: st, close: func() {
		require.NoError(t, p.Close())
		require.NoError(t, st.Close())
		require.NoError(t, lock.Close())
	}}
}

func (r *run) assign(a meta.Assignment) meta.Confirmation {
	a.Replicas = []base.Replica{r.coord.replica}
	return r.rig.assign(a)
}

// One range over two process starts: rolls, a restart, the fence that finds the end, a producer that goes on.
func TestPlaneOnTheRealStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		coord := &fakeCoord{next: 100, config: base.TopicConfig{SegmentBytes: 2000, SegmentAge: time.Hour}}
		one := startReal(t, fs, coord)
		require.Equal(t, meta.StatusHeld, one.assign(assignment(1, 1, 0, 0, coord.config)).Status)
		var last outcome
		for seq := range int32(50) {
			last = <-one.append(makeBatch(1, 42, seq, 100), 0)
			require.NoError(t, last.err)
			require.EqualValues(t, seq, last.Base)
		}
		require.Greater(t, last.Segment, base.SegmentID(101), "it rolled")
		active := assignment(last.Segment, last.Epoch, 0, 0, coord.config)
		info, ok := one.store.Info(last.Segment)
		require.True(t, ok)
		active.Base = info.Base
		one.close()

		two := startReal(t, fs, coord)
		defer two.close()
		require.Equal(t, meta.StatusFenced, two.assign(active).Status)
		active.Replicas = []base.Replica{coord.replica}
		answers, err := two.plane.Fence(t.Context(), []meta.FenceRequest{{Ref: testRef, Epoch: active.Epoch, Segment: active.Segment, Base: active.Base}})
		require.NoError(t, err)
		require.EqualValues(t, 50, answers[0].End)
		require.False(t, answers[0].Unbroken)
		require.Equal(t, meta.Extent, answers[0].Kind)

		coord.recovered = answers[0].End
		dup := <-two.append(makeBatch(1, 42, 49, 100), 0)
		require.NoError(t, dup.err)
		require.True(t, dup.Duplicate, "the successor begins with what the range remembers")
		next := <-two.append(makeBatch(1, 42, 50, 100), 0)
		require.NoError(t, next.err)
		require.EqualValues(t, 50, next.Base)
		got, err := two.store.Read(testRef, 49, 1<<20, nil)
		require.NoError(t, err)
		require.EqualValues(t, 50, got.End, "the recovered segment is sealed and readable")
		got.Release()
	})
}
