package base

import (
	"cmp"
	"math/bits"
	"strconv"
	"strings"
)

// ShardID names one slice of the 64-bit hash space of topic names: one of the initial shards (Root), then one
// bit for each split since (Path, most significant first, PathLen bits). Printed "12", its children "12.0" and
// "12.1". Nothing may assume that all shards are equally deep.
type ShardID struct {
	Root    uint16 `cbor:"1,keyasint"`
	Path    uint16 `cbor:"2,keyasint,omitempty"`
	PathLen uint8  `cbor:"3,keyasint,omitempty"`
}

// RootShard is shard 0, which also holds the cluster id, the shard map and the nodes.
var RootShard = ShardID{}

// Compare orders shards by their root, then by depth, then by path.
func (s ShardID) Compare(o ShardID) int {
	return cmp.Or(cmp.Compare(s.Root, o.Root), cmp.Compare(s.PathLen, o.PathLen), cmp.Compare(s.Path, o.Path))
}

// String prints "12", "12.0", "12.0.1".
func (s ShardID) String() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(s.Root)))
	for i := int(s.PathLen) - 1; i >= 0; i-- {
		b.WriteByte('.')
		b.WriteByte('0' + byte(s.Path>>i&1))
	}
	return b.String()
}

// ParseShardID reads what String prints.
func ParseShardID(text string) (ShardID, error) {
	bad := func() (ShardID, error) {
		return ShardID{}, Errorf(CodeInvalidArgument, "parse shard id", "%q is not a shard id such as 12 or 12.0", text)
	}
	parts := strings.Split(text, ".")
	root, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || len(parts) > 17 {
		return bad()
	}
	s := ShardID{Root: uint16(root)}
	for _, p := range parts[1:] {
		if p != "0" && p != "1" {
			return bad()
		}
		s.Path = s.Path<<1 | uint16(p[0]-'0')
		s.PathLen++
	}
	return s, nil
}

// MarshalText makes shard ids readable in JSON and usable as map keys.
func (s ShardID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *ShardID) UnmarshalText(b []byte) error {
	v, err := ParseShardID(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// Contains reports whether hash belongs to s in a cluster bootstrapped with shards initial shards (a power of two).
func (s ShardID) Contains(hash uint64, shards int) bool {
	depth := bits.TrailingZeros(uint(shards))
	prefix := uint64(s.Root)<<s.PathLen | uint64(s.Path)
	return hash>>1>>(63-depth-int(s.PathLen)) == prefix
}
