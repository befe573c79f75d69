package server

import (
	"context"
	"slices"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// balanceShards has every node give away the leaderships that others should have. Nobody decides for all: each leader
// works out the same spread and moves its own shards.
func (s *Server) balanceShards(ctx context.Context, req wire.BalanceShardsRequest) (wire.BalanceShardsResponse, error) {
	resp := wire.BalanceShardsResponse{DryRun: req.DryRun}
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
		told   int
		failed error
	)
	places := make(chan struct{}, collectAtOnce)
	for _, n := range s.view().Nodes {
		if gone(n) {
			continue
		}
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			var part wire.BalanceShardsResponse
			err := s.ask(ctx, n.ID, askBalance, req, &part)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = base.Wrap(base.CodeOf(err), "balance shards, node "+string(n.ID), err)
				resp.Missing = append(resp.Missing, n.ID)
				return
			}
			told++
			resp.Moves = append(resp.Moves, part.Moves...)
		})
	}
	asking.Wait()
	if told == 0 && failed != nil {
		return resp, failed
	}
	slices.Sort(resp.Missing)
	slices.SortFunc(resp.Moves, func(a, b wire.ShardMove) int { return a.Shard.Compare(b.Shard) })
	return resp, nil
}

// balanceHere moves the leaderships of this node.
func (s *Server) balanceHere(ctx context.Context, req wire.BalanceShardsRequest) (wire.BalanceShardsResponse, error) {
	moves, err := s.host.Balance(ctx, req.DryRun)
	resp := wire.BalanceShardsResponse{DryRun: req.DryRun}
	for _, m := range moves {
		resp.Moves = append(resp.Moves, wireMove(m))
	}
	return resp, err
}
