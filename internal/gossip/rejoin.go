package gossip

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/topology"
)

const (
	firstJoin  = 200 * time.Millisecond // at most: a hundred nodes that start together do not ask one seed at once
	firstPace  = 500 * time.Millisecond // between rounds, doubled each time up to Options.Rejoin
	joinAtOnce = 3
)

// rejoinForEver reaches out to seeds and lost members, because memberlist never does: without it a partition that lasts
// longer than the dead are remembered would never end.
func (a *Agent) rejoinForEver() {
	wait, pace := rand.N(firstJoin), firstPace
	seen := uint64(0)
	for {
		via := ""
		select {
		case <-a.ctx.Done():
			return
		case via = <-a.rejoin: // under a new name, as good as just started
			pace = firstPace
		case <-time.After(wait):
		}
		targets := a.targets(via)
		if v := a.Snapshot().Version; v != seen {
			seen = v
			targets = append(targets, a.someone()...)
		}
		a.join(targets)
		wait, pace = jitter(pace), min(2*pace, a.o.Rejoin)
	}
}

// jitter is d on average, half of it at least.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// targets are a few of those who are not there, via first.
func (a *Agent) targets(via string) []string {
	targets := a.absent()
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	if addr, ok := unmapped(via); ok {
		targets = append([]string{addr}, slices.DeleteFunc(targets, func(t string) bool { return t == addr })...)
	}
	return targets[:min(joinAtOnce, len(targets))]
}

// someone is a living member to compare notes with. A broadcast misses somebody now and then, most of all when many
// join at once, and memberlist's own comparison comes only every minute in a cluster of 40 and every other among 200.
// So whoever has seen a change since its last round asks one more; where nothing changes this costs nothing.
func (a *Agent) someone() []string {
	var living []string
	members := a.Snapshot().Members
	for i := range members {
		if members[i].Liveness == topology.Alive && members[i].Node != a.id {
			living = append(living, members[i].Address)
		}
	}
	if len(living) == 0 {
		return nil
	}
	return []string{living[rand.IntN(len(living))]}
}

// join exchanges everything with each target. That it succeeds says nothing (a refused process gets the same answer):
// who is there, the snapshot says.
func (a *Agent) join(targets []string) {
	for _, addr := range targets {
		if a.ctx.Err() != nil {
			return
		}
		if _, err := a.current.Load().list.Join([]string{addr}); err != nil {
			a.log.Debug("not reached", "address", addr, "error", err)
		}
	}
}

// absent lists the addresses of seeds, of members an earlier start knew and of those that died, where nobody is known to
// live now.
func (a *Agent) absent() []string {
	present := map[string]bool{a.o.Network.Addr().String(): true}
	var wanted []string
	members := a.Snapshot().Members
	for i := range members {
		switch m := &members[i]; m.Liveness {
		case topology.Alive, topology.Suspect:
			present[m.Address] = true
		case topology.Dead:
			wanted = append(wanted, m.Address)
		case topology.Left:
		}
	}
	for _, seed := range a.o.Seeds {
		wanted = append(wanted, a.resolve(seed)...)
	}
	for _, known := range a.o.Known {
		if addr, ok := unmapped(known); ok {
			wanted = append(wanted, addr)
		}
	}
	slices.Sort(wanted)
	return slices.DeleteFunc(slices.Compact(wanted), func(addr string) bool { return present[addr] })
}

// resolve looks a seed up anew each time: names move.
func (a *Agent) resolve(seed string) []string {
	if addr, ok := unmapped(seed); ok {
		return []string{addr}
	}
	host, port, err := net.SplitHostPort(seed)
	p, err2 := strconv.ParseUint(port, 10, 16)
	if err != nil || err2 != nil {
		a.log.Warn("seed is not host:port", "seed", seed)
		return nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	ips, err := a.o.Lookup(ctx, host)
	if err != nil {
		a.log.Debug("seed not resolved", "seed", seed, "error", err)
		return nil
	}
	addrs := make([]string, 0, len(ips))
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(p)).String())
	}
	return addrs
}
