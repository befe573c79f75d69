package shard

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// life is a town in which anything happens while topics are created.
type life struct {
	p    *plant
	r    *registry
	rng  *rand.Rand
	mu   sync.Mutex
	up   map[base.NodeID]*Host
	made []int // acknowledged
}

// TestTownsLive lets nodes join, die, lose what they had not synced, go out, come back with and without their metadata,
// be cut off, and leaderships move, all under load and with every host keeping its own seats. No acknowledged command
// may be lost, no term may have two leaders, and in the end every seat must be where the ring wants it.
func TestTownsLive(t *testing.T) {
	seeds := []int64{43} // a member that was added again lost its replica to the order to give up the one of before
	for seed := range int64(runs(2)) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			led := &terms{leaders: make(map[string]base.NodeID)}
			inTown(t, 5, 4, func(t *testing.T, p *plant, r *registry) {
				inform := p.change
				p.change = func(o *Options) {
					inform(o)
					o.OnLead = led.note(o.Node)
				}
				r.settled(3)
				l := &life{p: p, r: r, rng: rand.New(rand.NewSource(seed)), up: make(map[base.NodeID]*Host)}
				for _, name := range p.names {
					l.up[name] = p.nodes[name].host
				}
				l.live()
				require.Empty(t, led.twice)
			})
		})
	}
}

// terms remembers who led which shard in which term.
type terms struct {
	mu      sync.Mutex
	leaders map[string]base.NodeID
	twice   []string
}

func (m *terms) note(node base.NodeID) func(base.ShardID, bool, uint64) {
	return func(shard base.ShardID, leading bool, term uint64) {
		if !leading {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		key := fmt.Sprintf("shard %s term %d", shard, term)
		if before, known := m.leaders[key]; known && before != node {
			m.twice = append(m.twice, fmt.Sprintf("%s: %s and %s", key, before, node))
		}
		m.leaders[key] = node
	}
}

func (l *life) live() {
	stop := make(chan struct{})
	var load sync.WaitGroup
	for worker := range 3 {
		r := rand.New(rand.NewSource(l.rng.Int63()))
		load.Go(func() {
			for i := worker * 100_000; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(5+r.Intn(40)) * time.Millisecond):
				}
				l.mu.Lock()
				var hosts []*Host
				for _, name := range l.p.names {
					if h := l.up[name]; h != nil {
						hosts = append(hosts, h)
					}
				}
				l.mu.Unlock()
				if len(hosts) == 0 {
					continue
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				if create(ctx, hosts[r.Intn(len(hosts))], i) == nil {
					l.mu.Lock()
					l.made = append(l.made, i)
					l.mu.Unlock()
				}
				cancel()
			}
		})
	}
	for range 20 {
		time.Sleep(time.Duration(l.rng.Intn(6000)) * time.Millisecond)
		l.happen()
	}
	l.p.network.Heal()
	for _, name := range l.p.names {
		l.start(name)
	}
	took := l.r.await(5*time.Minute, "every seat is where it should be", l.r.right)
	close(stop)
	load.Wait()
	l.p.converge()
	for _, i := range l.made {
		require.True(l.p.t, l.p.has(i), "topic %d was acknowledged", i)
	}
	l.p.t.Logf("%d nodes, %d commands acknowledged, all in place %s after the end of it", len(l.p.names), len(l.made), took.Round(time.Second))
}

func (l *life) happen() {
	name := l.p.names[l.rng.Intn(len(l.p.names))]
	switch l.rng.Intn(8) {
	case 0:
		if len(l.p.names) < 5 {
			name = base.NodeID(fmt.Sprintf("n%d", len(l.p.names)+1))
			l.mu.Lock()
			defer l.mu.Unlock()
			l.r.join(name)
			l.up[name] = l.p.nodes[name].host
		}
	case 1, 2: // one at a time: more could be a majority that lost what it had not synced to their disks' end
		if l.down() == 0 {
			l.end(name)
		}
	case 3:
		for _, name := range l.p.names {
			l.start(name)
		}
	case 4: // gone for too long
		for _, name := range l.p.names {
			if l.p.nodes[name].host == nil {
				l.r.set(name, func(n *registered) { n.out = true })
			}
		}
	case 5: // its metadata is lost, and it registers anew
		if l.down() == 0 && l.r.right() {
			l.end(name)
			n := l.p.nodes[name]
			n.disk, n.meta = vfs.NewMem(), base.UUID{byte(l.rng.Intn(256)), 1, byte(l.rng.Intn(256)), 0, 0, 0, 0x40, 0, 0x80}
			l.start(name)
			require.NoError(l.p.t, n.host.Adopt(cluster, l.p.shards))
			l.r.set(name, func(known *registered) { known.meta = n.meta })
		}
	case 6:
		l.p.isolate(name)
		time.Sleep(time.Duration(l.rng.Intn(5000)) * time.Millisecond)
		l.p.network.Heal()
	case 7:
		if h := l.p.leader(base.ShardID{Root: uint16(l.rng.Intn(l.p.shards))}); h != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			for _, s := range h.Status() {
				if s.Ready && len(s.Voters) > 1 {
					_, _ = h.Transfer(ctx, s.ID, s.Voters[l.rng.Intn(len(s.Voters))])
				}
			}
		}
	}
}

func (l *life) down() int {
	return len(slices.DeleteFunc(slices.Clone(l.p.names), func(n base.NodeID) bool { return l.p.nodes[n].host != nil }))
}

func (l *life) end(name base.NodeID) {
	l.mu.Lock()
	delete(l.up, name)
	l.mu.Unlock()
	l.p.kill(name, l.rng)
	l.r.set(name, func(n *registered) { n.dead = true })
}

func (l *life) start(name base.NodeID) {
	if l.p.nodes[name].host != nil {
		return
	}
	h := l.r.start(name)
	l.mu.Lock()
	l.up[name] = h
	l.mu.Unlock()
}
