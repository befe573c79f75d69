package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

const kindBatch = Replica + 1

func dataAddress(n base.NodeID) string { return string(n) + ":2923" }

// dataNode is a node with a data lane.
type dataNode struct {
	*node
	batches chan *Request

	mu    sync.Mutex
	links []Link
}

func (n *dataNode) seen() []Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Link(nil), n.links...)
}

// waitLink waits for the last word on a link.
func (n *dataNode) waitLink(want func(Link) bool) Link {
	n.t.Helper()
	for range 60_000 {
		if l := n.seen(); len(l) > 0 && want(l[len(l)-1]) {
			return l[len(l)-1]
		}
		time.Sleep(time.Millisecond)
	}
	n.t.Fatalf("links: %+v", n.seen())
	return Link{}
}

func (w *world) startData(name base.NodeID, keep ...base.NodeID) *dataNode {
	n := &dataNode{batches: make(chan *Request, 1000)}
	l, err := w.network.Listen(dataAddress(name))
	require.NoError(w.t, err)
	demux := NewDemux(l, nil)
	data := demux.Listener(TagData)
	n.node = w.start(name, func(o *Options) {
		main := o.Listen
		o.Listen = func(tag Tag) net.Listener {
			if tag == TagData {
				return data
			}
			return main(tag)
		}
		o.ResolveData = func(n base.NodeID) (string, bool) { return dataAddress(n), true }
		o.InFlightBytes = 1 << 20
		o.OnLink = func(l Link) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.links = append(n.links, l)
		}
	})
	n.Register(kindBatch, func(_ context.Context, r *Request) { n.batches <- r })
	demux.Start()
	w.t.Cleanup(func() { _ = demux.Close() })
	require.NoError(w.t, n.Keep(keep))
	return n
}

func up(l Link) bool   { return l.Up }
func down(l Link) bool { return !l.Up }

// What is sent by a data lane arrives in order, whole, in both directions, and says by which connection it came.
func TestDataLane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.startData("n1", "n2"), w.startData("n2", "n1")
		require.ErrorIs(t, a.SendParts("n3", kindBatch, false, []byte("x")), base.CodeUnreachable)
		require.ErrorIs(t, a.SendParts("n2", kindEcho, false, []byte("x")), base.CodeInvalidArgument)
		ab, ba := a.waitLink(up), b.waitLink(up)
		require.Equal(t, base.NodeID("n2"), ab.Node)
		require.EqualValues(t, 1, ab.Boot)
		batch := bytes.Repeat([]byte("batch"), 100_000)
		for i := range 20 {
			require.NoError(t, a.SendParts("n2", kindBatch, false, []byte(fmt.Sprintf("head%02d", i)), batch))
			require.NoError(t, b.SendParts("n1", kindBatch, true, []byte{byte(i)}))
		}
		for i := range 20 {
			r := <-b.batches
			require.Equal(t, fmt.Sprintf("head%02d", i), string(r.Body[:6]))
			require.True(t, bytes.Equal(batch, r.Body[6:]))
			require.Equal(t, ba.Session, r.Session)
			require.EqualValues(t, 6, r.Group)
			r.Reply(nil)
			r = <-a.batches
			require.Equal(t, []byte{byte(i)}, r.Body)
			require.Equal(t, ab.Session, r.Session)
			r.Reply(nil)
		}
	})
}

// A link is told each time it comes and goes, with the process behind it, and that a process is gone as soon as its
// port refuses.
func TestLinksAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.startData("n1", "n2"), w.startData("n2", "n1")
		first := a.waitLink(up)
		w.network.Reset("n1", "n2")
		again := a.waitLink(func(l Link) bool { return l.Up && l.Session != first.Session })
		require.Equal(t, first.Boot, again.Boot)
		seen := a.seen()
		came := slices.IndexFunc(seen, up) // n1 may have found the port of n2 closed before that had started
		require.False(t, seen[came+1].Up, "%+v", seen)
		require.False(t, seen[came+1].Refused)

		killed := time.Now()
		b.kill()
		gone := a.waitLink(func(l Link) bool { return l.Refused })
		require.Less(t, time.Since(killed), time.Second)
		require.False(t, gone.Up)
		time.Sleep(10 * time.Second)
		n := 0
		for _, l := range a.seen()[came:] {
			if l.Refused {
				n++
			}
		}
		require.Equal(t, 1, n, "once an outage")
		require.Equal(t, gone.Session, a.DataLink("n2").Session)

		w.startData("n2", "n1")
		require.EqualValues(t, 2, a.waitLink(up).Boot)
	})
}

// A silent partition ends the connection in time, and the lane comes back by itself.
func TestALinkThatFallsSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.startData("n1", "n2")
		w.startData("n2", "n1")
		a.waitLink(up)
		w.network.Split("n1", "n2")
		w.network.Split("n2", "n1")
		a.waitLink(down)
		silent := time.Since(a.DataLink("n2").Heard)
		require.Greater(t, silent, 4*time.Second)
		require.Less(t, silent, 10*time.Second)
		w.network.Heal()
		a.waitLink(up)
	})
}

// A node that does not let go of what has come is not sent more than it has memory for: the sender's queue fills, and
// says so; nothing is lost.
func TestADataLaneWaitsForRoom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.startData("n1", "n2"), w.startData("n2", "n1")
		a.waitLink(up)
		part := make([]byte, 256<<10)
		sent := 0
		for ; ; sent++ {
			head := binary.BigEndian.AppendUint32(nil, uint32(sent))
			err := a.SendParts("n2", kindBatch, false, head, part)
			if err != nil {
				require.ErrorIs(t, err, base.CodeBusy)
				break
			}
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, len(b.batches), 6, "of 256 KiB each, with 1 MiB allowed")
		for i := range sent {
			r := <-b.batches
			require.EqualValues(t, i, binary.BigEndian.Uint32(r.Body))
			r.Reply(nil)
		}
	})
}

// What is urgent overtakes what waits to be written.
func TestUrgentFramesOvertake(t *testing.T) {
	near, far := net.Pipe()
	o := newOutbox(near, 1<<30, new(atomic.Int64))
	big := make([]byte, writeChunk)
	for range 8 {
		require.NoError(t, o.push(frame{kind: kindBatch, group: writeChunk, body: big}, false))
	}
	done := make(chan error, 1)
	go func() { done <- o.run() }()
	r := newFrameReader(far)
	f, err := r.next(MaxDataBody)
	require.NoError(t, err)
	require.Len(t, f.body, writeChunk)
	require.NoError(t, o.push(frame{kind: kindBatch + 1, urgent: true, group: 3, body: []byte("ack")}, false))
	place := 0
	for f.kind != kindBatch+1 {
		f, err = r.next(MaxDataBody)
		require.NoError(t, err)
		place++
	}
	require.LessOrEqual(t, place, 2)
	for range 8 - place {
		f, err = r.next(MaxDataBody)
		require.NoError(t, err)
		require.Equal(t, kindBatch, f.kind)
	}
	o.close()
	require.ErrorIs(t, <-done, errConnClosed)
	require.NoError(t, near.Close())
}

// The sum of a frame of class Replica covers the head. A batch behind it has its own.
func TestTheSumOfABatch(t *testing.T) {
	good := (&frame{kind: kindBatch, group: 4, body: []byte("head"), tail: [][]byte{[]byte("batch")}}).appendHeader(nil)
	good = append(good, "headbatch"...)
	f, err := newFrameReader(bytes.NewReader(good)).next(9)
	require.NoError(t, err)
	require.Equal(t, "headbatch", string(f.body))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		_, err := newFrameReader(bytes.NewReader(bad)).next(9)
		if i >= headerSize+4 {
			require.NoError(t, err, "byte %d is the batch's", i)
			continue
		}
		require.Error(t, err, "byte %d", i)
	}
}

// A queue that is full takes a few more of what is urgent, and no more than that.
func TestAFullQueueHasRoomForWhatIsUrgent(t *testing.T) {
	near, _ := net.Pipe()
	const limit = 64 << 10
	o := newOutbox(near, limit, new(atomic.Int64))
	for err := error(nil); err == nil; {
		err = o.push(frame{kind: kindBatch, body: make([]byte, 1000)}, false)
	}
	taken := 0
	for o.push(frame{kind: kindBatch + 1, urgent: true, body: make([]byte, 100)}, false) == nil {
		taken++
	}
	require.InDelta(t, limit/8/(headerSize+100), taken, 10)
	require.ErrorIs(t, o.push(frame{kind: kindBatch + 1, urgent: true, body: make([]byte, 100)}, false), errQueueFull)
}
