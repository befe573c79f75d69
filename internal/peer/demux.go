package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/lobby"
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
	maxWaiting = 128 // connections that have not said their tag, or that nobody has accepted; of more, some are closed
	tagTimeout = 5 * time.Second
)

// Demux shares one listener out by tag. Make one with [NewDemux], take a listener for each tag, then Start.
type Demux struct {
	under net.Listener
	tasks sync.WaitGroup
	room  *lobby.Room // of the connections that nobody has accepted
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	parts  map[Tag]*part
}

// NewDemux owns l from now on. It runs nothing before Start. known reports whether a member lives at an address
// ([Host.Knows]): it is let in before strangers are. nil: nobody is known.
func NewDemux(l net.Listener, known func(netip.Addr) bool) *Demux {
	return &Demux{under: l, room: lobby.New(maxWaiting, known), done: make(chan struct{}), parts: make(map[Tag]*part)}
}

// Listener is the share of one tag; the tag byte has been read from its connections. Call it before Start, once for
// each tag. Connections with a tag that nobody listens for are closed.
func (d *Demux) Listener(tag Tag) net.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &part{demux: d, conns: make(chan waiting), done: make(chan struct{})}
	d.parts[tag] = p
	return p
}

// Addr is the address of the listener beneath.
func (d *Demux) Addr() net.Addr { return d.under.Addr() }

// ShownOut counts the connections that were closed for others, for they said nothing.
func (d *Demux) ShownOut() int64 { return d.room.ShownOut() }

// Start begins to accept.
func (d *Demux) Start() { d.tasks.Go(d.accept) }

func (d *Demux) accept() {
	for pause := time.Duration(0); ; {
		nc, err := d.under.Accept()
		if err == nil {
			pause = 0
			guest := d.room.Enter(nc)
			d.tasks.Go(func() { d.sort(nc, guest) })
			continue
		}
		// Too many open files, for one: accepting will work again, but not at once.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-d.done:
			return
		}
	}
}

// sort reads the tag of one connection and hands it on.
func (d *Demux) sort(nc net.Conn, guest *lobby.Guest) {
	var tag [1]byte
	_ = nc.SetReadDeadline(time.Now().Add(tagTimeout)) // an error shows in the read
	_, err := io.ReadFull(nc, tag[:])
	if err == nil {
		err = nc.SetReadDeadline(time.Time{})
	}
	d.mu.Lock()
	p := d.parts[Tag(tag[0])]
	d.mu.Unlock()
	if err != nil || p == nil || !p.offer(waiting{nc, guest}) {
		guest.Leave()
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
	d.mu.Unlock()

	var err error
	if first {
		close(d.done)
		err = d.under.Close()
		d.room.Close()
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
	conns chan waiting
	once  sync.Once
	done  chan struct{}
}

// waiting is a connection that nobody has accepted yet.
type waiting struct {
	net.Conn
	guest *lobby.Guest
}

// offer hands a connection to Accept; false when nobody will take it.
func (p *part) offer(w waiting) bool {
	select {
	case p.conns <- w:
		return true
	case <-w.guest.Out():
		return false
	case <-p.done:
		return false
	}
}

// Accept implements net.Listener.
func (p *part) Accept() (net.Conn, error) {
	for {
		select {
		case w := <-p.conns:
			if w.guest.Leave() {
				return w.Conn, nil
			}
		case <-p.done:
			return nil, net.ErrClosed
		}
	}
}

// Close ends this part only: further connections of its tag are closed as they come.
func (p *part) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *part) Addr() net.Addr { return p.demux.Addr() }
