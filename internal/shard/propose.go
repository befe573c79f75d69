package shard

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// Propose has one command committed and applied, and returns what came of it. A refusal by the state machine is a
// Result with a code, not an error. An error's outcome says whether the command may still take effect: after a
// timeout, a lost leadership or a shutdown that is unknown, and only a command with a request id is safe to repeat.
func (h *Host) Propose(ctx context.Context, shard base.ShardID, cmd meta.Command) (meta.Result, error) {
	const op = "propose"
	g, err := h.group(shard)
	if err != nil {
		return meta.Result{}, err
	}
	if cmd.TimeMs == 0 {
		cmd.TimeMs = time.Now().UnixMilli()
	}
	b, err := meta.EncodeCommand(&cmd)
	if err != nil {
		return meta.Result{}, base.Wrap(base.CodeInvalidArgument, op, err)
	}
	if len(b) > maxCommand {
		return meta.Result{}, base.Errorf(base.CodeInvalidArgument, op, "the command has %d bytes, at most %d are allowed", len(b), maxCommand)
	}
	select {
	case h.inFlight <- struct{}{}:
		defer func() { <-h.inFlight }()
	default:
		return meta.Result{}, base.Errorf(base.CodeBusy, op, "%d commands are being committed already", cap(h.inFlight))
	}
	began := time.Now()
	result, err := g.propose(ctx, b)
	h.metrics.proposed(time.Since(began), err)
	return result, err
}

// maxCommand keeps an entry small enough that a batch of them is one frame of the log. The largest commands (256 rolls,
// 1,024 ranges) have some 100 KiB.
const maxCommand = 1 << 20

// applied is what the fsm answers a proposal with.
type applied struct {
	result meta.Result
	err    error // the entry could not be decoded
}

func (g *group) propose(ctx context.Context, command []byte) (meta.Result, error) {
	if err := ctx.Err(); err != nil {
		return meta.Result{}, base.Wrap(base.CodeCanceled, "propose", err)
	}
	if err := g.hold.wait(ctx); err != nil {
		return meta.Result{}, err
	}
	if g.readyTerm.Load() == 0 {
		return meta.Result{}, g.notLeader("propose")
	}
	var future raft.ApplyFuture
	err := g.wait(ctx, func() raft.Future {
		future = g.raft.Apply(command, 0)
		return future
	})
	if err != nil {
		return meta.Result{}, g.outcome(ctx, err)
	}
	a, ok := future.Response().(applied)
	if !ok {
		return meta.Result{}, base.Errorf(base.CodeInternal, "propose", "unexpected answer %T", future.Response())
	}
	return a.result, a.err
}

// outcome classifies raft's errors by what they say about the command.
func (g *group) outcome(ctx context.Context, err error) error {
	const op = "propose"
	unknown := func(code base.Code) error { return base.Wrap(code, op, err).WithOutcome(base.Unknown) }
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return g.notLeader(op) // refused before it entered the log
	case errors.Is(err, raft.ErrAbortedByRestore):
		return base.Wrap(base.CodeBusy, op, err)
	case ctx.Err() != nil:
		return unknown(base.CodeTimeout)
	case errors.Is(err, raft.ErrRaftShutdown):
		return unknown(base.CodeShuttingDown)
	}
	return unknown(base.CodeNoLeader) // ErrLeadershipLost, ErrEnqueueTimeout, an error of the log
}

// notLeader names the leader, where one is known.
func (g *group) notLeader(op string) error {
	if node, _ := g.leader(); node != "" && node != g.host.o.Node {
		return base.Errorf(base.CodeNotLeader, op, "shard %s is led by node %s", g.id, node).WithRedirect(base.Redirect{Node: node})
	}
	return base.Errorf(base.CodeNoLeader, op, "shard %s has no leader", g.id)
}
