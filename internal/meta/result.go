package meta

import (
	"github.com/eastguard/eastguard/internal/base"
)

// Result is the answer to one command. A refused command changed nothing and says why in Code, Message and Hint.
type Result struct {
	Code     base.Code         `cbor:"1,keyasint,omitempty"`
	Message  string            `cbor:"2,keyasint,omitempty"`
	Hint     string            `cbor:"3,keyasint,omitempty"`
	TopicID  base.TopicID      `cbor:"4,keyasint,omitzero"`  // of the topic commands
	Version  base.Version      `cbor:"5,keyasint,omitempty"` // of the topic afterwards
	Before   map[string]string `cbor:"6,keyasint,omitempty"` // AlterTopic: the settings that changed
	After    map[string]string `cbor:"7,keyasint,omitempty"`
	Ranges   int               `cbor:"8,keyasint,omitempty"` // DeleteTopic: what went
	Segments int               `cbor:"9,keyasint,omitempty"`
	Bytes    int64             `cbor:"10,keyasint,omitempty"`
	Producer ProducerGrant     `cbor:"11,keyasint,omitzero"` // OpenProducer

	// The rest is not kept for retries: it is either looked up afresh or belongs to commands that are idempotent.

	Repeat bool         `cbor:"-"` // the command had been applied before; this is the stored result
	Topic  *Topic       `cbor:"-"` // CreateTopic, AlterTopic: the topic as it is now; nil when it is gone
	Rolls  []RollResult `cbor:"-"` // RollSegments, in the order of the command; ForceSeal, the one
	Trims  []TrimResult `cbor:"-"` // TrimRanges, in the order of the command
	Node   *Node        `cbor:"-"` // RegisterNode, SetNodeState, ReplaceNode
}

// ProducerGrant is what OpenProducer hands out.
type ProducerGrant struct {
	ID    int64 `cbor:"1,keyasint,omitempty"`
	Epoch int16 `cbor:"2,keyasint,omitempty"`
}

// RollResult is what became of one roll. Whether it was applied or lost a race, End is the committed end of the
// segment it named (NoEnd when that is not known any more) and Active the range's active segment.
type RollResult struct {
	Code    base.Code // CodeOK when applied, CodePreconditionFailed when another roll was first, else a refusal
	Message string
	Topic   *Topic // nil when there is none
	End     int64
	Active  *Segment // nil when the range is sealed or gone
}

// TrimResult is what one trim removed; nothing when it had been done before.
type TrimResult struct {
	Code      base.Code
	Message   string
	Segments  int
	Bytes     int64
	TrimmedTo int64
}

// Err is the refusal as an error, or nil when the command was applied.
func (r Result) Err(op string) error {
	if r.Code == base.CodeOK {
		return nil
	}
	return &base.Error{Code: r.Code, Op: op, Msg: r.Message, Hint: r.Hint}
}

// Err is the refusal of one roll as an error. Having lost a race is not one: the caller reads End and Active.
func (r RollResult) Err(op string) error {
	if r.Code == base.CodeOK || r.Code == base.CodePreconditionFailed {
		return nil
	}
	return &base.Error{Code: r.Code, Op: op, Msg: r.Message}
}

func refuse(err *base.Error) Result {
	return Result{Code: err.Code, Message: err.Msg, Hint: err.Hint}
}

// EventType names what happened, in the words operators see.
type EventType string

// The events of a shard's log.
const (
	EventClusterCreated EventType = "CLUSTER_CREATED"
	EventNodeRegistered EventType = "NODE_REGISTERED"
	EventNodeRefused    EventType = "NODE_REFUSED"
	EventNodeState      EventType = "NODE_STATE"
	EventNodeReplaced   EventType = "NODE_REPLACED"
	EventTopicCreated   EventType = "TOPIC_CREATED"
	EventTopicAltered   EventType = "TOPIC_ALTERED"
	EventTopicDeleted   EventType = "TOPIC_DELETED"
	EventTopicGone      EventType = "TOPIC_GONE"
	EventSegmentSealed  EventType = "SEGMENT_SEALED"
	EventRangeTrimmed   EventType = "RANGE_TRIMMED"
	EventProducerOpened EventType = "PRODUCER_OPENED"
)

// Event is one line for the journal. Which fields are set depends on the type.
type Event struct {
	Type    EventType
	TimeMs  int64
	Topic   base.TopicID
	Name    string // of the topic
	Range   base.RangeID
	Segment base.SegmentID // the one that was sealed
	Next    base.SegmentID // its successor
	Cause   base.Cause
	Offset  int64 // the sealed end, or the new earliest offset
	Bytes   int64
	GapMs   int64
	Node    base.NodeID    // the node, or the successor's leader
	Detail  string         // settings that changed, a node's state, a producer's name, why a seal was forced
	Before  string         // TOPIC_ALTERED, NODE_STATE: what it was
	After   string         // and is now
	Holders []base.Replica // RANGE_TRIMMED, TOPIC_DELETED: who may hold what went

	// The rest is of SEGMENT_SEALED.

	Replicas []base.Replica // of the successor, leader first
	Late     []base.NodeID  // replicas that its leader waited for in vain
	Lost     []base.NodeID  // replicas that had gone
	Forced   bool           // an operator accepted that acked records may be gone
	Lossy    bool           // they may be gone; see Segment.Lossy
}
