package gossip

import (
	"github.com/eastguard/eastguard/internal/base"
)

// The messages between agents that are not memberlist's own: a kind byte, then CBOR.
const (
	kindClaim  = 1
	kindBuried = 2 // to a process whose alive message was refused because that life is dead
	kindTaken  = 3 // to a process whose NodeID another one keeps
)

type buriedMessage struct {
	Node  base.NodeID `cbor:"1,keyasint"`
	Life  life        `cbor:"2,keyasint"`
	Grave life        `cbor:"3,keyasint"`
	From  string      `cbor:"4,keyasint"` // a gossip address that surely works
}

type takenMessage struct {
	Node     base.NodeID `cbor:"1,keyasint"`
	Instance base.UUID   `cbor:"2,keyasint"`
	Winner   base.UUID   `cbor:"3,keyasint"`
	Boot     uint64      `cbor:"4,keyasint"`
}

func encodeMessage(kind byte, m any) []byte {
	return append([]byte{kind}, must(encoding.Marshal(m))...)
}

// encode is n as the message it stands for, sent by who is reached at from.
func (n *notice) encode(from string) []byte {
	if n.Instance.IsZero() {
		return encodeMessage(kindBuried, buriedMessage{n.ID, n.Life, n.Grave, from})
	}
	return encodeMessage(kindTaken, takenMessage{n.ID, n.Instance, n.Winner, n.Boot})
}

// decodeNotice reads a Buried or a Taken; nil for what is neither.
func decodeNotice(b []byte) *notice {
	switch b[0] {
	case kindBuried:
		var m buriedMessage
		if decoding.Unmarshal(b[1:], &m) == nil {
			return &notice{ID: m.Node, Life: m.Life, Grave: m.Grave, From: m.From}
		}
	case kindTaken:
		var m takenMessage
		if decoding.Unmarshal(b[1:], &m) == nil && !m.Instance.IsZero() {
			return &notice{ID: m.Node, Instance: m.Instance, Winner: m.Winner, Boot: m.Boot}
		}
	}
	return nil
}
