package shard

import (
	"context"

	"github.com/hashicorp/raft"
)

// stand lets our replica stand for election without a pre-vote: a majority has said that it may. Raft obeys a
// TimeoutNow in every state, so the state is looked at again right before.
func (g *group) stand(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, standTimeout)
	defer cancel()
	if g.raft.State() == raft.Candidate {
		g.giveUpCandidacy(ctx)
	}
	if g.raft.State() != raft.Follower || !g.votes() {
		return
	}
	if err := g.transport.timeoutNow(ctx); err != nil {
		g.host.o.Logger.Debug("replica did not stand for election", "shard", g.id.String(), "error", err)
	}
}

// giveUpCandidacy makes a candidate a follower of the next term, as a question for a vote from another voter would: raft
// repeats an election that came to nothing only after its timeout. The question names a log that is behind every other,
// so it gets no vote.
func (g *group) giveUpCandidacy(ctx context.Context) {
	for _, s := range g.servers() {
		if s.ID == g.serverID || s.Suffrage != raft.Voter {
			continue
		}
		_, _ = g.transport.inbox.ask(ctx, raft.RPC{Command: &raft.RequestVoteRequest{
			RPCHeader: header(s.ID, s.Address), Term: g.raft.CurrentTerm() + 1, LeadershipTransfer: true,
		}})
		return
	}
}
