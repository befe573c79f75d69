package mux

import (
	"net"
	"sync"

	"github.com/eastguard/eastguard/internal/wire"
)

const (
	scratchBytes = 16 << 10
	copyBelow    = 1 << 10 // shorter pieces are copied: cheaper than one more entry in the vector
	maxVector    = 512     // the kernel takes 1,024 at a time
)

// gather collects pieces for one writev: long ones by reference, short ones copied into scratch, where neighbours
// become one piece.
type gather struct {
	scratch []byte // of the last page
	pages   []*[scratchBytes]byte
	vector  [][]byte // backing of bufs
	bufs    net.Buffers
	open    bool // the last piece is the end of scratch and may grow
	size    int
}

// scratches are shared by all connections, so that an idle one holds none.
var scratches = sync.Pool{New: func() any { return new([scratchBytes]byte) }}

func (g *gather) addHeader(h wire.FrameHeader) {
	var b [wire.FrameSize]byte
	g.add(h.Append(b[:0]))
}

func (g *gather) add(b []byte) {
	n := len(b)
	if n == 0 {
		return
	}
	g.size += n
	if n >= copyBelow {
		g.vector = append(g.vector, b)
		g.open = false
	} else {
		g.copy(b)
	}
	g.bufs = g.vector
}

func (g *gather) copy(b []byte) {
	if len(g.scratch)+len(b) > cap(g.scratch) {
		page := scratches.Get().(*[scratchBytes]byte)
		g.pages = append(g.pages, page)
		g.scratch, g.open = page[:0], false
	}
	at := len(g.scratch)
	g.scratch = append(g.scratch, b...)
	if last := len(g.vector) - 1; g.open {
		g.vector[last] = g.scratch[at-len(g.vector[last]):]
	} else {
		g.vector = append(g.vector, g.scratch[at:])
		g.open = true
	}
}

// full reports that it is time to write: the vector is as long as one writev should be, or a page is used up.
func (g *gather) full() bool {
	return len(g.vector) >= maxVector || len(g.scratch) > scratchBytes-copyBelow
}

// advance forgets the first n bytes, which have been written.
func (g *gather) advance(n int) {
	g.size -= n
	for n > 0 {
		first := g.bufs[0]
		if n < len(first) {
			g.bufs[0] = first[n:]
			return
		}
		n -= len(first)
		g.bufs[0] = nil
		g.bufs = g.bufs[1:]
	}
	if g.size == 0 {
		g.reset()
	}
}

// writeTo writes everything, blocking.
func (g *gather) writeTo(conn net.Conn) error {
	var err error
	if len(g.bufs) == 1 {
		_, err = conn.Write(g.bufs[0])
	} else {
		_, err = g.bufs.WriteTo(conn)
	}
	if err == nil {
		g.reset()
	}
	return err
}

func (g *gather) reset() {
	clear(g.vector)
	g.vector, g.bufs = g.vector[:0], nil
	for i, page := range g.pages {
		scratches.Put(page)
		g.pages[i] = nil
	}
	g.pages = g.pages[:0]
	g.scratch, g.open, g.size = nil, false, 0
}
