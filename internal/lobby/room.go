package lobby

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// grace is how long a connection may stay silent before it can be shown out for another one.
const grace = 20 * time.Millisecond

// Room is what the listeners of one kind share. Its methods are safe for concurrent use.
type Room struct {
	seats int
	known func(netip.Addr) bool
	freed chan struct{} // capacity 1: a seat has been given back

	mu       sync.Mutex
	closed   bool
	guests   []*Guest // in the order in which they came
	origins  map[netip.Addr]*origin
	shownOut int64
}

// origin is an address with guests.
type origin struct {
	addr  netip.Addr
	seats int
}

// Guest is a connection that has not said yet who it is.
type Guest struct {
	room  *Room
	nc    net.Conn
	from  *origin
	known bool // a member lives there
	since time.Time
	left  bool // it has no seat any more
	spoke bool // it gave that back by itself
	out   chan struct{}
}

// New makes a room. known reports whether an address is a member's; nil: nobody is known. It must not block.
func New(seats int, known func(netip.Addr) bool) *Room {
	if known == nil {
		known = func(netip.Addr) bool { return false }
	}
	return &Room{seats: seats, known: known, freed: make(chan struct{}, 1), origins: make(map[netip.Addr]*origin)}
}

// Enter gives a connection a seat. When there is none it waits until somebody has had a moment to speak, and shows out
// who has not. In a room that is closed the connection is closed.
func (r *Room) Enter(nc net.Conn) *Guest {
	addr := addressOf(nc)
	g := &Guest{room: r, nc: nc, known: r.known(addr), out: make(chan struct{})}
	for {
		out, wait := r.admit(g, network(addr))
		if out != nil {
			out.close()
		}
		if wait <= 0 {
			return g
		}
		r.await(wait)
	}
}

// admit gives a guest a seat, in place of another one if need be, or says for how long to wait.
func (r *Room) admit(g *Guest, addr netip.Addr) (out *Guest, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.closed:
		g.left = true
		return g, 0
	case len(r.guests) >= r.seats:
		if out = r.showOutLocked(now); out == nil {
			return nil, grace - now.Sub(r.guests[0].since)
		}
	}
	if g.from = r.origins[addr]; g.from == nil {
		g.from = &origin{addr: addr}
		r.origins[addr] = g.from
	}
	g.from.seats++
	g.since = now
	r.guests = append(r.guests, g)
	return out, 0
}

// showOutLocked takes a seat from whoever has the least claim to it; nil when nobody has had a moment yet.
func (r *Room) showOutLocked(now time.Time) *Guest {
	sitting := slices.IndexFunc(r.guests, func(g *Guest) bool { return now.Sub(g.since) < grace })
	if sitting < 0 {
		sitting = len(r.guests)
	}
	if sitting == 0 {
		return nil
	}
	out := slices.MinFunc(r.guests[:sitting], lessClaim) // of equals the first, who came first
	r.removeLocked(out)
	r.shownOut++
	return out
}

// lessClaim orders guests: strangers before members, then those of whose address there are more.
func lessClaim(a, b *Guest) int {
	switch {
	case a.known != b.known && b.known:
		return -1
	case a.known != b.known:
		return 1
	}
	return b.from.seats - a.from.seats
}

func (r *Room) removeLocked(g *Guest) {
	g.left = true
	r.guests = slices.DeleteFunc(r.guests, func(o *Guest) bool { return o == g })
	if g.from.seats--; g.from.seats == 0 {
		delete(r.origins, g.from.addr)
	}
}

// await lets a moment pass, or less if a seat is given back.
func (r *Room) await(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.freed:
	}
}

// Leave gives the seat back. false: the guest has been shown out before, and its connection is closed. It may be called
// again, with the same answer.
func (g *Guest) Leave() bool {
	r := g.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.left {
		return g.spoke
	}
	g.spoke = true
	r.removeLocked(g)
	select {
	case r.freed <- struct{}{}:
	default:
	}
	return true
}

// Out is closed when the guest is shown out.
func (g *Guest) Out() <-chan struct{} { return g.out }

// close ends the connection of a guest that has lost its seat. Its reader finds out.
func (g *Guest) close() {
	close(g.out)
	_ = g.nc.Close()
}

// ShowOut closes the connection of whoever has the least claim to its seat; false when nobody has had a moment yet to
// speak. It is for whoever is at another limit than the room's.
func (r *Room) ShowOut() bool {
	r.mu.Lock()
	out := r.showOutLocked(time.Now())
	r.mu.Unlock()
	if out == nil {
		return false
	}
	out.close()
	return true
}

// ShownOut counts the connections that have been closed for others.
func (r *Room) ShownOut() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shownOut
}

// Close closes the connections of all guests, and of those to come.
func (r *Room) Close() {
	r.mu.Lock()
	guests := r.guests
	r.closed, r.guests, r.origins = true, nil, make(map[netip.Addr]*origin)
	for _, g := range guests {
		g.left = true
	}
	r.mu.Unlock()
	for _, g := range guests {
		g.close()
	}
}

// addressOf is where a connection comes from; the zero address when it is no connection of IP.
func addressOf(nc net.Conn) netip.Addr {
	switch a := nc.RemoteAddr().(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap()
	case nil:
		return netip.Addr{}
	default:
		at, err := netip.ParseAddrPort(a.String())
		if err != nil {
			return netip.Addr{}
		}
		return at.Addr().Unmap()
	}
}

// network is what counts as one address: whoever has one of IPv6 has, as a rule, the 64 bits below it too.
func network(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	return netip.PrefixFrom(a, 64).Masked().Addr()
}
