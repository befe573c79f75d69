package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

// A coordinator that does not hear the leader of a segment asks another replica of it whether it does: the connection
// between two nodes may be cut while each of them is well.

// hearsMessage asks how long a node has been silent.
type hearsMessage struct {
	Node base.NodeID `cbor:"1,keyasint"`
}

// hearsAnswer is 0 for a node that is heard, or with which no connection is kept.
type hearsAnswer struct {
	SilentMs int64 `cbor:"1,keyasint,omitempty"`
}

// takeHears runs on the connection's reader and does not block.
func (s *Server) takeHears(_ context.Context, r *peer.Request) {
	var m hearsMessage
	if err := wire.Decode(r.Body, &m); err != nil {
		r.Fail(err)
		return
	}
	r.Reply(wire.Encode(hearsAnswer{SilentMs: s.contact(m.Node).Silent.Milliseconds()}))
}

// lostAfter is the silence after which a peer counts as unreachable: the least that one can say of it then.
const lostAfter = 500 * time.Millisecond

// contacts is what the connections with other nodes say of them.
func (s *Server) contacts() map[base.NodeID]coord.Contact {
	now := time.Now()
	links := routedPeers{s}.Liveness()
	contacts := make(map[base.NodeID]coord.Contact, len(links)+1)
	for node, state := range links {
		c := coord.Contact{Kept: true, Refused: state.Status == peer.Refused, Boot: state.Boot}
		if state.Status != peer.Reachable {
			c.Silent = silentFor(state, now)
		}
		contacts[node] = c
	}
	contacts[s.id.Node] = coord.Contact{Kept: true, Boot: s.id.Boot}
	return contacts
}

func (s *Server) contact(node base.NodeID) coord.Contact { return s.contacts()[node] }

// silentFor is how long a node that is not reachable has been silent. It counts from when that was noticed, less what it
// takes to notice: a process that stood still has heard nobody, and that says nothing about them.
func silentFor(state peer.State, now time.Time) time.Duration {
	silent := lostAfter
	if !state.Since.IsZero() {
		silent += now.Sub(state.Since)
	}
	return silent
}
