package server

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/routing"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// subject says which shard a request is about, and what a lost answer to it means.
type subject struct {
	name    string        // the shard of topics with this name
	topic   base.TopicID  // without a name: the shard that holds this topic
	shard   *base.ShardID // instead of both
	changes bool          // the request leaves something behind
	request base.RequestID
}

// job is a request that has been read: whom to ask, and how to answer it where its shard leads.
type job struct {
	subject
	serve func(ctx context.Context, shard base.ShardID) ([]byte, error)
}

// preparer reads the message of one kind of request.
type preparer func(message []byte) (job, error)

// prepared makes the preparer of a kind from what serves it on the shard's leader.
func prepared[Q, A any](serve func(context.Context, base.ShardID, Q) (A, error), about func(*Q) subject) preparer {
	return func(message []byte) (job, error) {
		var req Q
		if err := wire.Decode(message, &req); err != nil {
			return job{}, err
		}
		return job{subject: about(&req), serve: func(ctx context.Context, shard base.ShardID) ([]byte, error) {
			answer, err := serve(ctx, shard, req)
			if err != nil {
				return nil, err
			}
			return wire.Encode(answer), nil
		}}, nil
	}
}

// searching stands for the shard while a topic's id is all that is known.
var searching = base.ShardID{Root: ^uint16(0)}

// routed answers a request about one shard, wherever the shard's leader is.
func (s *Server) routed(ctx context.Context, r *mux.Request, prepare preparer) {
	j, err := prepare(r.Message)
	if err != nil {
		r.Fail(err)
		return
	}
	if j.shard != nil {
		if err := s.mustBeShard(r.Kind.String(), *j.shard); err != nil {
			r.Fail(err)
			return
		}
	}
	shard, known := s.shardOf(j.subject)
	err = s.router.Spawn(shard, func() {
		defer s.survive(r)
		ctx, cancel := context.WithDeadline(ctx, r.Arrived.Add(metaTimeout))
		defer cancel()
		if !known {
			found, err := s.findTopic(ctx, r.Kind.String(), j.topic)
			if err != nil {
				r.Fail(err)
				return
			}
			shard = found
		}
		answer, err := s.router.Do(ctx, s.routable(r.Kind, r.Message, shard, j))
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(answer)
	})
	if err != nil {
		r.Fail(err)
	}
}

// shardOf is the shard of a subject, as far as it needs no search.
func (s *Server) shardOf(about subject) (shard base.ShardID, known bool) {
	switch {
	case about.shard != nil:
		return *about.shard, true
	case about.name != "" || about.topic.IsZero(): // a name that is missing is refused where it is served
		return s.host.ShardOf(about.name), true
	}
	return searching, false
}

func (s *Server) routable(kind wire.Kind, message []byte, shard base.ShardID, j job) routing.Request {
	return routing.Request{
		Kind: kind, Message: message, Shard: shard, Changes: j.changes, ID: j.request,
		Serve: func(ctx context.Context) (answer []byte, err error) {
			defer s.surviveServing(kind, &err)
			return j.serve(ctx, shard)
		},
	}
}

// surviveServing is survive for a request that may be another node's.
func (s *Server) surviveServing(kind wire.Kind, err *error) {
	if cause := recover(); cause != nil {
		s.deps.Logger.Error("request panicked", "kind", kind.String(), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		*err = base.Errorf(base.CodeInternal, kind.String(), "the broker met a bug of its own").WithOutcome(base.Unknown)
	}
}

// openRouter makes the way to other nodes' shards. What it asks about them exists by the time it asks: nothing is routed
// before the doors open.
func (s *Server) openRouter(context.Context) error {
	s.router = routing.New(routing.Options{
		Self: s.id.Node, Replicas: routedReplicas{s}, Peers: routedPeers{s},
		Gossip: s.claimed, Intended: s.intendedVoters, Nodes: s.liveNodes, Address: s.clientAddress,
		Prepare: s.prepareForwarded, Logger: s.deps.Logger, Metrics: s.registry,
	})
	s.router.Start()
	s.gatherPool = newPool("gather", gatherWorkers, gatherQueue)
	s.undo.Push("router", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
		defer cancel()
		s.gatherPool.close(ctx)
		s.router.Close(ctx)
		return nil
	})
	return nil
}

// registerRouting takes the messages by which nodes pass requests on to each other. It comes before p.Start.
func (s *Server) registerRouting(p *peer.Host) {
	p.Register(routing.KindForward, s.router.Receive)
	p.Register(kindGather, s.receiveGather)
}

// prepareForwarded reads a request that another node sent on.
func (s *Server) prepareForwarded(kind wire.Kind, message []byte, shard base.ShardID) (routing.Request, error) {
	prepare, ok := s.routes[kind]
	if !ok {
		return routing.Request{}, base.Errorf(base.CodeUnknownKind, "forward", "request kind %s is not known here", kind)
	}
	if !s.progress.done.Load() { // it may lead shards by now, and cannot serve all that is asked of a leader
		return routing.Request{}, base.Errorf(base.CodeNotAdmitted, "forward", "node %s is starting: %s", s.id.Node, &s.progress)
	}
	s.metrics.request(kind)
	j, err := prepare(message)
	if err != nil {
		return routing.Request{}, err
	}
	if own, known := s.shardOf(j.subject); known && own != shard { // the shard itself would take a topic of another's
		return routing.Request{}, base.Errorf(base.CodeInvalidArgument, "forward", "the request is about shard %s, not %s", own, shard)
	}
	return s.routable(kind, message, shard, j), nil
}

// intendedVoters are a shard's by the ring.
func (s *Server) intendedVoters(shard base.ShardID) []base.NodeID {
	r, _ := s.ringNow()
	return planner.Intended(r, shard, s.cfg.ShardVoters)
}

// leadChanged hears that this node begins or ends to lead a shard. The others hear of it by the gossip.
func (s *Server) leadChanged(shard base.ShardID, leading bool, term uint64) {
	if leading {
		claim := routing.Claim{Leader: s.id.Node, Term: term, Generation: s.host.Generation(shard)}
		s.router.Learn(shard, claim)
		if a := s.members.agent.Load(); a != nil {
			a.Claim(gossip.Claim{Shard: shard, Leader: claim.Leader, Term: claim.Term, Generation: claim.Generation})
		}
	}
	s.router.Wake()
}

// claimed is what the gossip says of who leads a shard.
func (s *Server) claimed(shard base.ShardID) (routing.Claim, bool) {
	a := s.members.agent.Load()
	if a == nil {
		return routing.Claim{}, false
	}
	c, ok := a.ClaimOn(shard)
	return routing.Claim{Leader: c.Leader, Term: c.Term, Generation: c.Generation}, ok
}

func (s *Server) liveNodes() []base.NodeID {
	view := s.view()
	list := make([]base.NodeID, 0, len(view.Nodes))
	for i := range view.Nodes {
		if n := &view.Nodes[i]; n.Admitted && (n.Liveness == topology.Alive || n.Liveness == topology.Suspect) {
			list = append(list, n.ID)
		}
	}
	return list
}

func (s *Server) clientAddress(id base.NodeID) string {
	n, _ := s.view().Node(id)
	return n.Address
}

// routedReplicas and routedPeers let the router be made before what it uses.
type routedReplicas struct{ s *Server }

func (r routedReplicas) Leader(shard base.ShardID) (base.NodeID, uint64) {
	return r.s.host.Leader(shard)
}

func (r routedReplicas) Voters(shard base.ShardID) []base.NodeID { return r.s.host.Voters(shard) }

type routedPeers struct{ s *Server }

func (p routedPeers) Call(ctx context.Context, node base.NodeID, kind peer.Kind, msg []byte) ([]byte, error) {
	if p.s.peers == nil {
		return nil, base.Errorf(base.CodeUnreachable, "call", "node %s is not connected", node)
	}
	return p.s.peers.Call(ctx, node, kind, msg)
}

func (p routedPeers) Liveness() map[base.NodeID]peer.State {
	if p.s.peers == nil {
		return nil
	}
	return p.s.peers.Liveness()
}
