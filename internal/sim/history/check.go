package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/eastguard/eastguard/internal/base"
)

// state is one topic's register. The id of a topic whose creation was answered with unknown is not known until
// somebody sees it.
type state struct {
	exists bool
	id     base.TopicID
	value  string
}

// step says whether an operation may happen in a state, and what state it leaves.
func step(s state, op Op) (bool, state) {
	if op.Answer == Unknown {
		return true, effect(s, op) // an order that puts it last is one in which it never happened
	}
	switch {
	case op.Answer == NotFound:
		return !s.exists, s
	case op.Answer == Exists:
		return s.exists, s
	case op.Kind == Create:
		return !s.exists, effect(s, op)
	case !s.exists:
		return false, s
	}
	// Done, on a topic that exists: it must be the same one.
	if !op.ID.IsZero() {
		if !s.id.IsZero() && s.id != op.ID {
			return false, s
		}
		s.id = op.ID
	}
	if op.Kind == Describe && op.Seen != s.value {
		return false, s
	}
	return true, effect(s, op)
}

// effect is what the operation does where it can.
func effect(s state, op Op) state {
	switch {
	case op.Kind == Create && !s.exists:
		return state{exists: true, id: op.ID, value: op.Value}
	case op.Kind == Alter && s.exists:
		s.value = op.Value
	case op.Kind == Delete && s.exists:
		return state{}
	}
	return s
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, _ any) (bool, any) {
		ok, next := step(s.(state), in.(Op))
		return ok, next
	},
	DescribeOperation: func(in, _ any) string { return in.(Op).String() },
}

// Check judges a history, topic by topic, each for at most limit of real time: one that takes longer is an error too,
// since nothing is known about it. Call it outside of a bubble of virtual time.
func Check(ops []Op, limit time.Duration) error {
	byTopic := make(map[string][]Op)
	for _, op := range ops {
		if op.Answer != Failed {
			byTopic[op.Topic] = append(byTopic[op.Topic], op)
		}
	}
	var names []string
	for name := range byTopic {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ops := byTopic[name]
		if result := porcupine.CheckOperationsTimeout(model, operations(ops), limit); result != porcupine.Ok {
			return fmt.Errorf("the history of topic %s is not linearizable (%s):\n%s", name, result, list(ops))
		}
	}
	return nil
}

func operations(ops []Op) []porcupine.Operation {
	list := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		list[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return}
		if op.Answer == Unknown {
			list[i].Return = math.MaxInt64
		}
	}
	return list
}

func list(ops []Op) string {
	slices.SortFunc(ops, func(a, b Op) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "  %12v %12v  %s\n", time.Duration(op.Call), time.Duration(op.Return), op)
	}
	return b.String()
}

// Fate is what a history says about a topic once nothing is under way any more.
type Fate uint8

// The fates.
const (
	Either Fate = iota
	Present
	Absent
)

// Fates tells which topics must exist after a history, and which must not. It speaks only where the operation that
// was answered last began after all other changes had been answered, and none of them is unknown; what remains is
// for Check, which a read of each topic afterwards makes complete.
func Fates(ops []Op) map[string]Fate {
	type change struct {
		last    Op
		clash   bool // two at once
		unknown bool
	}
	changes := make(map[string]*change)
	sorted := slices.Clone(ops)
	slices.SortFunc(sorted, func(a, b Op) int { return int(a.Call - b.Call) })
	for _, op := range sorted {
		if op.Kind != Create && op.Kind != Delete || op.Answer == Failed {
			continue
		}
		c := changes[op.Topic]
		if c == nil {
			c = &change{last: op}
			changes[op.Topic] = c
		} else {
			c.clash = op.Call < c.last.Return
			if op.Return > c.last.Return {
				c.last = op
			}
		}
		c.unknown = c.unknown || op.Answer == Unknown
	}
	fates := make(map[string]Fate)
	for name, c := range changes {
		switch {
		case c.unknown || c.clash:
			fates[name] = Either
		case c.last.Kind == Create: // done, or refused because it exists
			fates[name] = Present
		default:
			fates[name] = Absent
		}
	}
	return fates
}
