package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var theCluster = base.ClusterID{0xc1}

// cluster is agents on one network in memory, in virtual time.
type cluster struct {
	t     *testing.T
	net   *MemNet
	id    base.ClusterID
	key   []byte
	peers map[string]*peer // those that run, by name
}

type peer struct {
	*Agent
	name string
	addr string
	end  atomic.Pointer[error] // what OnFatal heard
}

func (p *peer) fatal() error {
	if err := p.end.Load(); err != nil {
		return *err
	}
	return nil
}

// inBubble runs a test in virtual time. It ends with every agent closed, and waits for memberlist's goroutines.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: NewMemNet(), id: theCluster, peers: make(map[string]*peer)}
		defer time.Sleep(30 * time.Second)
		defer func() {
			for _, p := range c.peers {
				require.NoError(t, p.Close())
				require.NoError(t, p.Close())
			}
		}()
		test(t, c)
	})
}

func address(i int) string { return fmt.Sprintf("10.0.%d.%d:2922", i/250, i%250+1) }

// number is the 7 of n7.
func number(name string) int {
	var i int
	_, _ = fmt.Sscanf(name, "n%d", &i)
	return i
}

// start runs a node, with n1 as its seed; boots of one name count up.
func (c *cluster) start(name string, boot uint64) *peer {
	return c.startWith(name, address(number(name)), boot, nil)
}

func (c *cluster) startWith(name, addr string, boot uint64, change func(*Options)) *peer {
	c.t.Helper()
	instance := base.UUID{1, byte(boot)}
	copy(instance[2:], addr)
	o := Options{
		Cluster: c.id,
		Self: Self{
			Node: base.NodeID(name), Boot: boot, Instance: instance, Disk: base.DiskID{9}, StartedMs: time.Now().UnixMilli(),
			Client: strings.Replace(addr, ":2922", ":2921", 1), Rack: "r" + name, Labels: map[string]string{"zone": "z1"}, Version: "0.3.0", State: Ready,
		},
		Network:   c.net.Host(addr),
		Seeds:     []string{address(1), address(2)},
		SecretKey: c.key,
	}
	if os.Getenv("GOSSIP_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", name)
	}
	if change != nil {
		change(&o)
	}
	p := &peer{name: name, addr: addr}
	o.OnFatal = func(err error) { p.end.Store(&err) }
	a, err := New(o)
	require.NoError(c.t, err)
	require.NoError(c.t, a.Start(c.t.Context()))
	p.Agent = a
	c.peers[addr] = p
	return p
}

// crash ends a node without a word.
func (c *cluster) crash(p *peer) {
	require.NoError(c.t, p.Close())
	delete(c.peers, p.addr)
}

// until waits in virtual time for a condition.
func (c *cluster) until(limit time.Duration, what string, ok func() bool) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > limit {
			for _, p := range c.peers {
				if len(c.peers) <= 8 || p.name == "n1" {
					c.t.Logf("%s sees %s", p.name, p.view())
				}
			}
			c.t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(begin)
}

// everyone waits until all running nodes see all running nodes alive.
func (c *cluster) everyone(limit time.Duration) time.Duration {
	c.t.Helper()
	return c.until(limit, "everyone sees everyone", func() bool {
		for _, p := range c.peers {
			if p.Snapshot().Count(topology.Alive) != len(c.peers) {
				return false
			}
		}
		return true
	})
}

func (c *cluster) allSee(limit time.Duration, id base.NodeID, l topology.Liveness) time.Duration {
	c.t.Helper()
	return c.until(limit, fmt.Sprintf("all see %s %v", id, l), func() bool {
		for _, p := range c.peers {
			if p.sees(id) != l {
				return false
			}
		}
		return true
	})
}

func (p *peer) sees(id base.NodeID) topology.Liveness {
	m, _ := p.Snapshot().Member(id)
	return m.Liveness
}

func (p *peer) life() life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.life
}

func (p *peer) view() string {
	var b strings.Builder
	for _, m := range p.Snapshot().Members {
		fmt.Fprintf(&b, "%s=%v ", m.life().name(m.Node), m.Liveness)
	}
	return b.String()
}

func TestJoin(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 5; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		t.Log("joined in", c.everyone(5*time.Second))
		m, ok := c.peers[address(4)].Snapshot().Member("n2")
		require.True(t, ok)
		require.Equal(t, "rn2", m.Rack)
		require.Equal(t, map[string]string{"zone": "z1"}, m.Labels)
		require.Equal(t, address(2), m.Address)
		require.Equal(t, uint64(1), m.Boot)
		require.Equal(t, Ready, m.State)
		require.False(t, m.Instance.IsZero())

		var v topology.View
		for _, m := range c.peers[address(4)].Snapshot().Members {
			for _, e := range m.Events() {
				v = topology.Reduce(v, e)
			}
		}
		require.Len(t, v.Nodes, 5)
		require.Empty(t, v.Nodes[0].Unfit())
	})
}

func TestAloneWithoutSeeds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		p := c.startWith("n1", address(1), 1, func(o *Options) { o.Seeds = nil })
		time.Sleep(time.Minute)
		require.Equal(t, 1, p.Snapshot().Count(topology.Alive))
		require.NoError(t, p.Leave(t.Context()))
	})
}

func TestLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		p := c.peers[address(3)]
		require.NoError(t, p.Leave(t.Context()))
		require.Equal(t, topology.Left, p.sees("n3"))
		t.Log("known in", c.allSee(2*time.Second, "n3", topology.Left))
		time.Sleep(time.Minute) // nobody calls it back
		require.Zero(t, p.life().Rename)
		c.crash(p)
		require.ErrorIs(t, p.Leave(t.Context()), base.CodeShuttingDown)
		c.allSee(0, "n3", topology.Left)
		c.start("n3", 2)
		c.everyone(30 * time.Second)
	})
}

func TestCrashIsSuspectedThenDeadForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 5; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		c.crash(c.peers[address(5)])
		t.Log("suspected in", c.allSee(6*time.Second, "n5", topology.Suspect))
		t.Log("then dead in", c.allSee(8*time.Second, "n5", topology.Dead))
		time.Sleep(3 * time.Minute)
		c.allSee(0, "n5", topology.Dead)
	})
}

func TestSeveralDeathsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 9; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		begin := time.Now()
		for i := 6; i <= 9; i++ {
			c.crash(c.peers[address(i)])
		}
		for i := 6; i <= 9; i++ {
			c.allSee(16*time.Second, base.NodeID(fmt.Sprintf("n%d", i)), topology.Dead)
		}
		t.Log("four of nine dead in", time.Since(begin))
	})
}

func TestRestartWithANewBoot(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		c.crash(c.peers[address(4)])
		c.start("n4", 2) // long before its death is noticed
		took := c.until(3*time.Second, "all see boot 2", func() bool {
			for _, p := range c.peers {
				if m, _ := p.Snapshot().Member("n4"); m.Boot != 2 || m.Liveness != topology.Alive {
					return false
				}
			}
			return true
		})
		t.Log("seen in", took)
		for range 60 {
			time.Sleep(time.Second) // the death of boot 1 does not touch boot 2
			for _, p := range c.peers {
				m, _ := p.Snapshot().Member("n4")
				require.Equal(t, uint64(2), m.Boot)
				require.Equal(t, topology.Alive, m.Liveness)
				require.NoError(t, p.fatal())
				require.Zero(t, p.life().Rename)
			}
		}
	})
}

// A partition of five minutes: both sides bury each other, memberlist forgets, and yet all come back, renamed.
func TestPartitionHeals(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var left, right []string
		for i := 1; i <= 6; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
			if i <= 2 {
				left = append(left, address(i)) // both seeds on one side
			} else {
				right = append(right, address(i))
			}
		}
		c.everyone(30 * time.Second)
		c.peers[address(1)].Claim(Claim{Shard: base.RootShard, Leader: "n1", Term: 1})
		c.net.Split(left, right)
		c.until(time.Minute, "each side buries the other", func() bool {
			for addr, p := range c.peers {
				want := 4
				if slices.Contains(left, addr) {
					want = 2
				}
				if p.Snapshot().Count(topology.Alive) != want || p.Snapshot().Count(topology.Dead) != 6-want {
					return false
				}
			}
			return true
		})
		c.peers[address(5)].Claim(Claim{Shard: base.RootShard, Leader: "n5", Term: 2})
		time.Sleep(5 * time.Minute)
		require.Equal(t, 2, c.peers[address(2)].Snapshot().Count(topology.Alive))
		c.net.Heal()
		t.Log("healed in", c.everyone(time.Minute))
		for _, p := range c.peers {
			require.NoError(t, p.fatal())
			claim, _ := p.ClaimOn(base.RootShard)
			require.Equal(t, base.NodeID("n5"), claim.Leader)
		}
		time.Sleep(2 * time.Minute) // old names die; nobody else does
		c.everyone(0)
	})
}

// A suspicion that is wrong is cleared by its victim, who keeps its name.
func TestSuspicionIsRefuted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for i := 1; i <= 4; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(30 * time.Second)
		rumour := c.net.Host(address(77))
		for i := 1; i <= 3; i++ {
			require.NoError(t, rumour.Send(address(i), packet(t, suspectMessage, &suspicion{1, "n4#1.0", "n9#1.0"})))
		}
		time.Sleep(10 * time.Second)
		c.everyone(0)
		n4 := c.peers[address(4)]
		require.Zero(t, n4.life().Rename)
		m, _ := c.peers[address(1)].Snapshot().Member("n4")
		require.Greater(t, m.Incarnation, uint32(1))
	})
}

func TestUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.start("n1", 1), c.start("n2", 1)
		c.everyone(30 * time.Second)
		changed, stop := b.Subscribe()
		defer stop()
		require.NoError(t, a.Update(func(s *Self) { s.Labels["zone"] = "z2"; s.Node = "n77" }))
		for _, p := range []*peer{a, b} { // n2 may be the first: snapshots are readings, taken some time apart
			c.until(2*time.Second, p.name+" sees it", func() bool { m, _ := p.Snapshot().Member("n1"); return m.Labels["zone"] == "z2" })
		}
		<-changed
		err := a.Update(func(s *Self) { s.Labels["long"] = strings.Repeat("x", 500) })
		require.ErrorIs(t, err, base.CodeInvalidArgument)
		time.Sleep(10 * time.Second)
		m, _ := b.Snapshot().Member("n1")
		require.Len(t, m.Labels, 1)
	})
}

func TestClaimsReachLateJoinersAndOldOnesLose(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.start("n1", 1), c.start("n2", 1)
		c.everyone(30 * time.Second)
		for i := range uint16(500) {
			a.Claim(Claim{Shard: base.ShardID{Root: i}, Leader: "n1", Term: 5})
		}
		b.Claim(Claim{Shard: base.ShardID{Root: 3}, Leader: "n2", Term: 4}) // may come first or last: it loses
		b.Claim(Claim{Shard: base.ShardID{Root: 4}, Leader: "n2", Term: 6})
		late := c.start("n3", 1)
		c.until(5*time.Second, "all claims at n3", func() bool { return len(late.Claims()) == 500 })
		c.until(5*time.Second, "term 6 everywhere", func() bool {
			for _, p := range c.peers {
				if got, _ := p.ClaimOn(base.ShardID{Root: 4}); got.Leader != "n2" {
					return false
				}
			}
			return true
		})
		c.until(time.Minute, "term 5 everywhere", func() bool {
			for _, p := range c.peers {
				if got, _ := p.ClaimOn(base.ShardID{Root: 3}); got != (Claim{Shard: base.ShardID{Root: 3}, Leader: "n1", Term: 5}) {
					return false
				}
			}
			return true
		})
	})
}

func TestSeedsByName(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.startWith("n1", address(1), 1, func(o *Options) { o.Seeds = nil })
		tries := 0
		c.startWith("n2", address(2), 1, func(o *Options) {
			o.Seeds = []string{"seed.test:2922", "nonsense"}
			o.Lookup = func(context.Context, string) (ips []netip.Addr, err error) {
				if tries++; tries < 3 {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr("10.0.0.2")}, nil
			}
		})
		c.everyone(20 * time.Second)
	})
}

// One packet in five is lost: nobody is buried, and all still learn of everything.
func TestLossyNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		n := 0
		c.net.Lose(func() bool { n++; return n%5 == 0 })
		for i := 1; i <= 8; i++ {
			c.start(fmt.Sprintf("n%d", i), 1)
		}
		c.everyone(20 * time.Second)
		time.Sleep(2 * time.Minute)
		c.everyone(20 * time.Second)
		for _, p := range c.peers {
			require.NoError(t, p.fatal())
		}
	})
}
