package base

import (
	"maps"
	"strings"
	"time"
)

// MaxTopicName is the longest topic name, in bytes.
const MaxTopicName = 249

// InternalTopicPrefix begins the names of system topics, which users cannot create.
const InternalTopicPrefix = "__"

// CheckTopicName reports why name cannot name a user's topic: 1 to 249 bytes of [a-zA-Z0-9._-], not "." or
// "..", not beginning with "__". The SDK, the CLI and the broker all ask here.
func CheckTopicName(name string) error {
	const op = "check topic name"
	switch {
	case name == "":
		return Errorf(CodeInvalidTopicName, op, "a topic name cannot be empty")
	case len(name) > MaxTopicName:
		return Errorf(CodeInvalidTopicName, op, "the name has %d bytes, at most %d are allowed", len(name), MaxTopicName)
	case name == "." || name == "..":
		return Errorf(CodeInvalidTopicName, op, "%q is not allowed", name)
	case strings.HasPrefix(name, InternalTopicPrefix):
		return Errorf(CodeInvalidTopicName, op, "%q begins with %q, which is kept for internal topics", name, InternalTopicPrefix)
	case strings.IndexFunc(name, notNameRune) >= 0:
		return Errorf(CodeInvalidTopicName, op, "%q may hold only letters, digits, '.', '_' and '-'", name)
	}
	return nil
}

func notNameRune(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
}

// Strategy says who decides a topic's ranges.
type Strategy uint8

// Auto topics split and merge with load; fixed topics keep their ranges, and range i of n serves partition i.
const (
	StrategyAuto Strategy = iota
	StrategyFixed
)

// String prints auto or fixed.
func (s Strategy) String() string {
	if s == StrategyFixed {
		return "fixed"
	}
	return "auto"
}

// Durability says what an ack promises.
type Durability uint8

// DurabilityFsync acks after fsync on every replica; DurabilityReplicated once every replica holds it in memory.
const (
	DurabilityFsync Durability = iota
	DurabilityReplicated
)

// String prints fsync or replicated.
func (d Durability) String() string {
	if d == DurabilityReplicated {
		return "replicated"
	}
	return "fsync"
}

// OnTotalLoss says what a range does when no replica of its active segment is left.
type OnTotalLoss uint8

// OnTotalLossWait keeps the range unavailable until an intact replica returns; OnTotalLossReplace opens a successor.
const (
	OnTotalLossWait OnTotalLoss = iota
	OnTotalLossReplace
)

// String prints wait or replace.
func (o OnTotalLoss) String() string {
	if o == OnTotalLossReplace {
		return "replace"
	}
	return "wait"
}

// TopicConfig is a topic's settings as replicated. Zero durations and sizes mean "no limit" for retention and
// "the broker's default" for segment limits.
type TopicConfig struct {
	ReplicationFactor int               `cbor:"1,keyasint"`
	MinReplicas       int               `cbor:"2,keyasint"` // 0 = RF/2+1
	Strategy          Strategy          `cbor:"3,keyasint,omitempty"`
	Durability        Durability        `cbor:"4,keyasint,omitempty"`
	OnTotalLoss       OnTotalLoss       `cbor:"5,keyasint,omitempty"`
	Retention         time.Duration     `cbor:"6,keyasint,omitempty"`  // 0 = for ever
	RetentionBytes    int64             `cbor:"7,keyasint,omitempty"`  // per range; 0 = no limit
	SegmentBytes      int64             `cbor:"8,keyasint,omitempty"`  // 0 = segment_size_limit_bytes
	SegmentAge        time.Duration     `cbor:"9,keyasint,omitempty"`  // 0 = max_segment_age_secs
	Compression       string            `cbor:"10,keyasint,omitempty"` // producers' default: none, lz4, zstd
	SpreadBy          string            `cbor:"11,keyasint,omitempty"` // rack, or a label's name
	SplitRate         int64             `cbor:"12,keyasint,omitempty"` // bytes per second; 0 = default
	Labels            map[string]string `cbor:"13,keyasint,omitempty"`
	Keyed             bool              `cbor:"14,keyasint,omitempty"` // system topics with latest-by-key slots
}

// Clone returns a copy that shares no map.
func (c TopicConfig) Clone() TopicConfig {
	c.Labels = maps.Clone(c.Labels)
	return c
}
