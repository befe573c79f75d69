package nowait

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func pair(t *testing.T) (near, far *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	near, far = c.(*net.TCPConn), (<-accepted).(*net.TCPConn)
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// What the kernel takes is a prefix, and it takes no more than fits.
func TestItTakesWhatFits(t *testing.T) {
	near, far := pair(t)
	require.NoError(t, near.SetWriteBuffer(16<<10))
	w := New(near)
	require.NotNil(t, w)
	all := make([]byte, 64<<20)
	for i := range all {
		all[i] = byte(i * 31 >> 3)
	}
	n := w.Writev([][]byte{all[:100], all[100:101], all[101:]})
	require.Positive(t, n)
	for more := n; more > 0; { // what it took moves on to the other side for a while
		more = w.Write(all[n:])
		n += more
		require.Less(t, n, len(all))
	}
	got := make([]byte, n)
	_, err := io.ReadFull(far, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(all[:n], got))
}

func TestErrorsTakeNothing(t *testing.T) {
	near, far := pair(t)
	w := New(near)
	require.Equal(t, 3, w.Write([]byte("abc")))
	require.NoError(t, near.SetWriteDeadline(time.Unix(1, 0)))
	require.Zero(t, w.Write([]byte("late")), "the deadline is over")
	require.NoError(t, near.SetWriteDeadline(time.Time{}))
	require.Equal(t, 3, w.Write([]byte("def")))
	require.NoError(t, near.Close())
	require.Zero(t, w.Write([]byte("ghi")))
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	require.Equal(t, "abcdef", string(got))
}

func TestOnlyTCP(t *testing.T) {
	near, far := net.Pipe()
	require.Nil(t, New(near))
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
}

func TestItDoesNotAllocate(t *testing.T) {
	near, far := pair(t)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	w := New(near)
	b := []byte("batch")
	require.Zero(t, testing.AllocsPerRun(100, func() { w.Write(b) }))
}
