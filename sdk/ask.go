package sdk

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// unreachableRounds is how often ask tries every broker it knows before it says that none answers. It gives up
// long before the caller's deadline then: somebody is waiting to be told that the address is wrong.
const unreachableRounds = 3

// minPatience is how long one broker gets at least before another is asked: longer than it waits for the leaders of all
// shards before it answers without some of them. One that is silent altogether is left much earlier.
const minPatience = 4 * time.Second

const (
	// suspectAfter is how long a request waits before the connection is looked at.
	suspectAfter = 500 * time.Millisecond
	// silentAfter is how long that look may take before another broker is asked.
	silentAfter = 500 * time.Millisecond
)

// connectPatience is how long a connection may take before another broker is asked.
const connectPatience = time.Second

// maxHops is how many redirects are followed before the brokers are asked in turn again.
const maxHops = 3

// ask sends a request that any broker can take (each forwards to whoever decides) and decodes the answer. It goes
// from broker to broker while the answers say that another, or a later, try may do better, until ctx ends. A
// request that changes something must carry a request id, which makes the retries one change.
func (c *Client) ask(ctx context.Context, kind wire.Kind, req, resp any) error {
	a := asking{c: c, kind: kind, op: kindName(kind), msg: wire.Encode(req), topic: topicOf(req)}
	answer, err := a.run(ctx)
	if err != nil {
		return err
	}
	if err := wire.Decode(answer.Message, resp); err != nil {
		e := about(a.op, err)
		if changes(kind) {
			e.Outcome = base.Applied // it was not refused
		}
		return e
	}
	node, addresses := decider(resp)
	c.brokers.learn(addresses)
	c.leaders.learn(a.topic, node)
	return nil
}

// asking is one ask under way.
type asking struct {
	c     *Client
	kind  wire.Kind
	op    string
	msg   []byte
	topic string // that it is about; empty when it is about none

	queue    []*broker // still to ask in this round
	rounds   int       // begun
	hops     int       // redirects followed in this round
	waits    int       // for a broker that is busy
	answered bool      // somebody answered, if only to refuse
	sent     bool      // a try may have been carried out
	last     error
}

func (a *asking) run(ctx context.Context) (mux.Response, error) {
	for {
		b, ok := a.next(ctx)
		if !ok {
			return mux.Response{}, a.failure(ctx)
		}
		conn, err := a.connect(ctx, b)
		if err == nil {
			var answer mux.Response
			answer, err = a.try(ctx, b, conn)
			if err == nil {
				return answer, nil
			}
			a.sent = a.sent || changes(a.kind) && ambiguous(err)
			a.answered = true
			if a.sent && !repeatable(a.kind) {
				return mux.Response{}, about(a.op, err).WithOutcome(base.Unknown)
			}
		}
		if ctx.Err() != nil {
			return mux.Response{}, a.failure(ctx)
		}
		if conn != nil || !a.answered {
			a.last = err // what a broker said tells more than that another is not there
		}
		if aboutOneNode(a.kind) && base.CodeOf(err) == base.CodeUnreachable && conn != nil && b.live() == conn {
			return mux.Response{}, a.refusal(err) // it is the node asked about that was not reached: this broker has answered
		}
		switch a.remedy(err) {
		case waitHere:
			a.queue = append([]*broker{b}, a.queue...)
			a.waits++
			if !task.Pause(ctx, requestBackoff.wait(a.waits)) {
				return mux.Response{}, a.failure(ctx)
			}
		case goElsewhere:
			a.correct(b, err)
		case giveUp, resequence, forgotten, fenced:
			return mux.Response{}, a.refusal(err)
		}
	}
}

// connect waits for a connection to one broker, but not for long while there are others.
func (a *asking) connect(ctx context.Context, b *broker) (*mux.Conn, error) {
	if len(a.queue) == 0 {
		return b.connect(ctx)
	}
	return b.connectWithin(ctx, connectPatience)
}

// correct takes from an error who decides about the topic, and asks that one next. Two brokers that each believe the
// other in charge must not send us back and forth without a pause.
func (a *asking) correct(asked *broker, err error) {
	bs := a.c.brokers
	if node := a.c.leaders.of(a.topic); node != "" && bs.address(node) == asked.addr {
		a.c.leaders.forget(a.topic, node)
	}
	to := bs.follow(redirect(err))
	if to == nil || a.hops >= maxHops {
		return
	}
	a.hops++
	a.c.leaders.learn(a.topic, redirect(err).Node)
	a.first(to)
}

// first puts a broker in front of those still to ask.
func (a *asking) first(b *broker) {
	a.queue = append([]*broker{b}, slices.DeleteFunc(a.queue, func(q *broker) bool { return q == b })...)
}

// refusal is an answer that no other broker would change. A retry is recognised by its request id where the change is
// decided; one that was refused before that says nothing about an earlier try, which may even be why.
func (a *asking) refusal(err error) *base.Error {
	e := about(a.op, err)
	if a.sent && undecided(a.kind, e.Code) {
		e.Outcome = base.Unknown
	}
	return e
}

// undecided reports whether a request may have been refused with this code by what a broker saw on the way, which can be
// otherwise at another time: its view of the nodes, or that there is no such topic.
func undecided(k wire.Kind, code base.Code) bool {
	switch code {
	case base.CodeTopicNotFound, base.CodeNodeNotFound, base.CodeNotEnoughNodes:
		return true
	case base.CodePreconditionFailed:
		return k == wire.KindChangeNode
	}
	return false
}

// try asks one broker. It may take half of what is left of the deadline, so that one that does not answer at all
// leaves time to ask another.
func (a *asking) try(ctx context.Context, b *broker, conn *mux.Conn) (mux.Response, error) {
	patience := minPatience
	if deadline, has := ctx.Deadline(); has {
		patience = max(patience, time.Until(deadline)/2)
		if !repeatable(a.kind) {
			patience = time.Until(deadline) // there is no other try to leave time for
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A broker may take long to answer, because its shard elects a leader; one that has vanished is found out early.
	probe := b.suspectSoon(conn)
	defer probe.Stop()
	var silent atomic.Bool
	if repeatable(a.kind) {
		leave := time.AfterFunc(suspectAfter+silentAfter, a.c.cfg.guard.Func(func() {
			if b.suspected.Load() {
				silent.Store(true)
				cancel()
			}
		}))
		defer leave.Stop()
	}
	answer, err := conn.Call(ctx, a.kind, a.msg, nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		b.suspect(conn)
	case err != nil && (silent.Load() || b.silent.Load() == conn):
		silence := base.Errorf(base.CodeTimeout, a.op, "the broker at %s does not answer", b.addr).WithOutcome(base.OutcomeOf(err))
		silence.Err = context.DeadlineExceeded // of the probe
		err = silence
	}
	return answer, err
}

// remedy is remedyFor, but for a try of ours that ran out of time: the next broker may answer.
func (a *asking) remedy(err error) remedy {
	if errors.Is(err, context.DeadlineExceeded) {
		return goElsewhere
	}
	return remedyFor(err)
}

// next is the broker to ask now. Between rounds it waits, and gives up when nobody ever answered.
func (a *asking) next(ctx context.Context) (*broker, bool) {
	if len(a.queue) == 0 {
		if a.rounds >= unreachableRounds && !a.answered || !task.Pause(ctx, requestBackoff.wait(a.rounds)) {
			return nil, false
		}
		a.rounds++
		a.hops = 0
		a.queue = a.c.brokers.candidates()
		if addr := a.c.brokers.address(a.c.leaders.of(a.topic)); addr != "" {
			if b := a.c.brokers.at(addr); !b.resting() && !b.doubted() {
				a.first(b)
			}
		}
	}
	return a.pick(), true
}

// pick takes the first broker of the queue that is connected: nobody waits for a connection while there is one. Whoever
// comes before it is connected for the next time. Without one it is the first that was not out of reach just now.
func (a *asking) pick() *broker {
	i := slices.IndexFunc(a.queue, (*broker).usable)
	if i > 0 && !a.queue[0].resting() {
		a.queue[0].connectSoon()
	}
	if i < 0 {
		i = max(0, slices.IndexFunc(a.queue, func(b *broker) bool { return !b.resting() }))
	}
	b := a.queue[i]
	a.queue = slices.Delete(a.queue, i, i+1)
	return b
}

// failure is what to tell the caller when no broker gave an answer to keep.
func (a *asking) failure(ctx context.Context) error {
	outcome := base.NotApplied
	if a.sent {
		outcome = base.Unknown
	}
	if ctx.Err() != nil && (a.last == nil || a.sent) {
		return contextError(ctx, a.op, outcome)
	}
	if a.last == nil {
		return errClosed("client")
	}
	return about(a.op, a.last).WithOutcome(outcome)
}

// changes reports whether a request of this kind leaves something behind. One that only looks cannot have an
// unknown outcome.
func changes(k wire.Kind) bool {
	switch k {
	case wire.KindCreateTopic, wire.KindAlterTopic, wire.KindDeleteTopic, wire.KindOpenProducer,
		wire.KindChangeNode, wire.KindTransferShard, wire.KindBalanceShards, wire.KindRecoverShard,
		wire.KindSealSegment, wire.KindForceSealSegment:
		return true
	}
	return false
}

// aboutOneNode reports whether a request of this kind is for one node to answer, whichever broker takes it.
func aboutOneNode(k wire.Kind) bool { return k == wire.KindDescribeNode || k == wire.KindNodeRing }

// repeatable reports whether a request whose fate is open may be sent again, which a request id makes one change.
// Those about leaderships have none: who sends them again decides on what he sees then.
func repeatable(k wire.Kind) bool {
	switch k {
	case wire.KindTransferShard, wire.KindBalanceShards, wire.KindRecoverShard:
		return false
	}
	return true
}

// kindName turns create_topic into "create topic".
func kindName(k wire.Kind) string {
	name := []byte(k.String())
	for i, ch := range name {
		if ch == '_' {
			name[i] = ' '
		}
	}
	return string(name)
}
