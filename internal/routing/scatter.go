package routing

import (
	"context"
	"slices"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
)

// nodesAtOnce bounds how many nodes one scatter asks side by side.
const nodesAtOnce = 32

// Told is what a node answered about the shards it was asked about: those it answered for, and for the others who leads
// them as far as it knows.
type Told struct {
	Answered []base.ShardID
	Claims   map[base.ShardID]Claim
}

// Scatter asks the leader of each shard, with one question for all that a node leads, and asks again elsewhere about
// those that were not answered, until ctx ends. It returns the shards that nobody answered for. ask runs on several
// goroutines at once, for this node too, and gets each shard's answer at most once.
func (r *Router) Scatter(ctx context.Context, shards []base.ShardID, ask func(context.Context, base.NodeID, []base.ShardID) (Told, error)) (missing []base.ShardID) {
	open := slices.Clone(shards)
	for round := 0; ; round++ {
		changed := r.claims.wait()
		open = r.scatterOnce(ctx, open, round, ask)
		if len(open) == 0 || !pause(ctx, round, changed) {
			return open
		}
	}
}

func (r *Router) scatterOnce(ctx context.Context, open []base.ShardID, round int, ask func(context.Context, base.NodeID, []base.ShardID) (Told, error)) (left []base.ShardID) {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		places  = make(chan struct{}, nodesAtOnce)
		byNode  = make(map[base.NodeID][]base.ShardID)
		claimed = make(map[base.ShardID]Claim)
	)
	for _, shard := range open {
		node, claim := r.whom(shard, round)
		if node == "" {
			left = append(left, shard)
			continue
		}
		byNode[node], claimed[shard] = append(byNode[node], shard), claim
	}
	for node, of := range byNode {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			told, err := ask(ctx, node, of)
			mu.Lock()
			defer mu.Unlock()
			for _, shard := range of {
				if err == nil && slices.Contains(told.Answered, shard) {
					continue
				}
				left = append(left, shard)
				if c := claimed[shard]; c.Leader == node {
					r.claims.doubt(shard, c)
				}
				r.claims.learn(shard, told.Claims[shard])
			}
		})
	}
	wg.Wait()
	return left
}

// whom is the node to ask about a shard in a round: the leader; without one each of those that may know, in turn.
func (r *Router) whom(shard base.ShardID, round int) (base.NodeID, Claim) {
	if c, ok := r.Leader(shard); ok {
		return c.Leader, c
	}
	list := r.others(shard, nil)
	if len(list) == 0 {
		return "", Claim{}
	}
	return list[round%len(list)], Claim{}
}
