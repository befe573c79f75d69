package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
)

// BenchmarkReplicatedAppend is three planes in one process, on stores in memory: what replication costs beside disks
// and networks. Batches are sent as one client would, so many bytes at a time.
func BenchmarkReplicatedAppend(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		for _, nodes := range []int{1, 3} {
			b.Run(fmt.Sprintf("bytes=%d/replicas=%d", size, nodes), func(b *testing.B) {
				benchTeam(b, size, nodes)
			})
		}
	}
}

func benchTeam(b *testing.B, size, replicas int) {
	m := newTeam(b, teamOptions{config: base.TopicConfig{SegmentBytes: 64 << 20, SegmentAge: time.Hour}})
	defer m.close()
	ref := base.RangeRef{Topic: testTopic, Range: 2}
	m.coord.create(ref, []base.NodeID{"n1", "n2", "n3"}[:replicas]...)
	stop := make(chan struct{})
	var trimmer sync.WaitGroup
	trimmer.Go(func() { m.trimBehind(ref, stop) })
	defer trimmer.Wait()
	defer close(stop)

	batch := makeBatch(max(1, size/100), header.NoProducer, -1, size-header.Size)
	slots := make(chan struct{}, max(4, min(256, 8<<20/size)))
	done := func(_ AppendResult, err error) {
		if err != nil {
			b.Error(err)
		}
		<-slots
	}
	p := m.coord.leader(ref)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		slots <- struct{}{}
		p.Append(AppendRequest{Ref: ref, Bytes: bytes.Clone(batch)}, done)
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// trimBehind drops what has been sealed, for disks in memory are small.
func (m *team) trimBehind(ref base.RangeRef, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		last := m.coord.last(ref)
		for _, one := range m.members {
			_, err := one.plane.Load().Tell(context.Background(), meta.Orders{Trims: []meta.Trim{{Ref: ref, Earliest: last.Base, Version: last.Version}}})
			require.NoError(m.t, err)
		}
	}
}
