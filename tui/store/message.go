package store

import (
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Message is one input: what a feed saw, and when. One of the payloads is set. It is never changed once it was given
// to a store, nor is what it points to.
type Message struct {
	Time time.Time  `json:"time"`           // by the clock of whoever watches
	Node sdk.NodeID `json:"node,omitempty"` // who said it; empty for what the feed itself found
	Boot uint64     `json:"boot,omitempty"` // the start of the node that said it
	Thin bool       `json:"thin,omitempty"` // of Counters: the ranges are left out, and as they were; so history saves space

	Hello    *Hello             `json:"hello,omitempty"`
	Conn     *Conn              `json:"conn,omitempty"`
	Stream   *Stream            `json:"stream,omitempty"`
	Gap      *Gap               `json:"gap,omitempty"`
	State    *sdk.NodeState     `json:"state,omitempty"`
	Counters *sdk.NodeCounters  `json:"counters,omitempty"`
	Event    *sdk.Event         `json:"event,omitempty"`
	Nodes    *sdk.NodeList      `json:"nodes,omitempty"`
	Shards   *sdk.ShardList     `json:"shards,omitempty"`
	Totals   *Totals            `json:"totals,omitempty"`
	Health   *sdk.ClusterHealth `json:"health,omitempty"`
	Topics   *TopicPage         `json:"topics,omitempty"`
	Topic    *sdk.TopicDetail   `json:"topic,omitempty"`
	Gone     *Gone              `json:"gone,omitempty"`
	Segments *SegmentPage       `json:"segments,omitempty"`
	Logs     *LogPage           `json:"logs,omitempty"`
	Reach    *sdk.Reached       `json:"reach,omitempty"`
	Refused  *Refused           `json:"refused,omitempty"`
}

// ofNode reports whether a message means nothing without the node that said it.
func (m *Message) ofNode() bool {
	return m.Stream != nil || m.Gap != nil || m.State != nil || m.Counters != nil || m.Event != nil || m.Logs != nil
}

// Hello begins a stream: where it comes from.
type Hello struct {
	Cluster string   `json:"cluster,omitempty"` // its id
	Context string   `json:"context,omitempty"` // the name that the operator has for it
	Seeds   []string `json:"seeds,omitempty"`
	Version string   `json:"version,omitempty"` // of the program that watches
	Polling string   `json:"polling,omitempty"` // "2s": the brokers are too old for streams
}

// Conn is how the cluster as a whole can be reached.
type Conn struct {
	Lost    bool      `json:"lost,omitempty"` // no broker answers
	Error   string    `json:"error,omitempty"`
	Tried   []string  `json:"tried,omitempty"` // nodes and seeds
	Attempt int       `json:"attempt,omitempty"`
	Next    time.Time `json:"next,omitzero"` // when it is tried again
}

// Stream is what became of the stream of Message.Node.
type Stream struct {
	State StreamState `json:"state"`
	Error string      `json:"error,omitempty"`
}

// StreamState is whether a node can be listened to.
type StreamState string

// The states of a stream. Stale is what a live one becomes when nothing has come for [StaleAfter].
const (
	StreamNone  StreamState = ""      // nobody listens to it: it is dead, or was never found
	StreamLive  StreamState = "live"  // it speaks
	StreamStale StreamState = "stale" // it has fallen silent
	StreamLost  StreamState = "lost"  // the connection has ended, and is tried again
)

// Gap says that something that Message.Node had to tell may be missing.
type Gap struct {
	Lost      uint64 `json:"lost,omitempty"`      // so many events were dropped before they were read
	Restarted bool   `json:"restarted,omitempty"` // what it had not told yet is gone
	Over      bool   `json:"over,omitempty"`      // it can be reached again
}

// Totals are what only whoever asks all shards can count.
type Totals struct {
	Topics          int           `json:"topics,omitempty"`
	Ranges          int           `json:"ranges,omitempty"`
	Segments        int           `json:"segments,omitempty"`
	Groups          int           `json:"groups,omitempty"`
	Records         int64         `json:"records,omitempty"`
	Bytes           int64         `json:"bytes,omitempty"`
	UnderReplicated int           `json:"under_replicated,omitempty"`
	Leaderless      int           `json:"leaderless,omitempty"`
	Missing         []sdk.ShardID `json:"missing,omitempty"` // shards that did not answer: the rest is at least that much
}

// TopicPage is topics as a list shows them. A complete one is all that there are.
type TopicPage struct {
	Topics   []sdk.TopicSummary `json:"topics"`
	Complete bool               `json:"complete,omitempty"`
}

// SegmentPage is segments as a list shows them; a complete one holds all of its topic, or of the cluster.
type SegmentPage struct {
	Topic    string           `json:"topic,omitempty"`
	Segments []sdk.SegmentRow `json:"segments"`
	Complete bool             `json:"complete,omitempty"`
}

// Gone is what is on no screen any more, or does not exist: its details are dropped.
type Gone struct {
	Topic  string `json:"topic,omitempty"`  // its ranges and segments
	Exists bool   `json:"exists,omitempty"` // it is only not looked at
}

// LogPage is lines of the log of Message.Node.
type LogPage struct {
	Lines []sdk.LogLine `json:"lines"`
	Lost  uint64        `json:"lost,omitempty"`
	// Anew begins the logs of all nodes again: other lines were asked for, and these are the oldest of them.
	Anew bool `json:"anew,omitempty"`
}
