package shard

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// View calls fn with a state that holds every command answered before View was called. fn runs under the group's
// read lock: it must be quick and must not keep the State (Topics and Nodes it may keep, they are immutable).
//
// It is fresh by proof, not by a lease: the barrier at the beginning of our term covers what earlier leaders
// answered, our own answers are given after applying, and a majority confirms that nobody leads a later term.
func (h *Host) View(ctx context.Context, shard base.ShardID, fn func(*meta.State) error) error {
	g, err := h.group(shard)
	if err != nil {
		return err
	}
	return g.view(ctx, fn)
}

// ViewStale calls fn with whatever this replica has applied, for what may lag: lists, status, hints.
func (h *Host) ViewStale(shard base.ShardID, fn func(*meta.State) error) error {
	g, err := h.group(shard)
	if err != nil {
		return err
	}
	return g.fsm.view(fn)
}

func (g *group) view(ctx context.Context, fn func(*meta.State) error) error {
	term := g.readyTerm.Load()
	if term == 0 {
		return g.notLeader("read shard")
	}
	if err := g.verifier.verify(ctx, g.verifyLeader); err != nil {
		if ctx.Err() != nil {
			return base.Wrap(base.CodeTimeout, "read shard", context.Cause(ctx))
		}
		return g.notLeader("read shard")
	}
	// Verified, but in which term? One that began since term has not had its barrier.
	if g.raft.CurrentTerm() != term {
		return g.notLeader("read shard")
	}
	return g.fsm.view(fn)
}

// verifyPatience is how long a round waits for a majority.
const verifyPatience = 2 * time.Second

// verifyLeader asks all voters whether they know of a later term, and waits for a majority that does not. Raft's own
// VerifyLeader would count the answer to a heartbeat that was sent before the question: such an answer may be older
// than another leader's election.
func (g *group) verifyLeader() error {
	term := g.readyTerm.Load()
	if term == 0 || !g.leads(term) {
		return raft.ErrNotLeader
	}
	voters, others := 0, []raft.Server(nil)
	for _, s := range g.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID != g.serverID {
			others = append(others, s)
		}
	}
	needed := voters/2 + 1 - (voters - len(others))
	if needed <= 0 {
		return nil
	}
	return g.transport.confirm(term, others, needed)
}

// confirm sends a heartbeat of its own to the servers, and waits until as many as needed have taken it.
func (t *transport) confirm(term uint64, servers []raft.Server, needed int) error {
	answers := make(chan bool, len(servers))
	for _, s := range servers {
		to, node, err := t.resolve(s.ID, s.Address)
		if err == nil {
			m := appendMessage{Envelope: t.envelope(to, term)}
			_, err = t.group.host.o.Peers.Go(node, kindAppend, groupNumber(t.group.id), encode(&m), func(b []byte, err error) {
				var answer appendAnswer
				answers <- err == nil && decode(b, &answer) == nil && answer.Success && answer.Verdict.Term == term
			})
		}
		if err != nil {
			answers <- false
		}
	}
	timer := time.NewTimer(verifyPatience)
	defer timer.Stop()
	for range servers {
		select {
		case yes := <-answers:
			if yes {
				needed--
			}
		case <-timer.C:
			return raft.ErrLeadershipLost
		case <-t.inbox.ctx.Done():
			return raft.ErrRaftShutdown
		}
		if needed == 0 {
			return nil
		}
	}
	return raft.ErrLeadershipLost
}

// verifier makes one round of asking the others serve everybody who came before it began. Its goroutine lives only
// while somebody waits.
type verifier struct {
	mu      sync.Mutex
	running bool
	stopped bool
	next    *round
	rounds  sync.WaitGroup
}

// stop refuses new rounds and waits for those under way, before raft is shut down: raft would never answer one that it
// has not begun by then.
func (v *verifier) stop() {
	v.mu.Lock()
	v.stopped = true
	v.mu.Unlock()
	v.rounds.Wait()
}

type round struct {
	done chan struct{}
	err  error // valid once done is closed
}

// verify joins the next round. It must not join the one under way, which may have been answered before we came.
func (v *verifier) verify(ctx context.Context, ask func() error) error {
	v.mu.Lock()
	if v.stopped {
		v.mu.Unlock()
		return raft.ErrRaftShutdown
	}
	if v.next == nil {
		v.next = &round{done: make(chan struct{})}
	}
	mine := v.next
	if !v.running {
		v.running = true
		v.rounds.Go(func() { v.run(ask) })
	}
	v.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (v *verifier) run(ask func() error) {
	for {
		v.mu.Lock()
		r := v.next
		v.next = nil
		v.running = r != nil
		v.mu.Unlock()
		if r == nil {
			return
		}
		r.err = ask()
		close(r.done)
	}
}
