package shard

import (
	"context"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// transport is one group's side of the messages between replicas. Groups of one voter have nobody to write to: what
// would leave the node is refused as unreachable, and only what the host itself sends to its replica arrives. Package
// peer will carry the rest; everything that raft asks of a transport is in this file.
type transport struct {
	addr   raft.ServerAddress
	inbox  chan raft.RPC
	closed chan struct{}
	once   sync.Once
}

func newTransport(addr raft.ServerAddress) *transport {
	return &transport{addr: addr, inbox: make(chan raft.RPC, 16), closed: make(chan struct{})}
}

// timeoutNow tells our own replica to stand for election now, without a pre-vote.
func (t *transport) timeoutNow(ctx context.Context) error {
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{RespChan: answer, Command: &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(t.addr), Addr: []byte(t.addr)},
	}}
	select {
	case t.inbox <- rpc:
	case <-t.closed:
		return base.Errorf(base.CodeShuttingDown, "elect", "the shard is stopping")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case a := <-answer:
		return a.Error
	case <-t.closed:
		return base.Errorf(base.CodeShuttingDown, "elect", "the shard is stopping")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *transport) close() { t.once.Do(func() { close(t.closed) }) }

func unreachable(id raft.ServerID) error {
	return base.Errorf(base.CodeUnreachable, "send to replica", "server %s is not connected", id)
}

// Consumer is where raft takes its requests from.
func (t *transport) Consumer() <-chan raft.RPC { return t.inbox }

// LocalAddr is the server id: addresses change, and who is where is not raft's business.
func (t *transport) LocalAddr() raft.ServerAddress { return t.addr }

// SetHeartbeatHandler is a no-op on purpose: raft 1.8.0 runs that handler beside its main loop, and a heartbeat
// handled concurrently with an append can make logs diverge (hashicorp/raft #695). Heartbeats queue like the rest.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline is not offered; raft falls back to AppendEntries.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries to a follower.
func (t *transport) AppendEntries(id raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	return unreachable(id)
}

// RequestVote asks for a vote.
func (t *transport) RequestVote(id raft.ServerID, _ raft.ServerAddress, _ *raft.RequestVoteRequest, _ *raft.RequestVoteResponse) error {
	return unreachable(id)
}

// RequestPreVote asks whether a vote would be given.
func (t *transport) RequestPreVote(id raft.ServerID, _ raft.ServerAddress, _ *raft.RequestPreVoteRequest, _ *raft.RequestPreVoteResponse) error {
	return unreachable(id)
}

// InstallSnapshot sends a snapshot to a follower that is too far behind.
func (t *transport) InstallSnapshot(id raft.ServerID, _ raft.ServerAddress, _ *raft.InstallSnapshotRequest, _ *raft.InstallSnapshotResponse, _ io.Reader) error {
	return unreachable(id)
}

// TimeoutNow hands leadership to a follower.
func (t *transport) TimeoutNow(id raft.ServerID, _ raft.ServerAddress, _ *raft.TimeoutNowRequest, _ *raft.TimeoutNowResponse) error {
	return unreachable(id)
}

// EncodePeer is how an address stands in a message.
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer is its inverse.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }
