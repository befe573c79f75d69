package peer

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// outboxOverTCP is an outbox and what reads behind it.
func outboxOverTCP(t *testing.T, buffer int) (*outbox, *frameReader, func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	far := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		far <- c
	}()
	near, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	if buffer > 0 {
		require.NoError(t, near.(*net.TCPConn).SetWriteBuffer(buffer))
	}
	other := <-far
	return newOutbox(near, 1<<30, new(atomic.Int64)), newFrameReader(other), func() {
		require.NoError(t, near.Close())
		require.NoError(t, other.Close())
	}
}

// A small frame leaves without the writer goroutine.
func TestASmallFrameIsWrittenByWhoPushesIt(t *testing.T) {
	o, r, end := outboxOverTCP(t, 0)
	defer end()
	for i := range 100 {
		require.NoError(t, o.push(frame{kind: kindBatch, group: 1, body: []byte{byte(i)}, tail: [][]byte{make([]byte, 1000)}}, false))
		f, err := r.next(MaxDataBody)
		require.NoError(t, err)
		require.EqualValues(t, i, f.body[0])
		require.Len(t, f.body, 1001)
	}
	require.Zero(t, o.bytes)
	require.EqualValues(t, 100*(headerSize+1001), o.sent.Load())
}

// Whoever writes, every frame arrives whole, once, and in the order in which its goroutine pushed it: small ones and large
// ones, through a socket that takes a part of a frame at a time.
func TestFramesArriveInOrderWhoeverWritesThem(t *testing.T) {
	o, r, end := outboxOverTCP(t, 4<<10)
	defer end()
	done := make(chan error, 1)
	go func() { done <- o.run() }()
	const pushers, each = 4, 3000
	var pushing sync.WaitGroup
	for p := range pushers {
		pushing.Go(func() {
			for i := range each {
				head := binary.BigEndian.AppendUint32([]byte{byte(p)}, uint32(i))
				part := make([]byte, (i*37+p*1000)%6000) // some are not small
				if err := o.push(frame{kind: kindBatch, group: 5, body: head, tail: [][]byte{part}}, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]uint32, pushers)
	for range pushers * each {
		f, err := r.next(MaxDataBody)
		require.NoError(t, err)
		p, i := f.body[0], binary.BigEndian.Uint32(f.body[1:])
		require.Equal(t, next[p], i, "of pusher %d", p)
		require.Len(t, f.body, 5+(int(i)*37+int(p)*1000)%6000)
		next[p]++
	}
	pushing.Wait()
	o.close()
	require.ErrorIs(t, <-done, errConnClosed)
}

// The writer goroutine ends when the connection does, also while somebody else is writing.
func TestTheWriterEndsWithTheConnection(t *testing.T) {
	for range 200 {
		o, _, end := outboxOverTCP(t, 0)
		done := make(chan error, 1)
		go func() { done <- o.run() }()
		var pushing sync.WaitGroup
		for range 2 {
			pushing.Go(func() {
				for o.push(frame{kind: kindBatch, group: 1, body: []byte{1}}, false) == nil {
				}
			})
		}
		o.close()
		require.ErrorIs(t, <-done, errConnClosed)
		pushing.Wait()
		end()
	}
}
