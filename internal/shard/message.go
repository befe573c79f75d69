package shard

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
)

// The kinds of messages between hosts. Numbers are never given a new meaning.
const (
	kindAppend     = peer.Raft + 1
	kindVote       = peer.Raft + 2
	kindPreVote    = peer.Raft + 3
	kindTimeoutNow = peer.Raft + 4
	kindHeartbeats = peer.Raft + 5 // of many groups
	kindChunk      = peer.Snapshot + 1
	kindHost       = peer.Control + 16
	kindDrop       = peer.Control + 17
	kindWatch      = peer.Control + 18 // of many groups
)

// groupNumber is the number of a shard in the frames between nodes, which keeps the order of one group: the root above,
// below a one and the path. What identifies the group is the id in the envelope.
func groupNumber(s base.ShardID) uint32 {
	return uint32(s.Root)<<16 | 1<<(s.PathLen&15) | uint32(s.Path)
}

// Messages are CBOR. A reader skips keys it does not know, so a field may be added, never renumbered.
var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   8,
		MaxArrayElements:  1 << 16,
		MaxMapPairs:       64,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorNone,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Errorf("shard: cbor options: %w", err))
	}
	return v
}

// encode cannot fail: what it is given are structs of this file.
func encode(m any) []byte {
	b, err := encoding.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("shard: encode %T: %v", m, err))
	}
	return b
}

func decode(b []byte, m any) error {
	if err := decoding.Unmarshal(b, m); err != nil {
		return base.Wrap(base.CodeCorruptFrame, fmt.Sprintf("decode %T", m), err)
	}
	return nil
}

// envelope stands in front of everything one replica tells another.
type envelope struct {
	Shard      base.ShardID `cbor:"1,keyasint"`
	Generation uint64       `cbor:"2,keyasint,omitempty"`
	From       base.UUID    `cbor:"3,keyasint"` // server ids
	To         base.UUID    `cbor:"4,keyasint"`
	Term       uint64       `cbor:"5,keyasint"`
}

// verdict stands in front of every answer. Newer is set, and the rest means nothing, when the group has been rebuilt
// since the asker's generation.
type verdict struct {
	Newer uint64 `cbor:"1,keyasint,omitempty"`
	Term  uint64 `cbor:"2,keyasint,omitempty"`
}

// appendMessage is raft's AppendEntries. One without entries and position is a heartbeat.
type appendMessage struct {
	Envelope  envelope `cbor:"1,keyasint"`
	PrevIndex uint64   `cbor:"2,keyasint,omitempty"`
	PrevTerm  uint64   `cbor:"3,keyasint,omitempty"`
	Commit    uint64   `cbor:"4,keyasint,omitempty"`
	Entries   []byte   `cbor:"5,keyasint,omitempty"` // as in a record of the log: see record
}

type appendAnswer struct {
	Verdict verdict `cbor:"1,keyasint"`
	LastLog uint64  `cbor:"2,keyasint,omitempty"`
	Success bool    `cbor:"3,keyasint,omitempty"`
	AtOnce  bool    `cbor:"4,keyasint,omitempty"` // raft's NoRetryBackoff
}

// voteMessage is raft's RequestVote and RequestPreVote.
type voteMessage struct {
	Envelope  envelope `cbor:"1,keyasint"`
	LastIndex uint64   `cbor:"2,keyasint,omitempty"`
	LastTerm  uint64   `cbor:"3,keyasint,omitempty"`
	Forced    bool     `cbor:"4,keyasint,omitempty"` // raft's LeadershipTransfer: the voter may know a leader
}

type voteAnswer struct {
	Verdict verdict `cbor:"1,keyasint"`
	Granted bool    `cbor:"2,keyasint,omitempty"`
}

// timeoutMessage is raft's TimeoutNow.
type timeoutMessage struct {
	Envelope envelope `cbor:"1,keyasint"`
}

type timeoutAnswer struct {
	Verdict verdict `cbor:"1,keyasint"`
}

// heartbeatsMessage carries the heartbeats of many groups to one node, heartbeatsAnswer what became of each, in the
// same order.
type heartbeatsMessage struct {
	Beats []envelope `cbor:"1,keyasint"`
	Still bool       `cbor:"2,keyasint,omitempty"` // the sender's log stands still: its groups cannot go on under it
}

type heartbeatsAnswer struct {
	Answers []heartbeatAnswer `cbor:"1,keyasint"`
}

type heartbeatAnswer struct {
	Answer appendAnswer `cbor:"1,keyasint,omitempty"`
	Code   base.Code    `cbor:"2,keyasint,omitempty"` // not OK: no answer, and why
}

// chunkMessage is a piece of a snapshot.
type chunkMessage struct {
	Envelope envelope `cbor:"1,keyasint"`
	Stream   uint64   `cbor:"2,keyasint"` // one attempt to send it
	Offset   int64    `cbor:"3,keyasint,omitempty"`
	Data     []byte   `cbor:"4,keyasint,omitempty"`
	Size     int64    `cbor:"5,keyasint"` // of the whole

	LastIndex          uint64 `cbor:"6,keyasint"`
	LastTerm           uint64 `cbor:"7,keyasint"`
	Configuration      []byte `cbor:"8,keyasint"` // in raft's own form
	ConfigurationIndex uint64 `cbor:"9,keyasint"`
	Version            int    `cbor:"10,keyasint"`
}

// chunkAnswer says how much of the stream has arrived; Success, with the last chunk, that the snapshot is in use.
type chunkAnswer struct {
	Verdict verdict `cbor:"1,keyasint"`
	Have    int64   `cbor:"2,keyasint,omitempty"`
	Success bool    `cbor:"3,keyasint,omitempty"`
}

// hostMessage orders a node to begin a replica (kindHost), empty, or to give one up (kindDrop).
type hostMessage struct {
	Cluster    base.ClusterID `cbor:"1,keyasint"`
	Shard      base.ShardID   `cbor:"2,keyasint"`
	Server     base.UUID      `cbor:"3,keyasint"` // of the replica
	Generation uint64         `cbor:"4,keyasint,omitempty"`
	Index      uint64         `cbor:"5,keyasint"`           // of the configuration that lists the server, or no longer does
	Shards     int            `cbor:"6,keyasint"`           // of the cluster
	Growth     bool           `cbor:"7,keyasint,omitempty"` // the shard lacks voters: more of those may come at once
}

// encodeEntries writes entries as the log does, as many as fit into limit bytes, one at least, and says how many.
func encodeEntries(logs []*raft.Log, limit int) ([]byte, int) {
	size, n := 0, 0
	for _, l := range logs {
		if size += len(l.Data) + len(l.Extensions) + 64; n > 0 && size > limit {
			break
		}
		n++
	}
	if n == 0 {
		return nil, 0
	}
	r := record{kind: recordEntries, entries: make([]raft.Log, n)}
	for i, l := range logs[:n] {
		r.entries[i] = *l
	}
	return r.appendEntries(make([]byte, 0, size)), n
}

func decodeEntries(b []byte) ([]*raft.Log, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := recordReader{b: b}
	entries := d.entries()
	if d.bad || len(d.b) > 0 {
		return nil, base.Errorf(base.CodeCorruptFrame, "decode entries", "the entries do not parse")
	}
	logs := make([]*raft.Log, len(entries))
	for i := range entries {
		logs[i] = &entries[i]
	}
	return logs, nil
}
