package meta

import (
	"fmt"
	"math"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// RecordRecovery says that a shard lost its quorum for good and was rebuilt from what was left, at an operator's word:
// commands that only the lost voters held may be gone. It is the first command of the rebuilt shard, which tries until
// it is committed.
type RecordRecovery struct {
	Generation uint64      `cbor:"1,keyasint"` // of the shard from then on
	Node       base.NodeID `cbor:"2,keyasint"` // whose log was taken
	Server     base.UUID   `cbor:"3,keyasint"`
	Term       uint64      `cbor:"4,keyasint,omitempty"` // of that log's last entry
	Index      uint64      `cbor:"5,keyasint,omitempty"`
	Lost       []base.UUID `cbor:"6,keyasint,omitempty"` // servers that voted and did not answer
}

// Recovery is what a shard remembers of one, for ever.
type Recovery struct {
	RecordRecovery `cbor:"1,keyasint"`

	TimeMs int64 `cbor:"2,keyasint,omitempty"`
}

// EventShardRecovered says that a shard was rebuilt, with a possible loss.
const EventShardRecovered EventType = "SHARD_RECOVERED"

// Recoveries lists how often this shard was rebuilt after it had lost its quorum, oldest first; read only.
func (s *State) Recoveries() []Recovery { return slices.Clip(s.recoveries) }

func (a *applier) recordRecovery(cmd *RecordRecovery) Result {
	const op = "record recovery"
	if cmd.Generation == 0 || cmd.Node.Check() != nil || cmd.Server.IsZero() {
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "the recovery names no generation, node or server"))
	}
	if n := len(a.state.recoveries); n > 0 {
		switch last := a.state.recoveries[n-1]; {
		case last.Generation == cmd.Generation && last.Server == cmd.Server:
			return Result{} // said again
		case last.Generation >= cmd.Generation:
			return refuse(base.Errorf(base.CodePreconditionFailed, op, "generation %d has been recorded already", last.Generation))
		}
	}
	r := Recovery{RecordRecovery: *cmd, TimeMs: a.state.nowMs}
	r.Lost = slices.Clone(cmd.Lost)
	a.state.recoveries = append(slices.Clip(a.state.recoveries), r)
	a.state.leap()
	a.emit(Event{Type: EventShardRecovered, Node: cmd.Node, Detail: fmt.Sprintf(
		"generation %d, from the log of node %s up to entry %d of term %d, without %d voters", cmd.Generation, cmd.Node, cmd.Index, cmd.Term, len(cmd.Lost),
	)})
	return Result{}
}

// What a rebuilt shard adds to everything that it counts. The commands that were lost may have handed numbers out, and
// nodes and clients may hold them: none may come to mean something else, and what is said from now on must be newer than
// what was said then.
const (
	leapBy         = 1_000_000
	leapOfProducer = 100
)

func (s *State) leap() {
	s.opened += leapBy
	if s.root != nil {
		s.root.Version += leapBy
	}
	for _, t := range s.topics {
		t = t.clone()
		t.Version += leapBy
		t.Epoch += leapBy
		t.NextRange += leapBy
		t.Producers = slices.Clone(t.Producers)
		for i := range t.Producers {
			t.Producers[i].Epoch = min(t.Producers[i].Epoch, math.MaxInt16-leapOfProducer) + leapOfProducer
		}
		s.put(t)
	}
}

func (s *State) checkRecoveries() error {
	last := uint64(0)
	for _, r := range s.recoveries {
		if r.Generation <= last || r.Server.IsZero() {
			return fmt.Errorf("recovery of generation %d after %d", r.Generation, last)
		}
		last = r.Generation
	}
	return nil
}
