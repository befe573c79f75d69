package gossip

import (
	"cmp"
	"maps"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/fxamacker/cbor/v2"
)

// MaxMeta is how many bytes a node may say of itself: memberlist repeats them in every alive message, and panics beyond.
const MaxMeta = 512

// Self is what a node says of itself. Node, Boot and Instance are fixed for the life of a process; the rest may change.
type Self struct {
	Node      base.NodeID
	Boot      uint64    // counts its starts
	Instance  base.UUID // of the process
	StartedMs int64     // of the process; the elder of two clones stays
	Disk      base.DiskID
	Client    string // host:port of the client port
	Peer      string // host:port of the cluster port, by the name the operator gave it; empty = the gossip address
	Data      string // host:port of the data port
	Admin     string // host:port of the admin port
	Rack      string
	Labels    map[string]string
	Version   string // of the binary
	State     State
}

// State is where a node says it stands. It is a word of its own about itself: what counts is what the root committed.
type State uint8

// The states.
const (
	Starting State = iota // not admitted yet
	Ready                 // the root has admitted this start
	Leaving               // it is shutting down
)

// meta is Self on the wire, beside the name, which carries the node, the boot and the rename.
type meta struct {
	Cluster   base.ClusterID    `cbor:"1,keyasint"`
	Instance  base.UUID         `cbor:"2,keyasint"`
	StartedMs int64             `cbor:"3,keyasint"`
	Disk      base.DiskID       `cbor:"4,keyasint"`
	Client    string            `cbor:"5,keyasint,omitempty"`
	Peer      string            `cbor:"6,keyasint,omitempty"`
	Data      string            `cbor:"7,keyasint,omitempty"`
	Admin     string            `cbor:"8,keyasint,omitempty"`
	Rack      string            `cbor:"9,keyasint,omitempty"`
	Labels    map[string]string `cbor:"10,keyasint,omitempty"`
	Version   string            `cbor:"11,keyasint,omitempty"`
	State     State             `cbor:"12,keyasint,omitempty"`
}

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{MaxNestedLevels: 8, MaxArrayElements: 1 << 17, MaxMapPairs: 1 << 10}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // options of the codec that do not fit each other: a mistake in this file
	}
	return v
}

// encode is the metadata of s in a cluster, or why it cannot be.
func (s *Self) encode(cluster base.ClusterID) ([]byte, error) {
	const op = "describe this node"
	if err := s.Node.Check(); err != nil {
		return nil, err
	}
	if s.Boot == 0 || s.Instance.IsZero() || cluster.IsZero() {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "boot, instance and cluster id must be set")
	}
	b, err := encoding.Marshal(meta{
		Cluster: cluster, Instance: s.Instance, StartedMs: s.StartedMs, Disk: s.Disk, Client: s.Client, Peer: s.Peer,
		Data: s.Data, Admin: s.Admin, Rack: s.Rack, Labels: s.Labels, Version: s.Version, State: s.State,
	})
	if err != nil {
		return nil, base.Wrap(base.CodeInternal, op, err)
	}
	if len(b) > MaxMeta {
		return nil, base.Errorf(base.CodeInvalidArgument, op, "addresses, rack, labels and version take %d bytes, %d is the limit", len(b), MaxMeta).
			WithHint("shorten the labels of this node")
	}
	return b, nil
}

func (s *Self) clone() Self {
	c := *s
	c.Labels = maps.Clone(s.Labels)
	return c
}

func decodeMeta(b []byte) (meta, error) {
	var m meta
	if len(b) > MaxMeta {
		return m, base.Errorf(base.CodeCorruptFrame, "read a member's metadata", "%d bytes, %d is the limit", len(b), MaxMeta)
	}
	if err := decoding.Unmarshal(b, &m); err != nil {
		return m, base.Wrap(base.CodeCorruptFrame, "read a member's metadata", err)
	}
	return m, nil
}

func (m *meta) self(id base.NodeID, boot uint64) Self {
	return Self{
		Node: id, Boot: boot, Instance: m.Instance, StartedMs: m.StartedMs, Disk: m.Disk, Client: m.Client, Peer: m.Peer,
		Data: m.Data, Admin: m.Admin, Rack: m.Rack, Labels: m.Labels, Version: m.Version, State: m.State,
	}
}

// process tells clones of one start apart.
type process struct {
	Boot      uint64
	StartedMs int64
	Instance  base.UUID
}

// outranks decides which of two processes of one NodeID stays: the later boot, then the elder, then the lower instance.
// Everybody who compares the same two comes to the same answer, so that exactly one of them stops.
func (p process) outranks(o process) bool {
	return cmp.Or(
		cmp.Compare(o.Boot, p.Boot),
		cmp.Compare(p.StartedMs, o.StartedMs),
		strings.Compare(string(p.Instance[:]), string(o.Instance[:])),
	) < 0
}
