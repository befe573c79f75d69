package peer

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// version is the one that this code speaks.
const version = 1

// Hello is how a process introduces itself on a connection.
type Hello struct {
	MinVersion uint8          `cbor:"1,keyasint"`
	MaxVersion uint8          `cbor:"2,keyasint"`
	Cluster    base.ClusterID `cbor:"3,keyasint"` // zero: none yet
	Node       base.NodeID    `cbor:"4,keyasint"`
	Boot       uint64         `cbor:"5,keyasint"`
	Instance   base.UUID      `cbor:"6,keyasint"`
	To         base.NodeID    `cbor:"7,keyasint,omitempty"` // whom the dialler expects to meet
	StartedMs  int64          `cbor:"8,keyasint,omitempty"`
}

// Outranks decides which of two processes of one node stays: the later boot, then the elder, then the lower instance.
// Both come to the same answer, so that exactly one ends.
func (h Hello) Outranks(o Hello) bool {
	return cmp.Or(
		cmp.Compare(o.Boot, h.Boot),
		cmp.Compare(h.StartedMs, o.StartedMs),
		bytes.Compare(h.Instance[:], o.Instance[:]),
	) < 0
}

// Twin says that a second process runs as this node.
type Twin struct {
	Seen Hello       // of the other process; empty when By says so
	By   base.NodeID // who turned this process away for the other's sake; "" = seen in person
}

// hello is this process's, for a connection to somebody.
func (h *Host) hello(to base.NodeID) Hello {
	return Hello{
		MinVersion: version, MaxVersion: version, Cluster: h.Cluster(),
		Node: h.o.Node, Boot: h.Boot(), Instance: h.o.Instance, To: to, StartedMs: h.o.StartedMs,
	}
}

// suits checks what can be checked of a peer's hello without knowing its connections.
func (h *Host) suits(theirs Hello) *base.Error {
	const op = "meet peer"
	own := h.Cluster()
	switch {
	case theirs.MinVersion > version || theirs.MaxVersion < version:
		return base.Errorf(base.CodeUnsupportedVersion, op, "node %s speaks versions %d to %d between nodes, this one %d", theirs.Node, theirs.MinVersion, theirs.MaxVersion, version)
	case theirs.Node.Check() != nil:
		return base.Errorf(base.CodeInvalidArgument, op, "a hello without a proper node id")
	case !own.IsZero() && !theirs.Cluster.IsZero() && own != theirs.Cluster:
		return base.Errorf(base.CodeDenied, op, "node %s belongs to cluster %s, this one to %s", theirs.Node, theirs.Cluster, own).
			WithHint("one of the two has a seed or an address of the other's cluster in its configuration")
	case theirs.Node == h.o.Node && theirs.Instance == h.o.Instance:
		return base.Errorf(base.CodeInvalidArgument, op, "the address is this node's own")
	case theirs.Node == h.o.Node:
		return base.Errorf(base.CodeFenced, op, "another process runs as node %s", theirs.Node).
			WithHint("each node needs a data directory, or at least a node_id, of its own")
	}
	return nil
}

// met reports a twin if that is what the hello is.
func (h *Host) met(theirs Hello) {
	if theirs.Node == h.o.Node && theirs.Instance != h.o.Instance {
		h.o.OnTwin(Twin{Seen: theirs})
	}
}

// greet is the dialler's side of the handshake: hello, and its answer.
func (h *Host) greet(nc net.Conn, in *frameReader, mine Hello) (Hello, error) {
	f := frame{kind: kindHello, id: 1, body: wire.Encode(mine)}
	if _, err := nc.Write(append(f.appendHeader(nil), f.body...)); err != nil {
		return Hello{}, err
	}
	a, err := in.next(maxHello)
	if err != nil {
		return Hello{}, err
	}
	switch {
	case a.kind != kindHello || a.flags&flagResponse == 0:
		return Hello{}, corrupt("the first frame is no answer to a hello")
	case a.flags&flagError != 0:
		e := wire.DecodeError(a.body)
		if e.Code == base.CodeFenced {
			h.o.OnTwin(Twin{By: e.Node})
		}
		return Hello{}, e
	}
	theirs, err := decodeHello(a)
	if err != nil {
		return theirs, err
	}
	h.met(theirs)
	if e := h.suits(theirs); e != nil {
		return theirs, e
	}
	if mine.To != "" && theirs.Node != mine.To {
		return theirs, base.Errorf(base.CodeNodeNotFound, "meet peer", "node %s answers where %s was expected", theirs.Node, mine.To)
	}
	return theirs, nil
}

func decodeHello(f frame) (Hello, error) {
	var hello Hello
	if f.kind != kindHello || f.id != 1 {
		return hello, corrupt("the first frame is no hello")
	}
	err := wire.Decode(f.body, &hello)
	return hello, err
}

// within runs a handshake: when ctx ends, the reads and writes on nc fail.
func within(ctx context.Context, nc net.Conn, shake func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	err := shake()
	if !stop() && err == nil {
		err = ctx.Err() // the deadline in the past may be set at any moment now
	}
	return err
}
