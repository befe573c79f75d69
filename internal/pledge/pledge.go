package pledge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// Founder is a node on a disk at an address. Another disk is another founder.
type Founder struct {
	Node base.NodeID `cbor:"1,keyasint"`
	Disk base.DiskID `cbor:"2,keyasint"`
	Addr string      `cbor:"3,keyasint"` // ip:port of the cluster port
}

// String names it for people.
func (f Founder) String() string {
	return fmt.Sprintf("node %s at %s, disk %s", f.Node, f.Addr, f.Disk)
}

// same reports whether both are one process's identity; the address may have changed.
func (f Founder) same(o Founder) bool { return f.Node == o.Node && f.Disk == o.Disk }

// Pledge is the promise of a founder to one minter. The zero Pledge is none.
type Pledge struct {
	Minter   Founder  `cbor:"1,keyasint"`
	Founders []string `cbor:"2,keyasint"` // addresses, ascending
}

// IsZero reports whether there is none.
func (p Pledge) IsZero() bool { return p.Minter.Node == "" }

// Equal compares two.
func (p Pledge) Equal(o Pledge) bool {
	return p.Minter == o.Minter && slices.Equal(p.Founders, o.Founders)
}

// Plan is who founds, as one node's configuration has it.
type Plan struct {
	List   []string // addresses, this node's own among them
	Expect int      // founders
}

// check sorts the list and refuses a plan that could found two clusters, or none.
func (p *Plan) check(own string) error {
	const op = "plan the founding"
	slices.Sort(p.List)
	p.List = slices.Compact(p.List)
	switch n := len(p.List); {
	case !slices.Contains(p.List, own):
		return base.Errorf(base.CodeInvalidArgument, op, "the list %s lacks this node's own address %s", commas(p.List), own)
	case p.Expect < 1 || p.Expect > n:
		return base.Errorf(base.CodeInvalidArgument, op, "bootstrap_expect is %d, and join_seed_nodes names %d nodes with this one: %s", p.Expect, n, commas(p.List)).
			WithHint("name all founders in join_seed_nodes")
	case 2*p.Expect <= n:
		return base.Errorf(base.CodeInvalidArgument, op, "bootstrap_expect is %d, which is not more than half of the %d nodes named: %s", p.Expect, n, commas(p.List)).
			WithHint("raise it, or two halves could each found a cluster")
	}
	return nil
}

func (p *Plan) founders() []string { return p.List[:p.Expect] }

func (p *Plan) equal(o Plan) bool { return p.Expect == o.Expect && slices.Equal(p.List, o.List) }

func commas(list []string) string { return strings.Join(list, ", ") }

// Ask is a minter's request for a pledge.
type Ask struct {
	Minter Founder  `cbor:"1,keyasint"`
	List   []string `cbor:"2,keyasint"` // ascending
	Expect int      `cbor:"3,keyasint"`
}

// Answer is what a node says to an Ask, or to the question who it is.
type Answer struct {
	From    Founder        `cbor:"1,keyasint"`
	Cluster base.ClusterID `cbor:"2,keyasint,omitzero"` // it belongs to this one
	Pledge  Pledge         `cbor:"3,keyasint,omitzero"` // the one that it holds
	Refusal string         `cbor:"4,keyasint,omitempty"`
}
