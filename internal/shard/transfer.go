package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/task"
)

// How long the steps of a transfer may take.
const (
	transferCatchUp  = time.Second // for the target to hold all that the leader does
	transferStepDown = time.Second // for the leader to hear of its successor
	transferPoll     = 2 * time.Millisecond
	handOverLimit    = 10 * time.Second
	handOverPause    = 100 * time.Millisecond // before a group that could not be handed over is tried again
)

// Move is a leadership that went from one node to another, or should.
type Move struct {
	Shard      base.ShardID
	From       base.NodeID
	To         base.NodeID
	Term       uint64        // of the new leader; 0 when it was not made
	Leaderless time.Duration // from the order to stand for election until the old leader knew the new one
	Err        error         // why it was not made
}

// Transfer hands the leadership of a shard led here to another of its voters.
//
// It does not use raft's own transfer, which can stay "in progress" for ever when it is interrupted (hashicorp/raft
// #696). New proposals wait; once the target holds every entry it is told to stand for election without asking whether
// there is a leader. If it does not win in time the proposals go on here. Those that were under way end as unknown.
func (h *Host) Transfer(ctx context.Context, shard base.ShardID, to base.NodeID) (Move, error) {
	const op = "transfer shard"
	move := Move{Shard: shard, From: h.o.Node, To: to}
	g, err := h.group(shard)
	if err != nil {
		return move, err
	}
	term := g.readyTerm.Load()
	if term == 0 {
		return move, g.notLeader(op)
	}
	if to == h.o.Node {
		move.Term = term
		return move, nil
	}
	for _, m := range g.members(term) {
		if m.node == to && m.voter {
			return g.transfer(ctx, term, m)
		}
	}
	return move, base.Errorf(base.CodePreconditionFailed, op, "node %s does not vote in shard %s", to, shard).
		WithHint("shard describe %s lists its voters", shard)
}

// transfer makes the move. One at a time a group.
func (g *group) transfer(ctx context.Context, term uint64, to member) (Move, error) {
	const op = "transfer shard"
	move := Move{Shard: g.id, From: g.host.o.Node, To: to.node}
	if err := g.mustReach(to.node); err != nil {
		return move, err
	}
	resume, err := g.hold.begin()
	if err != nil {
		return move, err
	}
	defer resume()
	if err := g.awaitCaughtUp(ctx, term, to); err != nil {
		return move, err
	}
	began := time.Now()
	request := &raft.TimeoutNowRequest{RPCHeader: header(g.serverID, g.transport.LocalAddr())}
	if err := g.transport.TimeoutNow(to.id, to.addr, request, &raft.TimeoutNowResponse{}); err != nil {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, base.CodeUnreachable) {
			err = base.Errorf(base.CodeUnreachable, op, "node %s is away: it was told to take over shard %s and has not answered", to.node, g.id)
		}
		return move, base.Wrap(base.CodeUnreachable, op, err)
	}
	deadline := began.Add(transferStepDown)
	for {
		leader, now := g.leader()
		if now > term && leader != "" {
			move.Term, move.Leaderless = now, time.Since(began)
			if leader != to.node {
				return move, base.Errorf(base.CodePreconditionFailed, op, "node %s was elected instead", leader)
			}
			return move, nil
		}
		if time.Now().After(deadline) {
			return move, base.Errorf(base.CodeTimeout, op, "node %s has not taken over shard %s within %s", to.node, g.id, transferStepDown)
		}
		if !task.Pause(ctx, transferPoll) {
			return move, base.Wrap(base.CodeTimeout, op, context.Cause(ctx)).WithOutcome(base.Unknown)
		}
	}
}

// mustReach refuses a target whose connection is lost: proposals wait while a transfer does, and it is not coming.
func (g *group) mustReach(node base.NodeID) error {
	if p := g.host.o.Peers; p != nil && p.Liveness()[node].Status != peer.Reachable {
		return base.Errorf(base.CodeUnreachable, "transfer shard", "node %s is away: it cannot be reached", node).
			WithHint("see who is there: eg-cli node list")
	}
	return nil
}

// awaitCaughtUp waits until the target is known to hold every entry of ours.
func (g *group) awaitCaughtUp(ctx context.Context, term uint64, to member) error {
	const op = "transfer shard"
	for deadline := time.Now().Add(transferCatchUp); ; {
		m := g.progress.of(term, to.id)
		if err := g.mustReach(to.node); err != nil {
			return err
		}
		switch {
		case g.readyTerm.Load() != term:
			return g.notLeader(op)
		case m.follows(time.Now()) && m.match >= g.raft.LastIndex():
			return nil
		case time.Now().After(deadline) && !m.follows(time.Now()):
			return base.Errorf(base.CodeUnreachable, op, "node %s is away: it does not answer the leader of shard %s", to.node, g.id).
				WithHint("see who is there: eg-cli node list")
		case time.Now().After(deadline):
			return base.Errorf(base.CodePreconditionFailed, op, "node %s has not caught up with shard %s: it holds entry %d of %d", to.node, g.id, m.match, g.raft.LastIndex())
		}
		if !task.Pause(ctx, transferPoll) {
			return base.Wrap(base.CodeTimeout, op, context.Cause(ctx))
		}
	}
}

// HandOver gives away every leadership of this node, all at once, each to the voter that the spread of leaders would
// choose if this node were not there. It returns when there is none left, when nobody is there to take the rest, or
// after ten seconds. From the first call on this node takes no leadership, changes no group's members and takes no part
// in balancing.
func (h *Host) HandOver(ctx context.Context) error {
	h.stewards.leaving.Store(true)
	ctx, cancel := context.WithTimeoutCause(ctx, handOverLimit, base.Errorf(base.CodeTimeout, "hand over", "%s have passed", handOverLimit))
	defer cancel()
	preferred := h.stewards.leaders.preferred(h.o.Node)
	return each(h.all(), func(g *group) error { return g.handOver(ctx, preferred[g.id]) })
}

func (g *group) handOver(ctx context.Context, preferred base.NodeID) error {
	leaving := make(map[base.NodeID]bool) // those who give theirs away too
	for {
		term := g.readyTerm.Load()
		if term == 0 || g.alone() {
			return nil
		}
		nobody := base.Errorf(base.CodeUnreachable, "hand over", "no other voter of shard %s can take over", g.id)
		switch to, ok := g.successor(term, preferred, leaving); {
		case ok:
			_, err := g.transfer(ctx, term, to)
			if err == nil {
				return nil
			}
			if errors.Is(err, base.CodeShuttingDown) {
				leaving[to.node] = true
				continue
			}
		case !g.hasCompany(leaving):
			return nobody
		}
		if !task.Pause(ctx, handOverPause) {
			return nobody
		}
	}
}

// hasCompany reports whether another voter's node is connected and stays.
func (g *group) hasCompany(leaving map[base.NodeID]bool) bool {
	if g.host.o.Peers == nil {
		return false
	}
	liveness := g.host.o.Peers.Liveness()
	for _, node := range g.voters() {
		if node != g.host.o.Node && !leaving[node] && liveness[node].Status == peer.Reachable {
			return true
		}
	}
	return false
}

// alone reports whether nobody else votes.
func (g *group) alone() bool {
	for _, s := range g.servers() {
		if s.Suffrage == raft.Voter && s.ID != g.serverID {
			return false
		}
	}
	return true
}

// successor is the preferred voter if it follows, else the one that has most; none of those excepted.
func (g *group) successor(term uint64, preferred base.NodeID, except map[base.NodeID]bool) (best member, ok bool) {
	now := time.Now()
	for _, m := range g.members(term) {
		if !m.voter || m.id == g.serverID || !m.follows(now) || except[m.node] {
			continue
		}
		if m.node == preferred {
			return m, true
		}
		if !ok || m.match > best.match {
			best, ok = m, true
		}
	}
	return best, ok
}

// hold keeps new proposals of a group waiting while its leadership moves.
type hold struct {
	mu    sync.Mutex
	moved chan struct{} // closed when the move has ended; nil: none is under way
}

// begin holds proposals until the returned function is called.
func (k *hold) begin() (end func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.moved != nil {
		return nil, base.Errorf(base.CodeBusy, "transfer shard", "another transfer of the shard is under way")
	}
	moved := make(chan struct{})
	k.moved = moved
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.moved = nil
		close(moved)
	}, nil
}

// wait returns when no move is under way. Nothing was proposed when it fails.
func (k *hold) wait(ctx context.Context) error {
	k.mu.Lock()
	moved := k.moved
	k.mu.Unlock()
	if moved == nil {
		return nil
	}
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return base.Wrap(base.CodeTimeout, "propose", context.Cause(ctx))
	}
}

// busy reports whether a move is under way.
func (k *hold) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.moved != nil
}
