package shard

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A snapshot travels in chunks on the bulk connection, one after the other. The receiver gathers them in a file and
// gives raft the whole of it, so that the group's main loop does not wait for the network.
const (
	chunkBytes      = 1 << 20
	chunkQueue      = 4                // chunks of a group that wait
	chunkPatience   = 10 * time.Second // for one chunk, however often it is sent
	installPatience = time.Minute      // for the last one: the snapshot is put to use
	streamsOut      = 2                // at once
	streamsIn       = 4
	streamIdle      = 30 * time.Second // one from which nothing came for that long makes room
)

// stream sends a snapshot. A chunk that is lost with its connection is sent again; more than that ends the stream, and
// raft begins anew.
func (t *transport) stream(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, data io.Reader) (chunkAnswer, error) {
	h := t.group.host
	to, node, err := t.resolve(id, addr)
	if err != nil {
		return chunkAnswer{}, err
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	case <-t.inbox.ctx.Done():
		return chunkAnswer{}, t.inbox.stopping()
	}
	m := chunkMessage{
		Envelope: t.envelope(to, args.Term), Stream: h.streamID.Add(1), Size: args.Size,
		LastIndex: args.LastLogIndex, LastTerm: args.LastLogTerm,
		Configuration: args.Configuration, ConfigurationIndex: args.ConfigurationIndex, Version: int(args.SnapshotVersion),
	}
	for {
		m.Data = make([]byte, min(chunkBytes, m.Size-m.Offset))
		if _, err := io.ReadFull(data, m.Data); err != nil {
			return chunkAnswer{}, base.Wrap(base.CodeInternal, "send snapshot", err)
		}
		answer, err := t.sendChunk(node, &m)
		if err != nil {
			return answer, err
		}
		end := m.Offset + int64(len(m.Data))
		switch {
		case answer.Verdict.Term > args.Term || end == m.Size:
			return answer, nil
		case answer.Have != end:
			return answer, base.Errorf(base.CodeUnreachable, "send snapshot", "node %s has %d bytes of it instead of %d: it was interrupted", node, answer.Have, end)
		}
		m.Offset = end
	}
}

// sendChunk sends one chunk until it is answered.
func (t *transport) sendChunk(node base.NodeID, m *chunkMessage) (chunkAnswer, error) {
	patience := chunkPatience
	if m.Offset+int64(len(m.Data)) == m.Size {
		patience = installPatience
	}
	for deadline := time.Now().Add(patience); ; {
		changed := t.group.host.pulse.next()
		var answer chunkAnswer
		err := t.call(node, kindChunk, time.Until(deadline), m, &answer)
		if err == nil {
			return answer, t.heard(answer.Verdict)
		}
		if !errors.Is(err, base.CodeUnreachable) || !time.Now().Before(deadline) {
			return answer, err
		}
		if !t.await(changed, min(retryPatience, time.Until(deadline))) {
			return answer, t.inbox.stopping()
		}
	}
}

// incoming are the snapshots that are being received: one a group, a few at once.
type incoming struct {
	mu      sync.Mutex
	streams map[base.ShardID]*arriving
}

// idle finds a stream that nothing has come in for a while. Call it with mu held.
func (in *incoming) idle() (shard base.ShardID, found bool) {
	for id, a := range in.streams {
		if time.Since(a.last) > streamIdle {
			return id, true
		}
	}
	return base.ShardID{}, false
}

// arriving is one of them.
type arriving struct {
	from   base.UUID
	stream uint64
	term   uint64
	name   string
	file   vfs.File
	have   int64
	last   time.Time
}

// onChunk writes a chunk down; with the last one it has raft install the snapshot. The chunks of a group come one after
// the other.
func (h *Host) onChunk(ctx context.Context, r *peer.Request) ([]byte, error) {
	var m chunkMessage
	if err := decode(r.Body, &m); err != nil {
		return nil, err
	}
	if m.Size <= 0 || m.Offset < 0 || len(m.Data) > chunkBytes || m.Offset+int64(len(m.Data)) > m.Size {
		return nil, base.Errorf(base.CodeCorruptFrame, "take snapshot", "a chunk of %d bytes at %d of %d", len(m.Data), m.Offset, m.Size)
	}
	g, newer, err := h.admit(m.Envelope)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return encode(chunkAnswer{Verdict: verdict{Newer: newer}}), nil
	case m.Envelope.Term < g.raft.CurrentTerm():
		return encode(chunkAnswer{Verdict: verdict{Term: g.raft.CurrentTerm()}}), nil
	}
	a, err := h.arriving(g, &m)
	if err != nil {
		return nil, err
	}
	if m.Offset > a.have || m.Offset+int64(len(m.Data)) < a.have {
		return encode(chunkAnswer{Have: a.have}), nil
	}
	if _, err := a.file.WriteAt(m.Data, m.Offset); err != nil {
		h.dropArriving(g.id)
		return nil, base.Wrap(base.CodeInternal, "take snapshot", err)
	}
	a.have = m.Offset + int64(len(m.Data))
	if a.have < m.Size {
		return encode(chunkAnswer{Verdict: verdict{Term: m.Envelope.Term}, Have: a.have}), nil
	}
	defer h.dropArriving(g.id)
	return h.install(ctx, g, from(r, m.Envelope), &m, a)
}

// arriving finds the stream that a chunk belongs to, or begins it.
func (h *Host) arriving(g *group, m *chunkMessage) (*arriving, error) {
	h.incoming.mu.Lock()
	a := h.incoming.streams[g.id]
	if a != nil && a.from == m.Envelope.From && a.stream == m.Stream && a.term == m.Envelope.Term {
		a.last = time.Now()
		h.incoming.mu.Unlock()
		return a, nil
	}
	idle, found := base.ShardID{}, false
	full := a == nil && len(h.incoming.streams) >= streamsIn
	if full {
		idle, found = h.incoming.idle()
	}
	h.incoming.mu.Unlock()
	switch {
	case full && !found:
		return nil, base.Errorf(base.CodeBusy, "take snapshot", "%d snapshots are being received", streamsIn)
	case a != nil:
		h.dropArriving(g.id)
	case found:
		h.dropArriving(idle)
	}
	name := filepath.Join(g.snapshots.dir, "incoming"+snapshotTemp)
	f, err := h.o.FS.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, base.Wrap(base.CodeInternal, "take snapshot", err)
	}
	a = &arriving{from: m.Envelope.From, stream: m.Stream, term: m.Envelope.Term, name: name, file: f, last: time.Now()}
	h.incoming.mu.Lock()
	h.incoming.streams[g.id] = a
	h.incoming.mu.Unlock()
	return a, nil
}

// dropArriving gives a stream up.
func (h *Host) dropArriving(shard base.ShardID) {
	h.incoming.mu.Lock()
	a := h.incoming.streams[shard]
	delete(h.incoming.streams, shard)
	h.incoming.mu.Unlock()
	if a == nil {
		return
	}
	// Nothing in it is of use, and the next start removes what stays behind.
	if err := errors.Join(a.file.Close(), h.o.FS.Remove(a.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.o.Logger.Warn("received snapshot not removed", "shard", shard.String(), "error", err)
	}
}

// dropAllArriving is for a host that closes. No chunk comes any more.
func (h *Host) dropAllArriving() {
	h.incoming.mu.Lock()
	shards := slices.Collect(maps.Keys(h.incoming.streams))
	h.incoming.mu.Unlock()
	for _, shard := range shards {
		h.dropArriving(shard)
	}
}

// install gives raft the whole snapshot.
func (h *Host) install(ctx context.Context, g *group, sender raft.RPCHeader, m *chunkMessage, a *arriving) ([]byte, error) {
	type result struct {
		answer any
		err    error
	}
	done := make(chan result, 1)
	request := &raft.InstallSnapshotRequest{
		RPCHeader: sender, SnapshotVersion: raft.SnapshotVersion(m.Version), Term: m.Envelope.Term, Leader: sender.Addr,
		LastLogIndex: m.LastIndex, LastLogTerm: m.LastTerm,
		Configuration: m.Configuration, ConfigurationIndex: m.ConfigurationIndex, Size: m.Size,
	}
	rpc := raft.RPC{Command: request, Reader: io.NewSectionReader(a.file, 0, m.Size)}
	g.transport.inbox.put(&delivery{rpc: rpc, done: func(answer any, err error) { done <- result{answer, err} }})
	// The file must stay open until raft has answered; a group that stops answers too.
	res := <-done
	if res.err != nil {
		return nil, base.Wrap(base.CodeInternal, "take snapshot", res.err)
	}
	answer, ok := res.answer.(*raft.InstallSnapshotResponse)
	if !ok {
		return nil, base.Errorf(base.CodeInternal, "take snapshot", "unexpected answer %T", res.answer)
	}
	return encode(chunkAnswer{Verdict: verdict{Term: answer.Term}, Have: a.have, Success: answer.Success}), nil
}
