package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Topics come and go while they are written, read, rolled and flushed. What remains is nothing: no segment, no file, no
// actor, no waiting fetch.
func TestTopicsDeletedUnderLoad(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	n := start(t, mem, smallCache)
	batch := makeBatch(t, header.NoProducer, -1, strings.Repeat("x", 50_000))
	var workers sync.WaitGroup
	for w := range 3 {
		conn := n.dial()
		t.Cleanup(func() { _ = conn.Close() })
		workers.Go(func() {
			for i := range rounds(8, 300) {
				churn(t, &node{Server: n.Server, t: t, conn: conn}, fmt.Sprintf("t-%d-%d", w, i), batch, 20+10*i)
			}
		})
	}
	workers.Wait()
	eventually(t, func() bool { return n.store.Stats().Segments == 0 && n.plane.Leads() == 0 && n.parked.len() == 0 })
	eventually(t, func() bool { return len(files(t, mem, "/data/topics")) == 0 })
	n.mustProduce(n.create("last", base.TopicConfig{}), "and it goes on")
}

// churn makes a topic, deletes it after so many acks with more on their way, and sees that everybody is told.
func churn(t *testing.T, n *node, name string, batch []byte, acks int) {
	ref := n.create(name, base.TopicConfig{SegmentBytes: 1 << 20})
	req := wire.Encode(wire.ProduceRequest{Topic: ref.Topic, Range: ref.Range, SpanHi: ^uint64(0), TimeoutMs: 5000})
	slots := make(chan struct{}, 8)
	acked := make(chan struct{}, 10_000)
	ended := make(chan error, 10_000)
	stop := make(chan struct{})
	var producer sync.WaitGroup
	producer.Go(func() {
		for {
			select {
			case slots <- struct{}{}:
			case <-stop:
				return
			}
			_, err := n.conn.Go(wire.KindProduce, req, [][]byte{batch}, func(_ mux.Response, err error) {
				if err == nil {
					acked <- struct{}{}
				} else {
					ended <- err
				}
				<-slots
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range acks {
		<-acked
	}
	read := n.fetch(ref, 0, 0)
	require.Equal(t, base.CodeOK, read.Code)
	must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: name})
	select {
	case err := <-ended:
		require.ErrorIs(t, err, base.CodeTopicNotFound)
	case <-time.After(patience):
		t.Error("the producer was not told")
	}
	close(stop)
	producer.Wait()
}

// files lists what is under a directory, directories aside.
func files(t *testing.T, fs vfs.FS, dir string) (names []string) {
	entries, err := fs.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir {
			names = append(names, files(t, fs, dir+"/"+e.Name)...)
			continue
		}
		if e.Name != "uuid" { // the directory's own mark
			names = append(names, dir+"/"+e.Name)
		}
	}
	return names
}
