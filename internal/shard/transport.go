package shard

import (
	"context"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

const (
	appendPatience = 10 * time.Second // for entries: the other side's disk may be slow
	votePatience   = 2 * time.Second
	entriesLimit   = 4 << 20                // of entries in one message, unless one alone is larger
	retryPatience  = 500 * time.Millisecond // between tries to reach a replica that is not there
)

// transport is one group's raft.Transport: the messages between its replicas, over the connections that all groups of
// two nodes share. Everything that raft asks of a transport is in this file; the other direction is in receive.go.
//
// A raft server's address is its node's id. Requests name both servers by their id: a replica never answers for another
// that its node had before.
type transport struct {
	group *group
	inbox *inbox
}

func newTransport(g *group) *transport { return &transport{group: g, inbox: newInbox(g.id)} }

// Consumer is where raft takes its requests from.
func (t *transport) Consumer() <-chan raft.RPC { return t.inbox.consumer }

// LocalAddr is the node's id.
func (t *transport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.group.host.o.Node) }

// EncodePeer is how an address stands in a message.
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer is its inverse.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler is a no-op on purpose: raft 1.8.0 runs that handler beside its main loop, and a heartbeat
// handled concurrently with an append can make logs diverge (hashicorp/raft #695). Heartbeats queue like the rest.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline is not offered: a batch takes all that has gathered while the one before it was under way.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries, or a heartbeat, to a follower. While the follower is away it waits: raft would try again
// ever more rarely, and be late when the follower is back.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	h := t.group.host
	for {
		changed := h.pulse.next()
		err := t.appendOnce(id, addr, args, resp)
		if err == nil || !isAway(err) {
			return err
		}
		if !t.await(changed, retryPatience) {
			return t.inbox.stopping()
		}
		if !t.group.leads(args.Term) || !t.group.lists(id) {
			return err
		}
	}
}

// await waits for a change in who can be reached or leads, and no longer than d. It reports false when the group ends.
func (t *transport) await(changed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-t.inbox.ctx.Done():
		return false
	}
	return true
}

// isAway reports whether a request did not reach the replica, and a later one may: the node is gone or stopping, has not
// been given the replica yet, or has too much to do.
func isAway(err error) bool {
	switch base.CodeOf(err) {
	case base.CodeUnreachable, base.CodeShardNotFound, base.CodeShuttingDown, base.CodeBusy:
		return true
	default:
		return false
	}
}

func (t *transport) appendOnce(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	to, node, err := t.resolve(id, addr)
	if err != nil {
		return err
	}
	envelope := t.envelope(to, args.Term)
	var answer appendAnswer
	if isHeartbeat(args) {
		answer, err = t.group.host.beats.send(t.inbox.ctx, node, envelope)
	} else {
		m := appendMessage{Envelope: envelope, PrevIndex: args.PrevLogEntry, PrevTerm: args.PrevLogTerm}
		n := 0
		m.Entries, n = encodeEntries(args.Entries, entriesLimit)
		// Raft goes by what is left in args, and sends the others next.
		args.Entries = args.Entries[:n]
		// Of what lies behind these entries in the follower's log nothing is known, so it must not be committed.
		m.Commit = min(args.LeaderCommitIndex, args.PrevLogEntry+uint64(n))
		err = t.call(node, kindAppend, appendPatience, &m, &answer)
	}
	if err != nil {
		return err
	}
	if err := t.heard(answer.Verdict); err != nil {
		return err
	}
	*resp = raft.AppendEntriesResponse{
		RPCHeader: header(id, addr), Term: answer.Verdict.Term, LastLog: answer.LastLog,
		Success: answer.Success, NoRetryBackoff: answer.AtOnce,
	}
	t.group.progress.appended(id, args, resp)
	return nil
}

func isHeartbeat(args *raft.AppendEntriesRequest) bool {
	return len(args.Entries) == 0 && args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0
}

// RequestVote asks for a vote.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	answer, err := t.vote(kindVote, id, addr, voteMessage{
		Envelope: envelope{Term: args.Term}, LastIndex: args.LastLogIndex, LastTerm: args.LastLogTerm, Forced: args.LeadershipTransfer,
	})
	*resp = raft.RequestVoteResponse{RPCHeader: header(id, addr), Term: answer.Verdict.Term, Granted: answer.Granted}
	return err
}

// RequestPreVote asks whether a vote would be given.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	answer, err := t.vote(kindPreVote, id, addr, voteMessage{
		Envelope: envelope{Term: args.Term}, LastIndex: args.LastLogIndex, LastTerm: args.LastLogTerm,
	})
	*resp = raft.RequestPreVoteResponse{RPCHeader: header(id, addr), Term: answer.Verdict.Term, Granted: answer.Granted}
	return err
}

func (t *transport) vote(kind peer.Kind, id raft.ServerID, addr raft.ServerAddress, m voteMessage) (voteAnswer, error) {
	var answer voteAnswer
	to, node, err := t.resolve(id, addr)
	if err != nil {
		return answer, err
	}
	m.Envelope = t.envelope(to, m.Envelope.Term)
	if err := t.call(node, kind, votePatience, &m, &answer); err != nil {
		return voteAnswer{}, err
	}
	if err := t.heard(answer.Verdict); err != nil {
		return voteAnswer{}, err
	}
	if answer.Granted && t.group.host.rolledBack(t.group, node) {
		return voteAnswer{}, base.Errorf(base.CodeNotAdmitted, "count vote", "node %s votes with an older image of its disk", node)
	}
	return answer, nil
}

// TimeoutNow tells a follower to stand for election at once.
func (t *transport) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, _ *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	to, node, err := t.resolve(id, addr)
	if err != nil {
		return err
	}
	var answer timeoutAnswer
	m := timeoutMessage{Envelope: t.envelope(to, t.group.raft.CurrentTerm())}
	if err := t.call(node, kindTimeoutNow, votePatience, &m, &answer); err != nil {
		return err
	}
	*resp = raft.TimeoutNowResponse{RPCHeader: header(id, addr)}
	return t.heard(answer.Verdict)
}

// InstallSnapshot sends a snapshot to a follower that is too far behind.
func (t *transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	answer, err := t.stream(id, addr, args, data)
	if err != nil {
		return err
	}
	*resp = raft.InstallSnapshotResponse{RPCHeader: header(id, addr), Term: answer.Verdict.Term, Success: answer.Success}
	t.group.progress.installed(id, args, resp)
	return nil
}

// call asks one node and decodes its answer.
func (t *transport) call(node base.NodeID, kind peer.Kind, patience time.Duration, m, answer any) error {
	ctx, cancel := context.WithTimeout(t.inbox.ctx, patience)
	defer cancel()
	b, err := t.group.host.o.Peers.CallGroup(ctx, node, kind, groupNumber(t.group.id), encode(m))
	if err != nil {
		return err
	}
	return decode(b, answer)
}

// resolve finds the node of a server.
func (t *transport) resolve(id raft.ServerID, addr raft.ServerAddress) (base.UUID, base.NodeID, error) {
	server, err := base.ParseUUID(string(id))
	if err != nil {
		return server, "", err
	}
	node := t.group.nodeOf(id, addr)
	if t.group.host.o.Peers == nil {
		return server, "", base.Errorf(base.CodeInternal, "ask replica", "server %s cannot be reached: this node has no connections", id)
	}
	return server, node, nil
}

func (t *transport) envelope(to base.UUID, term uint64) envelope {
	g := t.group
	return envelope{Shard: g.id, Generation: g.hosted.Generation, From: g.host.o.Meta, To: to, Term: term}
}

// heard takes note of a group that has been rebuilt without us.
func (t *transport) heard(v verdict) error {
	if v.Newer <= t.group.hosted.Generation {
		return nil
	}
	t.group.host.outdated(t.group, v.Newer)
	return base.Errorf(base.CodeFenced, "ask replica", "shard %s has been rebuilt: generation %d, here %d", t.group.id, v.Newer, t.group.hosted.Generation)
}

// header is what raft wants to see of who wrote a message.
func header(id raft.ServerID, addr raft.ServerAddress) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(addr)}
}

// timeoutNow tells our own replica to stand for election now, without a pre-vote.
func (t *transport) timeoutNow(ctx context.Context) error {
	g := t.group
	_, err := t.inbox.ask(ctx, raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header(g.serverID, t.LocalAddr())}})
	return err
}

func (t *transport) close() { t.inbox.close() }
