package gossip

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/hashicorp/memberlist"
)

// loop is the goroutine that talks to memberlist: it reads all states, sends what callbacks want to be told, and
// changes generations.
type loop struct {
	*Agent
	roll    *roll
	version uint64
	leaving bool
	nextSet bool // a reading is due sooner than the regular one
	last    time.Time
}

func (l *loop) run() {
	next := time.NewTimer(readEvery)
	defer next.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.urgent:
			if !l.attend() {
				return
			}
		case timeout := <-l.leave:
			l.left <- l.sayGoodbye(timeout)
		case <-l.dirty:
			if !l.nextSet { // the first mark sets the time, more do not put it off
				l.nextSet = true
				next.Reset(max(0, time.Until(l.last.Add(l.scaled(readGap)))))
			}
		case <-next.C:
			l.read()
			next.Reset(l.scaled(readEvery))
		}
	}
}

// scaled stretches a period with the number of members.
func (l *loop) scaled(d time.Duration) time.Duration {
	return d * time.Duration(max(readScale, len(l.roll.members))) / readScale
}

// read takes a reading of all states and publishes what changed.
func (l *loop) read() {
	l.nextSet, l.last = false, time.Now()
	g := l.current.Load()
	states, err := g.states(nil)
	if err != nil {
		l.log.Warn("members not read", "error", err)
		return
	}
	l.mu.Lock()
	self := Member{Self: l.self.clone(), Rename: l.book.life.Rename, Address: l.o.Network.Addr().String(), Liveness: topology.Alive}
	meta := string(l.meta)
	l.mu.Unlock()
	if l.leaving {
		self.Liveness = topology.Left
	}
	for i := range states {
		if states[i].Name == g.name {
			self.Incarnation = states[i].Incarnation
		}
	}
	if !l.roll.fold(states, &self, meta, l.isBuried, l.last) {
		return
	}
	l.version++
	s := l.roll.snapshot(l.version)
	l.nodes.Store(int64(s.Count(topology.Alive) + s.Count(topology.Suspect)))
	l.snapshot.Store(s)
	l.notify()
}

func (l *loop) isBuried(id base.NodeID, at life) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.book.isBuried(id, at)
}

// attend does what callbacks left to do. It reports whether the agent goes on.
func (l *loop) attend() bool {
	l.mu.Lock()
	p := l.post.take()
	var next life
	renamed, outdated := false, false
	if p.buried != nil {
		next, renamed, outdated = l.book.rename(p.buried)
	}
	if outdated {
		l.post.fail(&notice{ID: l.id, Boot: p.buried.Grave.Boot})
		p.fatal = l.post.fatal
	}
	l.mu.Unlock()

	g := l.current.Load()
	if p.fatal != nil {
		// Silently: if the other process has our very name, a goodbye in it would be the other's death.
		l.log.Error("another process is this node", "error", p.fatal)
		l.cancel()
		g.retire()
		l.o.OnFatal(p.fatal)
		return false
	}
	from := l.o.Network.Addr().String()
	for _, n := range p.out {
		if err := g.list.SendToAddress(memberlist.Address{Addr: n.to}, n.encode(from)); err != nil {
			l.log.Debug("notice not sent", "node", n.ID, "error", err)
		}
	}
	if p.update && !l.leaving {
		// It waits to be told that the word is out, which it misses when that happens too soon: we do not wait with it.
		_ = g.list.UpdateNode(time.Millisecond)
		l.markDirty()
	}
	if renamed && !l.leaving {
		return l.rename(g, next, p.buried.From)
	}
	return true
}

// rename comes back from a false burial under the next name, in a generation that knows from the start whom the last
// one knew: its own failure detector goes on where the other ended.
func (l *loop) rename(old *generation, next life, via string) bool {
	states, err := old.states(nil)
	if err != nil {
		l.log.Warn("members not carried over", "error", err)
	}
	l.mu.Lock()
	l.book.life = next
	carry := states[:0]
	for _, s := range states {
		id, at, err := parseName(s.Name)
		if err == nil && id != l.id && !l.book.isBuried(id, at) && (s.State == memberlist.StateAlive || s.State == memberlist.StateSuspect) {
			carry = append(carry, s)
		}
	}
	l.mu.Unlock()
	old.retire()
	g, err := l.newGeneration(next)
	if err != nil {
		l.log.Error("not back under a new name", "error", err)
		l.cancel()
		l.o.OnFatal(base.Wrap(base.CodeInternal, "come back from a false burial", err))
		return false
	}
	l.current.Store(g)
	l.renames.Add(1)
	l.log.Info("falsely buried; back under a new name", "was", old.name, "name", g.name, "told_by", via)
	if _, err := g.states(carry); err != nil {
		l.log.Warn("members not carried over", "error", err)
	}
	select {
	case l.rejoin <- via:
	default:
	}
	l.markDirty()
	return true
}

// sayGoodbye makes the others mark us as left. From here on a burial is no reason to come back.
func (l *loop) sayGoodbye(timeout time.Duration) error {
	l.leaving = true
	err := l.current.Load().list.Leave(timeout)
	l.read()
	if err != nil {
		return base.Wrap(base.CodeTimeout, "leave the membership", err)
	}
	return nil
}
