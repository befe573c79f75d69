package shard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/task"
)

const (
	balanceEvery  = time.Second // between two looks at who should lead
	balanceAtOnce = 4           // transfers side by side, when there are many
)

// balancer gives leaderships to the nodes that should have them: slowly and one at a time, unless far too many are here.
type balancer struct {
	host    *Host
	started time.Time
	memory  planner.Handovers
	loop    sync.WaitGroup

	mu   sync.Mutex
	last preference
}

// preference is who should lead each shard of the cluster, and what that was made of.
type preference struct {
	ring    uint64
	shards  int
	fit     []base.NodeID // that can lead, by name
	leaders map[base.ShardID]base.NodeID
}

// preferred is who should lead each shard, by the ring and the nodes that can; without one of them, if it is named. The
// map is read only.
func (b *balancer) preferred(without base.NodeID) map[base.ShardID]base.NodeID {
	r, view := b.host.o.Ring(), b.host.o.View()
	p := preference{ring: r.Hash(), shards: b.host.Shards()}
	for _, m := range r.Members() {
		if m.Node != without && canLead(view, m.Node) {
			p.fit = append(p.fit, m.Node)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.ring == b.last.ring && p.shards == b.last.shards && slices.Equal(p.fit, b.last.fit) {
		return b.last.leaders
	}
	shards := make([]planner.ShardVoters, p.shards)
	for i := range shards {
		id := base.ShardID{Root: uint16(i)}
		shards[i] = planner.ShardVoters{Shard: id, Voters: planner.Intended(r, id, b.host.o.Voters)}
	}
	p.leaders = planner.Leaders(shards, func(node base.NodeID) bool {
		_, can := slices.BinarySearch(p.fit, node)
		return can
	})
	b.last = p
	return p.leaders
}

func (b *balancer) start(ctx context.Context) {
	b.started = time.Now()
	b.loop.Go(func() { b.run(ctx) })
}

func (b *balancer) wait() { b.loop.Wait() }

func (b *balancer) run(ctx context.Context) {
	for task.Pause(ctx, balanceEvery) {
		if b.host.stewards.leaving.Load() {
			continue
		}
		b.give(ctx, b.memory.Next(time.Now(), b.started, b.host.ledHere()))
	}
}

// give makes the moves, a few side by side. The first that fails is the last that begins: who should lead is then looked
// at anew.
func (b *balancer) give(ctx context.Context, list []planner.LedShard) {
	var failed atomic.Bool
	errs := make([]error, len(list))
	limit := make(chan struct{}, balanceAtOnce)
	var running sync.WaitGroup
	for i, next := range list {
		limit <- struct{}{}
		if failed.Load() || b.host.stewards.leaving.Load() || ctx.Err() != nil {
			<-limit
			errs[i] = context.Canceled
			continue
		}
		running.Go(func() {
			defer func() { <-limit }()
			if errs[i] = b.move(ctx, next); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	running.Wait()
	moved := 0
	for i, next := range list {
		if errs[i] != nil {
			b.memory.Failed(next.Shard)
		} else {
			moved++
		}
	}
	if moved > 0 {
		b.host.o.Logger.Info("shard leaderships moved", "shards", moved)
	}
}

func (b *balancer) move(ctx context.Context, next planner.LedShard) error {
	move, err := b.host.Transfer(ctx, next.Shard, next.Preferred)
	switch {
	case err == nil:
		b.host.o.Logger.Debug("shard leadership moved", "shard", next.Shard.String(), "to", next.Preferred, "leaderless", move.Leaderless)
	case !errors.Is(err, base.CodeNotLeader) && !errors.Is(err, base.CodeNoLeader):
		b.host.o.Logger.Warn("shard leadership not moved", "shard", next.Shard.String(), "to", next.Preferred, "error", err)
	}
	return err
}

// ledHere are the groups that this node leads among others, and who should lead them instead.
func (h *Host) ledHere() []planner.LedShard {
	var list []planner.LedShard
	var preferred map[base.ShardID]base.NodeID
	now := time.Now()
	for _, g := range h.all() {
		term := g.readyTerm.Load()
		if term == 0 || g.alone() {
			continue
		}
		if preferred == nil {
			preferred = h.stewards.leaders.preferred("")
		}
		to := preferred[g.id]
		if to == h.o.Node {
			to = ""
		}
		led := planner.LedShard{Shard: g.id, Preferred: to}
		for _, m := range g.members(term) {
			if to != "" && m.node == to && m.voter {
				led.Ready = m.follows(now) && m.match > 0
			}
		}
		list = append(list, led)
	}
	return list
}

// Balance gives every leadership of this node that another should have to it, now. With dryRun it only says which.
func (h *Host) Balance(ctx context.Context, dryRun bool) ([]Move, error) {
	misplaced := slices.DeleteFunc(h.ledHere(), func(l planner.LedShard) bool { return l.Preferred == "" })
	moves := make([]Move, len(misplaced))
	limit := make(chan struct{}, balanceAtOnce)
	var running sync.WaitGroup
	for i, led := range misplaced {
		moves[i] = Move{Shard: led.Shard, From: h.o.Node, To: led.Preferred}
		switch {
		case !led.Ready:
			moves[i].Err = base.Errorf(base.CodePreconditionFailed, "balance shards", "node %s does not vote in shard %s yet, or does not answer", led.Preferred, led.Shard)
			continue
		case dryRun:
			continue
		}
		limit <- struct{}{}
		running.Go(func() {
			defer func() { <-limit }()
			move, err := h.Transfer(ctx, led.Shard, led.Preferred)
			move.Err = err
			moves[i] = move
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return moves, base.Wrap(base.CodeTimeout, "balance shards", context.Cause(ctx))
	}
	return moves, nil
}
