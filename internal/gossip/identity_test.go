package gossip

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/stretchr/testify/require"
)

// At one incarnation, dead wins over suspect and suspect over alive; and a dead name stays dead at any incarnation.
func TestEqualIncarnations(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		n1 := c.startWith("n1", address(1), 1, func(o *Options) { o.Seeds = nil })
		ghost := c.net.Host(address(77)) // a member that only the test speaks for; it answers nothing
		self := Self{Node: "g", Boot: 1, Instance: base.UUID{7}}
		meta, err := self.encode(theCluster)
		require.NoError(t, err)
		say := func(kind byte, m any) {
			t.Helper()
			require.NoError(t, ghost.Send(address(1), packet(t, kind, m)))
			time.Sleep(1100 * time.Millisecond) // a suspicion shows at the next reading
		}
		ip := netip.MustParseAddrPort(address(77)).Addr().AsSlice()
		speaks := func(inc uint32) alive { return alive{inc, "g#1.0", ip, 2922, meta, []uint8{1, 5, 5, 1, 1, 1}} }
		a := speaks(1)
		say(aliveMessage, &a)
		require.Equal(t, topology.Alive, n1.sees("g"))
		say(suspectMessage, &suspicion{1, "g#1.0", "n9#1.0"})
		require.Equal(t, topology.Suspect, n1.sees("g"))
		say(aliveMessage, &a)
		require.Equal(t, topology.Suspect, n1.sees("g"))
		a = speaks(2)
		say(aliveMessage, &a)
		require.Equal(t, topology.Alive, n1.sees("g"))
		say(deadMessage, &suspicion{2, "g#1.0", "n9#1.0"})
		require.Equal(t, topology.Dead, n1.sees("g"))
		a = speaks(9)
		say(aliveMessage, &a)
		require.Equal(t, topology.Dead, n1.sees("g"))
		require.NotZero(t, n1.Stats().Vetoes)
		a.Node = "g#1.1"
		say(aliveMessage, &a)
		require.Equal(t, topology.Alive, n1.sees("g"))
	})
}

// The others bury a process that hears and speaks well; it comes back within seconds, as the same boot.
func TestFalseBurial(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 5; i++ {
			c.start(fmt.Sprintf("n%d", i), 7)
		}
		c.everyone(30 * time.Second)
		c.net.Split([]string{address(5)})
		for i := 1; i <= 4; i++ {
			p := c.peers[address(i)]
			c.until(15*time.Second, "buried", func() bool { return p.sees("n5") == topology.Dead })
		}
		c.net.Heal()
		t.Log("back in", c.everyone(30*time.Second))
		n5 := c.peers[address(5)]
		require.GreaterOrEqual(t, n5.life().Rename, uint32(1))
		require.Equal(t, n5.Stats().Renames, uint64(n5.life().Rename))
		m, _ := c.peers[address(1)].Snapshot().Member("n5")
		require.Equal(t, uint64(7), m.Boot)
		require.Equal(t, n5.life().Rename, m.Rename)
		for i := 1; i <= 4; i++ {
			require.NoError(t, c.peers[address(i)].fatal())
		}
	})
}

// A rumour of its death, while every connection works: the same way back.
func TestRumourOfDeath(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		rumour := c.net.Host(address(77))
		for i := 1; i <= 3; i++ {
			require.NoError(t, rumour.Send(address(i), packet(t, deadMessage, &suspicion{9, "n4#1.0", "n9#1.0"})))
		}
		n4 := c.peers[address(4)]
		took := c.until(40*time.Second, "n4 has another name", func() bool { return n4.life().Rename == 1 })
		t.Log("renamed in", took, "and back in", c.everyone(30*time.Second))
		time.Sleep(time.Minute)
		c.everyone(0)
		require.Equal(t, life{1, 1}, n4.life())
	})
}

// Two processes start from copies of one data directory: the elder stays, the other is told why it must go.
func TestTwoClonesOfOneIdentity(t *testing.T) {
	for _, sameSeed := range []bool{true, false} {
		inBubble(t, func(t *testing.T, c *cluster) {
			for i := 1; i <= 4; i++ {
				c.start(fmt.Sprintf("n%d", i), 3)
			}
			c.everyone(30 * time.Second)
			seeds := []string{address(1)}
			if sameSeed {
				seeds = []string{address(4)} // the very process it is a clone of
			}
			clone := c.startWith("n4", address(99), 3, func(o *Options) { o.Seeds = seeds })
			t.Log("clone stopped in", c.until(5*time.Second, "the clone stops", func() bool { return clone.fatal() != nil }))
			require.ErrorIs(t, clone.fatal(), base.CodeDenied)
			require.ErrorContains(t, clone.fatal(), "another live process is node n4")
			c.crash(clone)
			time.Sleep(time.Minute)
			c.everyone(0)
			require.NoError(t, c.peers[address(4)].fatal())
		})
	}
}

// A copy of a disk starts while the original runs: its boot is one higher, so it looks like a restart, and the original
// finds out that it is the past.
func TestACopyWithALaterBootReplacesTheOriginal(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 3)
		}
		c.everyone(30 * time.Second)
		original := c.peers[address(4)]
		c.startWith("n4", address(99), 4, nil)
		c.until(5*time.Second, "the original stops", func() bool { return original.fatal() != nil })
		c.crash(original)
		c.everyone(20 * time.Second)
	})
}

// A disk that was rolled back starts with a boot that the others have buried: no rename helps it.
func TestRolledBackDiskIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 9)
		}
		c.everyone(30 * time.Second)
		c.crash(c.peers[address(4)])
		c.allSee(15*time.Second, "n4", topology.Dead)
		old := c.start("n4", 5)
		c.until(10*time.Second, "it stops", func() bool { return old.fatal() != nil })
		require.ErrorIs(t, old.fatal(), base.CodeDenied)
	})
}

func TestForeignClusterStaysOut(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 3; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.id = base.ClusterID{0xee}
		c.start("n7", 1)
		c.startWith("n8", address(8), 1, func(o *Options) { o.Seeds = append(o.Seeds, address(7)) })
		time.Sleep(time.Minute)
		for addr, p := range c.peers {
			want := 3
			if addr == address(7) || addr == address(8) {
				want = 2
			}
			require.Len(t, p.Snapshot().Members, want, "%s sees %s", p.name, p.view())
		}
	})
}

func TestSecretKey(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.key = []byte("0123456789abcdef")
		for i := 1; i <= 3; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		stranger := c.startWith("n9", address(9), 1, func(o *Options) { o.SecretKey = []byte("fedcba9876543210") })
		naked := c.startWith("n8", address(8), 1, func(o *Options) { o.SecretKey = nil })
		time.Sleep(time.Minute)
		require.Len(t, stranger.Snapshot().Members, 1)
		require.Len(t, naked.Snapshot().Members, 1)
		require.Len(t, c.peers[address(2)].Snapshot().Members, 3)
		c.crash(stranger)
		c.crash(naked)
		c.net.Split([]string{address(3)})
		c.until(15*time.Second, "n3 is buried", func() bool { return c.peers[address(1)].sees("n3") == topology.Dead })
		c.net.Heal()
		c.everyone(30 * time.Second)
	})
}
