package routing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// errMoved ends a try whose node has lost the shard, or cannot be heard any more.
var errMoved = errors.New("another node may lead the shard now")

// try asks one node, or serves the request here, and takes from what comes back who leads.
func (r *Router) try(ctx context.Context, req Request, node base.NodeID, path []base.NodeID) (reply, error) {
	claim, _ := r.Leader(req.Shard)
	if claim.Leader != node {
		claim = Claim{}
	}
	tryCtx, done := r.begin(ctx, req, node, claim)
	a, err := r.answer(tryCtx, req, node, path)
	done()
	switch {
	case err == nil:
		r.claims.learn(req.Shard, Claim{Leader: a.Leader, Term: a.Term, Generation: a.Generation})
	case ctx.Err() == nil && errors.Is(context.Cause(tryCtx), errMoved):
		// Whatever the try itself came to, nobody took the request's time away.
		err = base.Errorf(base.CodeUnreachable, "forward", "node %s: %w", node, errMoved).WithOutcome(base.OutcomeOf(err))
		r.claims.doubt(req.Shard, claim)
	case tryElsewhere(err) && claim.Leader != "":
		r.claims.doubt(req.Shard, claim)
	}
	return a, err
}

func (r *Router) answer(ctx context.Context, req Request, node base.NodeID, path []base.NodeID) (reply, error) {
	if node == r.o.Self {
		message, err := req.Serve(ctx)
		a := reply{Leader: node, Message: message}
		if c, ok := r.Leader(req.Shard); ok && c.Leader == node {
			a.Term, a.Generation = c.Term, c.Generation
		}
		return a, err
	}
	if r.o.Peers == nil {
		return reply{}, base.Errorf(base.CodeUnreachable, "forward", "node %s is not connected", node)
	}
	path = append(path[:len(path):len(path)], r.o.Self)
	b, err := r.o.Peers.Call(ctx, node, KindForward, encode(envelope{
		Kind: req.Kind, Shard: req.Shard, Path: path, BudgetMs: budget(ctx), Message: req.Message,
	}))
	r.metrics.forwarded[resultOf(err)].Inc()
	if err != nil {
		return reply{}, err
	}
	var a reply
	if err := decode(b, &a); err != nil {
		return reply{}, base.Wrap(base.CodeInternal, "forward", err).WithOutcome(base.Applied) // it was not refused
	}
	return a, nil
}

// attempt is one try under way.
type attempt struct {
	req       *Request
	node      base.NodeID
	claim     Claim // that led to the node; zero when none did
	reachable bool  // the node was, when the try began
	cancel    context.CancelCauseFunc
}

// watcher ends attempts that have become pointless.
type watcher struct {
	mark chan struct{} // of capacity one: look now

	mu       sync.Mutex
	attempts map[*attempt]struct{}
}

// watchEvery is how often the attempts under way are looked at without a mark.
const watchEvery = 100 * time.Millisecond

func (w *watcher) init() {
	w.mark, w.attempts = make(chan struct{}, 1), make(map[*attempt]struct{})
}

func (w *watcher) wake() {
	select {
	case w.mark <- struct{}{}:
	default:
	}
}

func (w *watcher) list() []*attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]*attempt, 0, len(w.attempts))
	for a := range w.attempts {
		list = append(list, a)
	}
	return list
}

// begin puts a try under watch. A request that cannot be repeated is left alone: to end it would only make it unknown.
func (r *Router) begin(ctx context.Context, req Request, node base.NodeID, claim Claim) (context.Context, func()) {
	if !req.repeatable() || r.o.Peers == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{req: &req, node: node, claim: claim, cancel: cancel}
	a.reachable = node != r.o.Self && r.o.Peers.Liveness()[node].Status == peer.Reachable
	w := &r.watcher
	w.mu.Lock()
	w.attempts[a] = struct{}{}
	first := len(w.attempts) == 1
	w.mu.Unlock()
	if first {
		w.wake()
	}
	return ctx, func() {
		w.mu.Lock()
		delete(w.attempts, a)
		w.mu.Unlock()
		cancel(nil)
	}
}

// watch looks at the attempts under way whenever something changed, and now and then. With none it sleeps.
func (r *Router) watch() {
	for {
		var again <-chan time.Time
		if list := r.watcher.list(); len(list) > 0 {
			r.endPointless(list)
			again = time.After(watchEvery)
		}
		select {
		case <-r.watcher.mark:
		case <-again:
		case <-r.stop:
			return
		}
	}
}

func (r *Router) endPointless(list []*attempt) {
	var liveness map[base.NodeID]peer.State
	if r.o.Peers != nil {
		liveness = r.o.Peers.Liveness()
	}
	leaders := make(map[base.ShardID]Claim)
	for _, a := range list {
		c, seen := leaders[a.req.Shard]
		if !seen {
			c, _ = r.Leader(a.req.Shard)
			leaders[a.req.Shard] = c
		}
		superseded := a.claim.Leader != "" && c.Leader != a.node && c.newerThan(a.claim)
		if superseded || a.reachable && liveness[a.node].Status != peer.Reachable {
			a.cancel(errMoved)
		}
	}
}
