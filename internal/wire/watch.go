package wire

import "github.com/eastguard/eastguard/internal/base"

// WatchNodeRequest follows one node: whoever is asked. An answer comes when something has happened that From does not
// cover, or after WaitMs as a heartbeat. The first request of a watch has Boot 0 and asks for the snapshot.
type WatchNodeRequest struct {
	Boot     uint64 `cbor:"1,keyasint,omitempty"` // of the last answer; another start begins anew with a snapshot
	From     uint64 `cbor:"2,keyasint,omitempty"` // the first event wanted: Next of the last answer; 0 = the oldest kept
	Seen     uint64 `cbor:"3,keyasint,omitempty"` // StateVersion of the last answer
	WaitMs   int64  `cbor:"4,keyasint,omitempty"` // at most 30,000; 0 answers at once
	MaxEvent int    `cbor:"5,keyasint,omitempty"` // 0 = 1,000, which is the most
}

// WatchNodeResponse is one step of a watch.
type WatchNodeResponse struct {
	Node         base.NodeID    `cbor:"1,keyasint"`
	Boot         uint64         `cbor:"2,keyasint"`
	ObservedMs   int64          `cbor:"3,keyasint"`
	Events       []Event        `cbor:"4,keyasint,omitempty"`
	Next         uint64         `cbor:"5,keyasint"`           // the From of the next request
	Lost         uint64         `cbor:"6,keyasint,omitempty"` // events that were dropped from the journal before they were read
	StateVersion uint64         `cbor:"7,keyasint,omitempty"`
	State        *WatchedState  `cbor:"8,keyasint,omitempty"` // when it differs from Seen
	Cluster      base.ClusterID `cbor:"9,keyasint,omitempty"`
	More         bool           `cbor:"10,keyasint,omitempty"` // the next is worth asking for at once: what was there did not fit
}

// WatchedState is what a node sees and leads, without what only counts up.
type WatchedState struct {
	Self        NodeStatus    `cbor:"1,keyasint"`
	Members     []RingMember  `cbor:"2,keyasint,omitempty"`
	RingHash    uint64        `cbor:"3,keyasint,omitempty"`
	RingVersion uint64        `cbor:"4,keyasint,omitempty"`
	Shards      []ShardStatus `cbor:"5,keyasint,omitempty"` // replicas here
}
