package sdk

import (
	"context"
	"errors"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// remedy is what to do about an error of a request.
type remedy uint8

const (
	// giveUp: the same request will fail again, wherever it goes.
	giveUp remedy = iota
	// waitHere: the same broker will take it later.
	waitHere
	// goElsewhere: another broker may take it now; the route may be old.
	goElsewhere
	// resequence: the broker lacks an earlier batch of this producer.
	resequence
	// forgotten: the broker does not know this producer.
	forgotten
	// fenced: another producer of the same name has taken over.
	fenced
)

// remedyFor is the one place where errors are classified. What it says does not depend on the outcome: whether a
// retry is *safe* is for the caller to know, who has a sequence number or a request id, or not.
func remedyFor(err error) remedy {
	switch base.CodeOf(err) {
	case base.CodeBusy, base.CodeDiskFull, base.CodeTimeout, base.CodeBehind, base.CodeTopicDeleting:
		return waitHere
	case base.CodeUnreachable, base.CodeShuttingDown, base.CodeNotAdmitted, base.CodeCanceled:
		// Canceled comes from the broker here, which dropped the request; the caller's own context is looked at
		// before any answer.
		return goElsewhere
	case base.CodeNotLeader, base.CodeNoLeader, base.CodeNotReplica, base.CodeSegmentMoved, base.CodeRangeMoved, base.CodeFenced:
		return goElsewhere
	case base.CodeCorruptData:
		// One copy is damaged. Another replica's may be whole.
		return goElsewhere
	case base.CodeOutOfOrder:
		return resequence
	case base.CodeUnknownProducer:
		return forgotten
	case base.CodeProducerFenced:
		return fenced
	}
	// A code that this version does not know says in its own words whether trying again makes sense.
	var e *base.Error
	if errors.As(err, &e) && e.Code.Info().Retryable {
		return waitHere
	}
	return giveUp
}

// ambiguous reports whether the request that failed with err may have been carried out all the same.
func ambiguous(err error) bool { return base.OutcomeOf(err) == base.Unknown }

// redirect is the node that err names as the one to ask.
func redirect(err error) base.Redirect {
	var e *base.Error
	if errors.As(err, &e) {
		return e.Redirect
	}
	return base.Redirect{}
}

// contextError says that the caller's context ended while op was under way. errors.Is finds the context's own
// error in it.
func contextError(ctx context.Context, op string, outcome base.Outcome) *base.Error {
	code := base.CodeCanceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = base.CodeTimeout
	}
	return &base.Error{Code: code, Op: op, Msg: context.Cause(ctx).Error(), Outcome: outcome, Err: ctx.Err()}
}

// about is err told as the failure of op. What a lower layer called the same step is not said twice: "find topic
// orders: topic orders not found", not "find topic orders: route: route: …".
func about(op string, err error) *base.Error {
	var e *base.Error
	if !errors.As(err, &e) {
		return base.Wrap(base.CodeInternal, op, err)
	}
	w := *e
	w.Op, w.Msg, w.Err = op, err.Error(), err
	if err == error(e) && (e.Op == op || steps[e.Op]) {
		w.Msg = e.Msg
	}
	return &w
}

// steps are the operations whose names say nothing beside that of what they are a step of: the requests.
var steps = func() map[string]bool {
	names := map[string]bool{"send": true, "append": true}
	for _, k := range []wire.Kind{
		wire.KindProduce, wire.KindFetch, wire.KindListOffsets, wire.KindProducerState, wire.KindRoute, wire.KindLocate,
		wire.KindCreateTopic, wire.KindAlterTopic, wire.KindDeleteTopic, wire.KindListTopics, wire.KindDescribeTopic,
		wire.KindOpenProducer, wire.KindClusterStatus, wire.KindClusterHealth, wire.KindDescribeNode,
		wire.KindListNodes, wire.KindNodeRing, wire.KindReach, wire.KindChangeNode, wire.KindWatchNode, wire.KindWatchLogs,
		wire.KindListShards, wire.KindDescribeShard, wire.KindLocateShard, wire.KindTransferShard, wire.KindBalanceShards,
		wire.KindRecoverShard, wire.KindListSegments, wire.KindDescribeSegment, wire.KindSealSegment,
		wire.KindForceSealSegment,
	} {
		names[k.String()], names[kindName(k)] = true, true
	}
	return names
}()

// dialError makes sure that a connection that never came to be reads as unreachable and not applied. What the
// broker itself answered to the handshake (another cluster, no common version) keeps its code.
func dialError(addr string, err error) error {
	e := about("connect to "+addr, err)
	e.Outcome = base.NotApplied
	if e.Code == base.CodeTimeout || e.Code == base.CodeCanceled || e.Code == base.CodeInternal {
		e.Code = base.CodeUnreachable
	}
	return e
}

// hintOf is the next step that err suggests.
func hintOf(err error) string {
	var e *base.Error
	if errors.As(err, &e) {
		return e.HintText()
	}
	return base.CodeInternal.Info().Hint
}
