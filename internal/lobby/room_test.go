package lobby

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visitor is a connection of which only the address and the end matter.
type visitor struct {
	net.Conn // nil: nobody reads it
	from     net.Addr
	closed   bool
}

func (v *visitor) RemoteAddr() net.Addr { return v.from }

func (v *visitor) Close() error {
	v.closed = true
	return nil
}

func from(addr string) *visitor {
	return &visitor{from: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 4711))}
}

func inRoom(t *testing.T, seats int, members []string, test func(t *testing.T, r *Room)) {
	synctest.Test(t, func(t *testing.T) {
		known := make(map[netip.Addr]bool)
		for _, m := range members {
			known[netip.MustParseAddr(m)] = true
		}
		test(t, New(seats, func(a netip.Addr) bool { return known[a] }))
	})
}

func (r *Room) taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.guests)
}

// enter lets visitors in one after the other, each a moment after the one before.
func enter(r *Room, visitors ...*visitor) (guests []*Guest) {
	for _, v := range visitors {
		guests = append(guests, r.Enter(v))
		time.Sleep(grace)
	}
	return guests
}

// are says who has been shown out: o; and who has not: x.
func are(visitors []*visitor) (s string) {
	for _, v := range visitors {
		if v.closed {
			s += "o"
		} else {
			s += "x"
		}
	}
	return s
}

func TestWhoHasToGo(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []string
		came    []string // into a room of three seats
		want    string
	}{
		{"nobody, while there is room", nil, []string{"10.0.0.1", "10.0.0.1", "10.0.0.1"}, "xxx"},
		{"the oldest of many", nil, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, "oxxx"},
		{"of the address that has the most seats", nil, []string{"10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3"}, "xoxx"},
		{"which may be the one that comes", nil, []string{"10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.2"}, "xooxx"},
		{"a stranger before a member", []string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"}, "xxox"},
		{"a member, when there are no others", []string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.3"}, "xoxx"},
		{"a network of IPv6 is one address", nil, []string{"10.0.0.1", "2001:db8::1", "2001:db8::2", "2001:db8:1::1"}, "xoxx"},
		{"two are two", nil, []string{"2001:db8::1", "2001:db8:0:1::2", "2001:db8:0:2::3", "2001:db8::1"}, "oxxx"},
		{"IPv4 by IPv6 is IPv4", []string{"10.0.0.1"}, []string{"::ffff:10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, "xoxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inRoom(t, 3, c.members, func(t *testing.T, r *Room) {
				var visitors []*visitor
				for _, addr := range c.came {
					visitors = append(visitors, from(addr))
				}
				guests := enter(r, visitors...)
				require.Equal(t, c.want, are(visitors))
				for i, g := range guests {
					require.Equal(t, !visitors[i].closed, g.Leave())
					require.Equal(t, !visitors[i].closed, g.Leave(), "again")
				}
				require.EqualValues(t, len(c.came)-3, r.ShownOut())
				require.Empty(t, r.guests)
				require.Empty(t, r.origins)
			})
		})
	}
}

// Whoever comes while nobody has had a moment to speak waits for that moment, or until somebody leaves.
func TestEverybodyHasAMoment(t *testing.T) {
	inRoom(t, 2, nil, func(t *testing.T, r *Room) {
		began := time.Now()
		a, b, c, d := from("10.0.0.1"), from("10.0.0.1"), from("10.0.0.2"), from("10.0.0.3")
		r.Enter(a)
		second := r.Enter(b)
		require.Zero(t, time.Since(began))
		r.Enter(c)
		require.Equal(t, grace, time.Since(began))
		require.Equal(t, "oxx", are([]*visitor{a, b, c}))
		go func() {
			time.Sleep(grace / 4)
			second.Leave()
		}()
		time.Sleep(grace / 8)
		third := r.Enter(from("10.0.0.4")) // b has had its moment
		require.False(t, second.Leave())
		go func() {
			time.Sleep(grace / 4)
			third.Leave()
		}()
		r.Enter(d)
		require.Equal(t, grace+grace/8+grace/4, time.Since(began))
		require.False(t, c.closed)
	})
}

// Nobody who speaks up in time is ever shown out, and the seats are never more than there are.
func TestASeatIsSafeForAMoment(t *testing.T) {
	for seed := range uint64(20) {
		inRoom(t, 5, []string{"10.0.0.1"}, func(t *testing.T, r *Room) {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range 300 {
				g := r.Enter(from(fmt.Sprintf("10.0.0.%d", 1+rng.IntN(4))))
				if patience := time.Duration(rng.Int64N(int64(4 * grace))); patience < 3*grace {
					go func() {
						time.Sleep(patience)
						if !g.Leave() {
							require.GreaterOrEqual(t, patience, grace)
						}
					}()
				}
				require.LessOrEqual(t, r.taken(), 5)
				time.Sleep(time.Duration(rng.Int64N(int64(grace / 4))))
			}
			time.Sleep(5 * grace)
		})
	}
}

func TestAClosedRoom(t *testing.T) {
	inRoom(t, 2, nil, func(t *testing.T, r *Room) {
		a, b := from("10.0.0.1"), from("10.0.0.2")
		first := r.Enter(a)
		r.Close()
		second := r.Enter(b)
		for _, g := range []*Guest{first, second} {
			require.False(t, g.Leave())
			<-g.Out()
		}
		require.True(t, a.closed && b.closed)
		r.Close()
		require.False(t, r.ShowOut())
	})
}

func TestShowOut(t *testing.T) {
	inRoom(t, 2, nil, func(t *testing.T, r *Room) {
		require.False(t, r.ShowOut(), "nobody is there")
		v := from("10.0.0.1")
		g := r.Enter(v)
		require.False(t, r.ShowOut(), "it has not had a moment")
		time.Sleep(grace)
		require.True(t, r.ShowOut())
		<-g.Out()
		require.True(t, v.closed)
	})
}

// Connections without an address are one crowd.
func TestWithoutAddresses(t *testing.T) {
	inRoom(t, 1, nil, func(t *testing.T, r *Room) {
		pipe, other := net.Pipe()
		defer other.Close()
		nowhere := &visitor{}
		enter(r, nowhere)
		r.Enter(pipe)
		require.True(t, nowhere.closed)
		require.NoError(t, pipe.Close())
	})
}

// A guarded connection gives its seat back with its first byte, or when it is closed.
func TestGuard(t *testing.T) {
	r := New(2, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := r.Guard(l)
	defer g.Close()
	open := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		server, err = g.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
		return client, server
	}
	talks, hears := open()
	_, err = talks.Write([]byte("hello"))
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = hears.Read(b)
	require.NoError(t, err)
	_, gone := open()
	require.NoError(t, gone.Close())
	_, silent := open()
	open()
	require.Zero(t, r.ShownOut())
	open()
	require.EqualValues(t, 1, r.ShownOut())
	_, err = silent.Read(b)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = talks.Write([]byte("still here"))
	require.NoError(t, err)
	_, err = hears.Read(b)
	require.NoError(t, err)
}
