package server

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// kindAsk carries a question to the one node that can answer it, because it is about that node: its counters, its ring,
// its replicas. It is the way by which any node answers for any other.
const kindAsk = peer.Control + 11

const (
	askWithin     = 5 * time.Second        // for what one node is asked on behalf of a client
	collectWithin = 500 * time.Millisecond // for what all nodes are asked: one that hangs must not hold up the others
	collectAtOnce = 64                     // nodes asked side by side
	asksAtOnce    = 64                     // questions of others under way here
)

// topic of a question. Numbers never change their meaning.
type askTopic uint8

const (
	askStatus   askTopic = 1 // -> wire.NodeStatus: how are you?
	askDescribe askTopic = 2 // -> wire.DescribeNodeResponse
	askRing     askTopic = 3 // wire.NodeRingRequest -> wire.NodeRingResponse
	askShards   askTopic = 4 // -> wire.ListShardsResponse: the replicas there
	askShard    askTopic = 5 // wire.DescribeShardRequest -> wire.DescribeShardResponse: as the replica there sees it
	askLeave    askTopic = 6 // -> nothing: stop in good order
	askBalance  askTopic = 7 // wire.BalanceShardsRequest -> wire.BalanceShardsResponse: of the shards led there
)

// question is the message of kindAsk.
type question struct {
	Topic    askTopic `cbor:"1,keyasint"`
	Message  []byte   `cbor:"2,keyasint,omitempty"` // by the topic
	BudgetMs uint32   `cbor:"3,keyasint,omitempty"` // how long the asker waits
}

// answerer answers one topic from what this node has.
type answerer func(ctx context.Context, message []byte) ([]byte, error)

// answering makes an answerer of a function of messages.
func answering[Q, A any](serve func(context.Context, Q) (A, error)) answerer {
	return func(ctx context.Context, message []byte) ([]byte, error) {
		var q Q
		if len(message) > 0 {
			if err := wire.Decode(message, &q); err != nil {
				return nil, err
			}
		}
		a, err := serve(ctx, q)
		if err != nil {
			return nil, err
		}
		return wire.Encode(a), nil
	}
}

type nothing struct{}

func (s *Server) answerers() map[askTopic]answerer {
	return map[askTopic]answerer{
		askStatus:   answering(func(context.Context, nothing) (wire.NodeStatus, error) { return s.ownStatus(), nil }),
		askDescribe: answering(func(context.Context, nothing) (wire.DescribeNodeResponse, error) { return s.describeSelf(), nil }),
		askRing: answering(func(_ context.Context, q wire.NodeRingRequest) (wire.NodeRingResponse, error) {
			return s.describeRing(q.Tokens), nil
		}),
		askShards: answering(func(ctx context.Context, _ nothing) (wire.ListShardsResponse, error) {
			return wire.ListShardsResponse{Observer: s.id.Node, Shards: s.shardsHere()}, nil
		}),
		askShard:   answering(s.describeShardHere),
		askLeave:   answering(s.leaveHere),
		askBalance: answering(s.balanceHere),
	}
}

// ask puts a question to a node and reads the answer into a. This node answers itself.
func (s *Server) ask(ctx context.Context, node base.NodeID, topic askTopic, q, a any) error {
	var message []byte
	if q != nil {
		message = wire.Encode(q)
	}
	answer, err := s.askRaw(ctx, node, topic, message)
	if err != nil || a == nil {
		return err
	}
	return wire.Decode(answer, a)
}

func (s *Server) askRaw(ctx context.Context, node base.NodeID, topic askTopic, message []byte) ([]byte, error) {
	if node == s.id.Node {
		return s.answers[topic](ctx, message)
	}
	return routedPeers{s}.Call(ctx, node, kindAsk, wire.Encode(question{Topic: topic, Message: message, BudgetMs: budgetOf(ctx)}))
}

// budgetOf is how long the asker waits, as its message says it; 0 where it waits for ever.
func budgetOf(ctx context.Context) uint32 {
	deadline, has := ctx.Deadline()
	if !has {
		return 0
	}
	return uint32(max(1, min(time.Until(deadline).Milliseconds(), math.MaxUint32)))
}

// withinBudget bounds what is done for an asker by the time that it waits, and by most.
func withinBudget(ctx context.Context, budgetMs uint32, most time.Duration) (context.Context, context.CancelFunc) {
	if budgetMs > 0 {
		most = min(most, time.Duration(budgetMs)*time.Millisecond)
	}
	return context.WithTimeout(ctx, most)
}

// registerAsks takes other nodes' questions, before the connections start.
func (s *Server) registerAsks(p *peer.Host) {
	p.Register(kindAsk, s.receiveAsk)
	p.Register(kindCopy, served(s, s.takeCopy))
	p.Register(kindReach, func(_ context.Context, r *peer.Request) { r.Reply(nil) })
}

// askSoon is ask for one of several nodes that may know: one that hangs must not use up the time of the others.
func (s *Server) askSoon(ctx context.Context, node base.NodeID, topic askTopic, q, a any) error {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	return s.ask(ctx, node, topic, q, a)
}

// receiveAsk is the handler of kindAsk. What serves it waits for no other node.
func (s *Server) receiveAsk(ctx context.Context, r *peer.Request) {
	var q question
	if err := wire.Decode(r.Body, &q); err != nil {
		r.Fail(err)
		return
	}
	answer, ok := s.answers[q.Topic]
	if !s.progress.done.Load() {
		r.Fail(base.Errorf(base.CodeBusy, "ask node", "node %s is starting: %s", s.id.Node, &s.progress))
		return
	}
	if !ok {
		r.Fail(base.Errorf(base.CodeUnknownKind, "ask node", "question %d is not known here", q.Topic))
		return
	}
	err := s.asks.run(func() {
		ctx, cancel := withinBudget(ctx, q.BudgetMs, askWithin)
		defer cancel()
		b, err := s.answerSafely(ctx, answer, q.Message)
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(b)
	})
	if err != nil {
		r.Fail(err)
	}
}

func (s *Server) answerSafely(ctx context.Context, answer answerer, message []byte) (b []byte, err error) {
	defer s.surviveServing(wire.KindDescribeNode, &err)
	return answer(ctx, message)
}

// collect asks every node for its status. Those that do not answer in time are shown as this node has heard of them;
// missing names those of them that are not known to be gone.
func (s *Server) collect(ctx context.Context) (nodes []wire.NodeStatus, missing []base.NodeID) {
	view := s.view()
	answers := make([]wire.NodeStatus, len(view.Nodes))
	errs := s.askEach(ctx, view, func(ctx context.Context, i int) error {
		return s.ask(ctx, view.Nodes[i].ID, askStatus, nil, &answers[i])
	})
	for i, n := range view.Nodes {
		st := answers[i]
		if errs[i] == nil {
			s.judge(&st, n)
		} else {
			st = s.believed(n)
			if !gone(n) {
				missing = append(missing, n.ID)
			}
		}
		nodes = append(nodes, st)
	}
	return nodes, missing
}

// gone says that nobody expects an answer of a node.
func gone(n topology.Node) bool { return n.Liveness == topology.Dead || n.Liveness == topology.Left }

// errGone stands for the answer of a node that was not asked.
var errGone = base.Errorf(base.CodeUnreachable, "ask node", "the node is gone")

// askEach runs a question for each node of a view that is not gone, side by side, for collectWithin. The errors are in
// the order of the nodes.
func (s *Server) askEach(ctx context.Context, view topology.View, question func(ctx context.Context, i int) error) []error {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	errs := make([]error, len(view.Nodes))
	var asking sync.WaitGroup
	places := make(chan struct{}, collectAtOnce)
	for i, n := range view.Nodes {
		if gone(n) {
			errs[i] = errGone
			continue
		}
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			errs[i] = question(ctx, i)
		})
	}
	asking.Wait()
	return errs
}
