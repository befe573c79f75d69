package shard

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// Register makes the host hear the messages between replicas. It comes before p.Start.
func (h *Host) Register(p *peer.Host) {
	p.Register(kindAppend, h.onAppend)
	p.Register(kindVote, h.onVote)
	p.Register(kindPreVote, h.onVote)
	p.Register(kindTimeoutNow, h.onTimeoutNow)
	p.Register(kindHeartbeats, h.onHeartbeats)
	p.Register(kindChunk, p.Queued(chunkQueue, h.onChunk))
	p.Register(kindHost, p.Queued(hostQueue, h.onHost))
	p.Register(kindDrop, p.Queued(hostQueue, h.onDrop))
	p.Register(kindWatch, h.onWatch)
	p.Register(kindSeat, p.Queued(seatQueue, h.onSeat))
	p.Register(kindReport, p.Queued(hostQueue, h.onReport))
	p.Register(kindRebuild, p.Queued(hostQueue, h.onRebuild))
}

// admit finds the replica that a message is for. newer is set instead when the sender's group is of the past.
func (h *Host) admit(e envelope) (g *group, newer uint64, err error) {
	const op = "ask replica"
	h.mu.RLock()
	g = h.groups[e.Shard]
	stub, known := find(h.manifest.Stubs, e.Shard)
	h.mu.RUnlock()
	switch {
	case g == nil && known && e.Generation < stub.Generation:
		return nil, stub.Generation, nil
	case g == nil || !g.up.Load():
		return nil, 0, base.Errorf(base.CodeShardNotFound, op, "shard %s is not on this node", e.Shard)
	case e.To != h.o.Meta:
		return nil, 0, base.Errorf(base.CodePreconditionFailed, op, "server %s is not here any more: its metadata was lost or replaced", e.To)
	case e.Generation < g.hosted.Generation:
		return nil, g.hosted.Generation, nil
	case e.Generation > g.hosted.Generation:
		h.outdated(g, e.Generation)
		return nil, 0, base.Errorf(base.CodeShardNotFound, op, "shard %s of generation %d is not on this node", e.Shard, e.Generation)
	}
	return g, 0, nil
}

// from is raft's header for a message that came.
func from(r *peer.Request, e envelope) raft.RPCHeader {
	return header(raft.ServerID(e.From.String()), raft.ServerAddress(r.From.Node))
}

func (h *Host) onAppend(_ context.Context, r *peer.Request) {
	var m appendMessage
	if err := decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	entries, err := decodeEntries(m.Entries)
	if err != nil {
		r.Fail(err)
		return
	}
	request := &raft.AppendEntriesRequest{
		RPCHeader: from(r, m.Envelope), Term: m.Envelope.Term,
		PrevLogEntry: m.PrevIndex, PrevLogTerm: m.PrevTerm, Entries: entries, LeaderCommitIndex: m.Commit,
	}
	h.deliver(m.Envelope, len(r.Body), request, func(answer any, newer uint64, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(encode(appended(answer, newer)))
	})
}

// deliver passes a request on to its replica. done gets the answer, or a newer generation, or an error.
func (h *Host) deliver(e envelope, size int, command any, done func(answer any, newer uint64, err error)) {
	g, newer, err := h.admit(e)
	if g == nil {
		done(nil, newer, err)
		return
	}
	g.transport.inbox.put(&delivery{rpc: raft.RPC{Command: command}, size: size, done: func(answer any, err error) {
		done(answer, 0, err)
	}})
}

// appended turns raft's answer into ours.
func appended(answer any, newer uint64) appendAnswer {
	a, ok := answer.(*raft.AppendEntriesResponse)
	if !ok {
		return appendAnswer{Verdict: verdict{Newer: newer}}
	}
	return appendAnswer{Verdict: verdict{Term: a.Term}, LastLog: a.LastLog, Success: a.Success, AtOnce: a.NoRetryBackoff}
}

// onVote takes both kinds of question for a vote. Raft gives its vote to anybody as long as it has no configuration; a
// replica that was just begun must not, since it may have voted before it was lost.
func (h *Host) onVote(_ context.Context, r *peer.Request) {
	var m voteMessage
	if err := decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	g, _, _ := h.admit(m.Envelope)
	switch {
	case g == nil: // deliver says why
	case !g.configured():
		r.Fail(base.Errorf(base.CodePreconditionFailed, "vote", "shard %s has no configuration here yet", g.id))
		return
	case h.rolledBackStart(g, r.From.Node, r.From.Boot, r.From.Instance):
		r.Fail(base.Errorf(base.CodeNotAdmitted, "vote", "node %s stands with an older image of its disk: start %d", r.From.Node, r.From.Boot))
		return
	}
	sender := from(r, m.Envelope)
	if g != nil && r.Kind == kindVote && !g.hasVoter(raft.ServerID(sender.ID)) && g.isBehind(m.LastTerm, m.LastIndex) {
		// Raft refuses whom it does not find among the voters of its configuration. But a configuration that is behind says nothing of the
		// newer one: with the leader lost, the only replica that has it would never be elected.
		sender.ID = nil
	}
	var request any = &raft.RequestVoteRequest{
		RPCHeader: sender, Term: m.Envelope.Term,
		LastLogIndex: m.LastIndex, LastLogTerm: m.LastTerm, LeadershipTransfer: m.Forced,
	}
	if r.Kind == kindPreVote {
		request = &raft.RequestPreVoteRequest{
			RPCHeader: sender, Term: m.Envelope.Term, LastLogIndex: m.LastIndex, LastLogTerm: m.LastTerm,
		}
	}
	h.deliver(m.Envelope, len(r.Body), request, func(answer any, newer uint64, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		v := voteAnswer{Verdict: verdict{Newer: newer}}
		switch a := answer.(type) {
		case *raft.RequestVoteResponse:
			v = voteAnswer{Verdict: verdict{Term: a.Term}, Granted: a.Granted}
		case *raft.RequestPreVoteResponse:
			v = voteAnswer{Verdict: verdict{Term: a.Term}, Granted: a.Granted}
		}
		r.Reply(encode(v))
	})
}

// onTimeoutNow lets the leader hand its leadership over. Raft obeys whoever it is, so the sender must be the leader of
// the term that this replica knows, and this replica a voter.
func (h *Host) onTimeoutNow(_ context.Context, r *peer.Request) {
	var m timeoutMessage
	if err := decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	if h.stewards.leaving.Load() {
		r.Fail(base.Errorf(base.CodeShuttingDown, "take over", "node %s is giving its own leaderships away", h.o.Node))
		return
	}
	if g, _, _ := h.admit(m.Envelope); g != nil {
		if leader, term := g.leader(); leader != r.From.Node || term != m.Envelope.Term || !g.votes() {
			r.Fail(base.Errorf(base.CodePreconditionFailed, "take over", "shard %s is led by %q in term %d here, and not handed over by node %s in term %d",
				g.id, leader, term, r.From.Node, m.Envelope.Term))
			return
		}
	}
	request := &raft.TimeoutNowRequest{RPCHeader: from(r, m.Envelope)}
	h.deliver(m.Envelope, len(r.Body), request, func(_ any, newer uint64, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(encode(timeoutAnswer{Verdict: verdict{Newer: newer}}))
	})
}

// onHeartbeats hands each heartbeat to its group. The answer leaves when all have spoken, or after beatPatience without
// those that have not: a group that waits for its disk must not make the others look dead.
func (h *Host) onHeartbeats(_ context.Context, r *peer.Request) {
	var m heartbeatsMessage
	if err := decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	if len(m.Beats) == 0 || len(m.Beats) > beatsAtMost {
		r.Fail(base.Errorf(base.CodeCorruptFrame, "take heartbeats", "%d heartbeats", len(m.Beats)))
		return
	}
	h.watch.hear(r.From.Node, m.Still)
	c := newCollector(r, len(m.Beats))
	for i, e := range m.Beats {
		request := &raft.AppendEntriesRequest{RPCHeader: from(r, e), Term: e.Term}
		h.deliver(e, 0, request, func(answer any, newer uint64, err error) {
			a := heartbeatAnswer{Answer: appended(answer, newer)}
			if err != nil {
				a.Code = base.CodeOf(err)
			}
			c.put(i, a)
		})
	}
}

// collector gathers the answers to one message of heartbeats.
type collector struct {
	request *peer.Request
	timer   *time.Timer

	mu      sync.Mutex
	answers []heartbeatAnswer
	missing int
	sent    bool
}

func newCollector(r *peer.Request, n int) *collector {
	c := &collector{request: r, answers: make([]heartbeatAnswer, n), missing: n}
	for i := range c.answers {
		c.answers[i].Code = base.CodeTimeout
	}
	c.timer = time.AfterFunc(beatPatience, c.send)
	return c
}

func (c *collector) put(i int, a heartbeatAnswer) {
	c.mu.Lock()
	if !c.sent {
		c.answers[i] = a
	}
	c.missing--
	last := c.missing == 0
	c.mu.Unlock()
	if last {
		c.timer.Stop()
		c.send()
	}
}

func (c *collector) send() {
	c.mu.Lock()
	again := c.sent
	c.sent = true
	c.mu.Unlock()
	if !again { // nobody writes to answers any more
		c.request.Reply(encode(heartbeatsAnswer{Answers: c.answers}))
	}
}
