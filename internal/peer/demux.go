package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Tag is the first byte of every connection to the cluster port: what the rest of it is for.
type Tag byte

// The tags. They never change their meaning.
const (
	TagGossip Tag = 'g'
	TagMain   Tag = 'm'
	TagBulk   Tag = 'b'
	TagAsk    Tag = 'a'
	TagData   Tag = 'd' // on the data port
)

// String prints gossip, main, bulk, ask or data.
func (t Tag) String() string {
	switch t {
	case TagGossip:
		return "gossip"
	case TagMain:
		return "main"
	case TagBulk:
		return "bulk"
	case TagAsk:
		return "ask"
	case TagData:
		return "data"
	}
	return fmt.Sprintf("tag-%#02x", byte(t))
}

// Dialer opens the byte stream under a connection.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// DialTCP dials over TCP, dual stack.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// DialTag dials and says what for.
func DialTag(ctx context.Context, dial Dialer, addr string, tag Tag) (net.Conn, error) {
	nc, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if _, err := nc.Write([]byte{byte(tag)}); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return nc, nil
}

// Limits of a Demux.
const (
	maxUntagged  = 128 // connections that have not said their tag; more wait in the kernel
	maxUnclaimed = 64  // connections of one tag that nobody has accepted; more are closed
	tagTimeout   = 5 * time.Second
)

// Demux shares one listener out by tag. Make one with [NewDemux], take a listener for each tag, then Start.
type Demux struct {
	under net.Listener
	tasks sync.WaitGroup
	slots chan struct{} // one for each connection whose tag is awaited
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	parts  map[Tag]*part
	early  map[net.Conn]bool // whose tag is awaited
}

// NewDemux owns l from now on. It runs nothing before Start.
func NewDemux(l net.Listener) *Demux {
	return &Demux{
		under: l, slots: make(chan struct{}, maxUntagged), done: make(chan struct{}),
		parts: make(map[Tag]*part), early: make(map[net.Conn]bool),
	}
}

// Listener is the share of one tag; the tag byte has been read from its connections. Call it before Start, once for
// each tag. Connections with a tag that nobody listens for are closed.
func (d *Demux) Listener(tag Tag) net.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &part{demux: d, conns: make(chan net.Conn, maxUnclaimed), done: make(chan struct{})}
	d.parts[tag] = p
	return p
}

// Addr is the address of the listener beneath.
func (d *Demux) Addr() net.Addr { return d.under.Addr() }

// Start begins to accept.
func (d *Demux) Start() { d.tasks.Go(d.accept) }

func (d *Demux) accept() {
	for pause := time.Duration(0); ; {
		select {
		case d.slots <- struct{}{}:
		case <-d.done:
			return
		}
		nc, err := d.under.Accept()
		if err == nil {
			pause = 0
			if d.await(nc) {
				d.tasks.Go(func() { d.sort(nc) })
			}
			continue
		}
		<-d.slots
		// Too many open files, for one: accepting will work again, but not at once.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-d.done:
			return
		}
	}
}

// await notes a connection so that Close can end its wait; false when it came too late.
func (d *Demux) await(nc net.Conn) bool {
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.early[nc] = true
	}
	d.mu.Unlock()
	if closed {
		_ = nc.Close()
		<-d.slots
	}
	return !closed
}

// sort reads the tag of one connection and hands it on.
func (d *Demux) sort(nc net.Conn) {
	defer func() { <-d.slots }()
	var tag [1]byte
	_ = nc.SetReadDeadline(time.Now().Add(tagTimeout)) // an error shows in the read
	_, err := io.ReadFull(nc, tag[:])
	if err == nil {
		err = nc.SetReadDeadline(time.Time{})
	}
	d.mu.Lock()
	p := d.parts[Tag(tag[0])]
	delete(d.early, nc)
	d.mu.Unlock()
	if err != nil || p == nil || !p.offer(nc) {
		_ = nc.Close()
	}
}

// Close ends the listener and its parts and waits for its goroutines. Connections that were accepted belong to who
// accepted them. It may be called twice.
func (d *Demux) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	var parts []*part
	for _, p := range d.parts {
		parts = append(parts, p)
	}
	early := d.early
	d.early = make(map[net.Conn]bool)
	d.mu.Unlock()

	var err error
	if first {
		close(d.done)
		err = d.under.Close()
		for nc := range early {
			_ = nc.Close()
		}
	}
	d.tasks.Wait()
	for _, p := range parts {
		_ = p.Close()
	}
	return err
}

// part is the listener of one tag.
type part struct {
	demux *Demux
	conns chan net.Conn

	mu     sync.Mutex
	closed bool
	done   chan struct{}
}

// offer hands a connection to Accept; false when nobody will take it.
func (p *part) offer(nc net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	select {
	case p.conns <- nc:
		return true
	default:
		return false
	}
}

// Accept implements net.Listener.
func (p *part) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends this part only: further connections of its tag are closed as they come.
func (p *part) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if !first {
		return nil
	}
	close(p.done)
	for {
		select {
		case nc := <-p.conns:
			_ = nc.Close()
		default:
			return nil
		}
	}
}

// Addr implements net.Listener.
func (p *part) Addr() net.Addr { return p.demux.Addr() }
