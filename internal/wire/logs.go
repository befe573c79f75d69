package wire

import "github.com/eastguard/eastguard/internal/base"

// WatchLogsRequest follows the log of one node: whoever is asked. It keeps its last 5,000 lines or 4 MB of them. The
// answer comes when there is a line that fits, or after WaitMs.
type WatchLogsRequest struct {
	Boot     uint64 `cbor:"1,keyasint,omitempty"` // of the last answer; another start begins anew
	From     uint64 `cbor:"2,keyasint,omitempty"` // the first line wanted: Next of the last answer; 0 = the oldest kept
	Last     int    `cbor:"3,keyasint,omitempty"` // without From: begin with the last so many that fit; 0 = all that are kept
	WaitMs   int64  `cbor:"4,keyasint,omitempty"` // at most 30,000; 0 answers at once
	MaxLines int    `cbor:"5,keyasint,omitempty"` // 0 = 1,000, which is the most
	Level    string `cbor:"6,keyasint,omitempty"` // debug, info, warn, error: that and worse; empty = all
	Contains string `cbor:"7,keyasint,omitempty"` // in the message or an attribute, in any case
}

// WatchLogsResponse is one step of following a log.
type WatchLogsResponse struct {
	Node       base.NodeID `cbor:"1,keyasint"`
	Boot       uint64      `cbor:"2,keyasint"`
	ObservedMs int64       `cbor:"3,keyasint"`
	Lines      []LogLine   `cbor:"4,keyasint,omitempty"`
	Next       uint64      `cbor:"5,keyasint"`           // the From of the next request
	Lost       uint64      `cbor:"6,keyasint,omitempty"` // lines of any level that were dropped before they were read
	More       bool        `cbor:"7,keyasint,omitempty"` // the next is worth asking for at once: what was there did not fit
}

// LogLine is one line of a node's log. Nothing in it is escaped.
type LogLine struct {
	Seq     uint64    `cbor:"1,keyasint"` // per node and boot, without holes
	TimeMs  int64     `cbor:"2,keyasint"`
	Level   string    `cbor:"3,keyasint"` // debug, info, warn, error
	Message string    `cbor:"4,keyasint,omitempty"`
	Attrs   []LogAttr `cbor:"5,keyasint,omitempty"` // in the order of the log
}

// LogAttr is one named value of a line.
type LogAttr struct {
	Key   string `cbor:"1,keyasint"`
	Value string `cbor:"2,keyasint,omitempty"`
}
