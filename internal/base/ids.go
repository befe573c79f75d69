package base

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// UUID is 16 random bytes. Topics, clusters, disks, meta directories, processes and requests are named by one.
type UUID [16]byte

// The ids that are UUIDs. They are aliases, not types of their own: what matters is the field they stand in.
type (
	TopicID   = UUID
	ClusterID = UUID
	DiskID    = UUID
	RequestID = UUID
)

// NewUUID reads a version 4 UUID from r, which is crypto/rand.Reader outside tests.
func NewUUID(r io.Reader) (UUID, error) {
	var u UUID
	if _, err := io.ReadFull(r, u[:]); err != nil {
		return UUID{}, fmt.Errorf("read random bytes for a uuid: %w", err)
	}
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u, nil
}

// ParseUUID reads the 8-4-4-4-12 form that String prints.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	plain := strings.ReplaceAll(s, "-", "")
	if len(s) != 36 || len(plain) != 32 {
		return u, Errorf(CodeInvalidArgument, "parse uuid", "%q is not of the form 8-4-4-4-12", s)
	}
	if _, err := hex.Decode(u[:], []byte(plain)); err != nil {
		return UUID{}, Errorf(CodeInvalidArgument, "parse uuid", "%q has a digit that is not hexadecimal", s)
	}
	return u, nil
}

// IsZero reports whether u was never set.
func (u UUID) IsZero() bool { return u == UUID{} }

// String prints the 8-4-4-4-12 form.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// MarshalText makes UUIDs readable in JSON.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (u *UUID) UnmarshalText(b []byte) error {
	v, err := ParseUUID(string(b))
	if err == nil {
		*u = v
	}
	return err
}

// NodeID names one broker for the life of its disk: the configured node_id, or one minted at the first start.
type NodeID string

// Check reports why n cannot name a node: 1 to 64 bytes of [a-zA-Z0-9._-].
func (n NodeID) Check() error {
	if n == "" || len(n) > 64 {
		return Errorf(CodeInvalidArgument, "check node id", "node id %q must have 1 to 64 bytes", string(n))
	}
	if i := strings.IndexFunc(string(n), notNameRune); i >= 0 {
		return Errorf(CodeInvalidArgument, "check node id", "node id %q may hold only letters, digits, '.', '_' and '-'", string(n))
	}
	return nil
}

// RangeID numbers the ranges of one topic, from 1. An offset without it is meaningless.
type RangeID uint32

// String prints r1, r2, …
func (r RangeID) String() string { return "r" + strconv.FormatUint(uint64(r), 10) }

// ParseRangeID reads "r17"; a bare "17" is taken too.
func ParseRangeID(s string) (RangeID, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "r"), 10, 32)
	if err != nil || n == 0 {
		return 0, Errorf(CodeInvalidArgument, "parse range id", "%q is not a range id such as r17", s)
	}
	return RangeID(n), nil
}

// SegmentID is unique in the cluster. Each shard hands out one residue class modulo the number of shards, so
// that ids need no coordination; a shard that splits splits its class.
type SegmentID uint64

// String prints s1, s2, …
func (s SegmentID) String() string { return "s" + strconv.FormatUint(uint64(s), 10) }

// ParseSegmentID reads "s905"; a bare "905" is taken too.
func ParseSegmentID(s string) (SegmentID, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "s"), 10, 64)
	if err != nil || n == 0 {
		return 0, Errorf(CodeInvalidArgument, "parse segment id", "%q is not a segment id such as s905", s)
	}
	return SegmentID(n), nil
}

// RangeRef names one range of one topic; the key of everything a node stores.
type RangeRef struct {
	Topic TopicID `cbor:"1,keyasint"`
	Range RangeID `cbor:"2,keyasint"`
}

// String prints the pair for logs.
func (r RangeRef) String() string { return r.Topic.String() + "/" + r.Range.String() }

// Compare orders ranges by topic, then by number: -1, 0 or 1.
func (r RangeRef) Compare(o RangeRef) int {
	return cmp.Or(bytes.Compare(r.Topic[:], o.Topic[:]), cmp.Compare(r.Range, o.Range))
}

// Epoch is the topic's counter of opened segments. It fences appends and is the batch header's leader epoch.
type Epoch int32

// Version is the topic's command counter; every assignment carries it.
type Version uint64

// Replica names one copy's holder: the node and the disk it must still have.
type Replica struct {
	Node NodeID `cbor:"1,keyasint"`
	Disk DiskID `cbor:"2,keyasint"`
}
