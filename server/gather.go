package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/routing"
	"github.com/eastguard/eastguard/internal/wire"
)

// kindGather asks a node about all the shards that it leads in one message: what the cluster's lists and sums are made of.
const kindGather = peer.Control + 13

// gatherRequest is about some shards; one of the questions is set.
type gatherRequest struct {
	Shards   []base.ShardID          `cbor:"1,keyasint"`
	BudgetMs uint32                  `cbor:"2,keyasint,omitempty"`
	Find     base.TopicID            `cbor:"3,keyasint,omitzero"` // which of them holds this topic?
	List     *wire.ListTopicsRequest `cbor:"4,keyasint,omitempty"`
	Sums     bool                    `cbor:"5,keyasint,omitempty"`
	Data     bool                    `cbor:"6,keyasint,omitempty"` // with Sums: records and bytes too
	Rests    base.NodeID             `cbor:"7,keyasint,omitempty"` // what rests on this node?

	Segments *wire.ListSegmentsRequest `cbor:"8,keyasint,omitempty"`
}

// gatherAnswer answers for the shards that the node leads.
type gatherAnswer struct {
	Answered []base.ShardID      `cbor:"1,keyasint,omitempty"`
	Leaders  []shardClaim        `cbor:"2,keyasint,omitempty"` // of the others, as far as the node knows
	Found    *base.ShardID       `cbor:"3,keyasint,omitempty"`
	Topics   []wire.TopicSummary `cbor:"4,keyasint,omitempty"` // by name, of all the shards answered for
	More     bool                `cbor:"5,keyasint,omitempty"` // there are some behind the last of them
	Sums     []shardSum          `cbor:"6,keyasint,omitempty"`
	Rests    []rest              `cbor:"7,keyasint,omitempty"`
	Segments []wire.SegmentRow   `cbor:"8,keyasint,omitempty"` // by id, of all the shards answered for; More is about these, too
}

type shardClaim struct {
	Shard  base.ShardID `cbor:"1,keyasint"`
	Leader base.NodeID  `cbor:"2,keyasint"`
	Term   uint64       `cbor:"3,keyasint"`
}

func (a *gatherAnswer) told() routing.Told {
	t := routing.Told{Answered: a.Answered, Claims: make(map[base.ShardID]routing.Claim, len(a.Leaders))}
	for _, c := range a.Leaders {
		t.Claims[c.Shard] = routing.Claim{Leader: c.Leader, Term: c.Term}
	}
	return t
}

const (
	gatherWorkers = 4 // they read from memory, and wait for a majority to confirm that this node leads
	gatherQueue   = 256
	gatherViews   = 16 // shards read side by side
	gatherWithin  = 3 * time.Second
)

// gather puts one question to the leaders of all shards and hands each answer over, one at a time. It returns the shards
// nobody answered for within a part of ctx's time.
func (s *Server) gather(ctx context.Context, question gatherRequest, take func(gatherAnswer)) (missing []base.ShardID) {
	within := gatherWithin
	if deadline, has := ctx.Deadline(); has {
		within = min(within, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var mu sync.Mutex
	return s.router.Scatter(ctx, s.allShards(), func(ctx context.Context, node base.NodeID, shards []base.ShardID) (routing.Told, error) {
		q := question
		q.Shards = shards
		a, err := s.askGather(ctx, node, q)
		if err != nil {
			return routing.Told{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		take(a)
		return a.told(), nil
	})
}

func (s *Server) askGather(ctx context.Context, node base.NodeID, q gatherRequest) (a gatherAnswer, err error) {
	if node == s.id.Node {
		return s.gatherHere(ctx, q), nil
	}
	q.BudgetMs = budgetOf(ctx)
	b, err := routedPeers{s}.Call(ctx, node, kindGather, wire.Encode(q))
	if err != nil {
		return a, err
	}
	err = wire.Decode(b, &a)
	return a, err
}

// receiveGather is the handler of kindGather. Its workers never wait for another node's workers of this kind.
func (s *Server) receiveGather(ctx context.Context, r *peer.Request) {
	var q gatherRequest
	if err := wire.Decode(r.Body, &q); err != nil {
		r.Fail(err)
		return
	}
	err := s.gatherPool.run(func() {
		ctx, cancel := withinBudget(ctx, q.BudgetMs, gatherWithin)
		defer cancel()
		a, err := s.gatherSafely(ctx, q)
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(a))
	})
	if err != nil {
		r.Fail(err)
	}
}

func (s *Server) gatherSafely(ctx context.Context, q gatherRequest) (a gatherAnswer, err error) {
	defer s.surviveServing(wire.KindListTopics, &err)
	return s.gatherHere(ctx, q), nil
}

// gathering is an answer that is being put together.
type gathering struct {
	gatherAnswer

	listed   []pagePart[found] // of which the answer's topics are made, when all shards have given theirs
	segments []pagePart[placed]
}

// gatherHere answers from the shards that this node leads, each read freshly.
func (s *Server) gatherHere(ctx context.Context, q gatherRequest) gatherAnswer {
	var (
		g      gathering
		mu     sync.Mutex
		wg     sync.WaitGroup
		places = make(chan struct{}, gatherViews)
		part   = s.partOf(q)
	)
	for _, shard := range q.Shards {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			add, err := part(ctx, shard)
			leader, term := s.host.Leader(shard)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				g.Answered = append(g.Answered, shard)
				add(&g)
			case leader != "" && leader != s.id.Node:
				g.Leaders = append(g.Leaders, shardClaim{Shard: shard, Leader: leader, Term: term})
			}
		})
	}
	wg.Wait()
	switch {
	case q.List != nil:
		g.Topics, g.More = s.page(ctx, g.listed, pageLimit(q.List.Limit))
	case q.Segments != nil:
		g.Segments, g.More = s.segmentPage(ctx, g.segments, segmentLimit(q.Segments.Limit))
	}
	return g.gatherAnswer
}

// partOf is the question as one shard answers it: what to add to the answer, or why the shard cannot tell.
func (s *Server) partOf(q gatherRequest) func(context.Context, base.ShardID) (func(*gathering), error) {
	switch {
	case q.List != nil:
		return func(ctx context.Context, shard base.ShardID) (func(*gathering), error) {
			part, err := s.listShard(ctx, shard, *q.List)
			return func(g *gathering) { g.listed = append(g.listed, part) }, err
		}
	case q.Segments != nil:
		return func(ctx context.Context, shard base.ShardID) (func(*gathering), error) {
			part, err := s.segmentsOf(ctx, shard, *q.Segments)
			return func(g *gathering) { g.segments = append(g.segments, part) }, err
		}
	case q.Rests != "":
		return func(ctx context.Context, shard base.ShardID) (func(*gathering), error) {
			r, err := s.restsOn(ctx, shard, q.Rests)
			return func(g *gathering) { g.Rests = append(g.Rests, r) }, err
		}
	case q.Sums:
		return func(ctx context.Context, shard base.ShardID) (func(*gathering), error) {
			sum, err := s.sumShard(ctx, shard, q.Data)
			return func(g *gathering) { g.Sums = append(g.Sums, sum) }, err
		}
	}
	return func(ctx context.Context, shard base.ShardID) (func(*gathering), error) {
		has := false
		err := s.host.View(ctx, shard, func(st *meta.State) error {
			has = st.Topic(q.Find) != nil
			return nil
		})
		return func(g *gathering) {
			if has {
				g.Found = &shard
			}
		}, err
	}
}

// allShards lists the shards of the cluster, hosted here or not.
func (s *Server) allShards() []base.ShardID {
	list := make([]base.ShardID, s.host.Shards())
	for i := range list {
		list[i] = base.ShardID{Root: uint16(i)}
	}
	return list
}
