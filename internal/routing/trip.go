package routing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// trip is a request on its way from the node where its client put it.
type trip struct {
	r   *Router
	req Request

	queue     []base.NodeID // to ask in this round
	asked     []base.NodeID // in this round
	widened   bool          // the queue has had everybody who may know
	redirects int           // followed in this round
	ambiguous bool          // a try may have been carried out
	last      error
}

// Do answers a request that a client put to this node, wherever its shard's leader is, within ctx. An error's outcome
// covers all tries.
func (r *Router) Do(ctx context.Context, req Request) ([]byte, error) {
	t := trip{r: r, req: req}
	for began, round := time.Now(), 0; ; round++ {
		changed := r.claims.wait() // before the look, or a change in between would be missed
		t.queue, t.asked, t.widened, t.redirects = r.likeliest(req.Shard), nil, false, 0
		for node, ok := t.next(); ok; node, ok = t.next() {
			if round > 0 || len(t.asked) > 1 {
				r.metrics.retried.Inc()
			}
			a, err := r.try(ctx, req, node, nil)
			if err == nil {
				return a.Message, nil
			}
			if t.final(err) {
				return nil, t.refusal(err)
			}
			if ctx.Err() != nil {
				return nil, t.failure(ctx)
			}
			t.follow(err)
		}
		if time.Since(began) >= leaderWithin || !pause(ctx, round, changed) {
			return nil, t.failure(ctx)
		}
	}
}

// leaderWithin is how long a leader is looked for. Who asks may have less time than this node would take, and is to hear
// that there is none, in place of nothing; with more time he asks again.
const leaderWithin = 3 * time.Second

// next is the node to ask now; false when the round is over.
func (t *trip) next() (base.NodeID, bool) {
	if len(t.queue) == 0 && !t.widened {
		t.queue, t.widened = t.r.others(t.req.Shard, t.asked), true
	}
	if len(t.queue) == 0 {
		return "", false
	}
	node := t.queue[0]
	t.queue, t.asked = t.queue[1:], append(t.asked, node)
	return node, true
}

// final reports whether an error ends the trip.
func (t *trip) final(err error) bool {
	t.last = err
	switch base.OutcomeOf(err) {
	case base.Applied:
		return true
	case base.Unknown:
		if !t.req.repeatable() {
			return true
		}
		t.ambiguous = t.ambiguous || t.req.Changes
	case base.NotApplied:
	}
	return !tryElsewhere(err)
}

// tryElsewhere reports whether another node, or the same one later, may do what this one could not.
func tryElsewhere(err error) bool {
	if errors.Is(err, errMoved) {
		return true
	}
	switch base.CodeOf(err) {
	case base.CodeNotLeader, base.CodeNoLeader, base.CodeShardNotFound, base.CodeUnreachable, base.CodeShuttingDown,
		base.CodeNotAdmitted, base.CodeCanceled, base.CodeUnknownKind:
		return true
	}
	return false
}

// follow puts the node in front that the refusal, or a newer claim, names.
func (t *trip) follow(err error) {
	var e *base.Error
	var next base.NodeID
	if errors.As(err, &e) {
		next = e.Redirect.Node
	}
	if c, ok := t.r.Leader(t.req.Shard); ok && !slices.Contains(t.asked, c.Leader) {
		next = c.Leader
	}
	if next == "" || t.redirects >= MaxHops || slices.Contains(t.asked, next) {
		return
	}
	t.redirects++
	t.queue = append([]base.NodeID{next}, slices.DeleteFunc(t.queue, func(n base.NodeID) bool { return n == next })...)
}

// refusal is an answer to keep. A retry is recognised by its request id where the change is committed. What is checked
// before that (whether there is a topic, nodes enough, time left) may have become wrong by an earlier try, or since.
func (t *trip) refusal(err error) error {
	if !t.ambiguous || base.OutcomeOf(err) != base.NotApplied {
		return err
	}
	switch code := base.CodeOf(err); code {
	case base.CodeTopicExists, base.CodeInvalidArgument, base.CodeInvalidTopicName, base.CodeDenied:
		return err
	default:
		return base.Wrap(code, t.req.Kind.String(), err).WithOutcome(base.Unknown)
	}
}

// failure is what to say when the time is up.
func (t *trip) failure(ctx context.Context) error {
	outcome := base.NotApplied
	if t.ambiguous {
		outcome = base.Unknown
	}
	op := t.req.Kind.String()
	if t.last == nil {
		return base.Errorf(base.CodeNoLeader, op, "no node is known that could lead shard %s", t.req.Shard).WithOutcome(outcome)
	}
	code := base.CodeOf(t.last)
	if code == base.CodeCanceled { // ours, of a try that was moved
		code = base.CodeTimeout
	}
	e := base.Errorf(code, op, "shard %s was not reached in time: %w", t.req.Shard, t.last).WithOutcome(outcome)
	e.Redirect = t.r.Redirect(t.req.Shard)
	if errors.Is(ctx.Err(), context.Canceled) {
		e.Code = base.CodeCanceled
	}
	return e
}

// pass is what a node does with a request that another one sent it: serve it, or send it on once.
func (r *Router) pass(ctx context.Context, req Request, path []base.NodeID) (reply, error) {
	const op = "forward"
	leader, ok := r.Leader(req.Shard)
	switch {
	case !ok:
		return reply{}, base.Errorf(base.CodeNoLeader, op, "node %s knows of nobody who leads shard %s", r.o.Self, req.Shard)
	case leader.Leader == r.o.Self:
		return r.try(ctx, req, r.o.Self, path)
	case slices.Contains(path, leader.Leader):
		// Whom we believe in has just told the contrary by sending it here.
		r.claims.doubt(req.Shard, leader)
		return reply{}, base.Errorf(base.CodeNoLeader, op, "node %s knows of nobody else who leads shard %s", r.o.Self, req.Shard)
	case len(path) >= MaxHops:
		return reply{}, base.Errorf(base.CodeNotLeader, op, "node %s does not lead shard %s", r.o.Self, req.Shard).WithRedirect(r.Redirect(req.Shard))
	}
	return r.try(ctx, req, leader.Leader, path)
}
