package planner

import (
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

const (
	settleMs   = 10_000      // how long a node is up before segments roll for its sake
	startsMs   = 10 * 60_000 // each start within that time before the last one doubles it
	mostStarts = 6           // beyond which it does not grow: ten minutes and a little
)

// Starts remembers when nodes started, as far as this process has seen it, and so which of them start again and again.
// The zero value is ready; it is not safe for concurrent use.
type Starts struct {
	nodes map[base.NodeID]*starts
}

type starts struct {
	boot   uint64
	before []int64 // starts in the ten minutes before this one, oldest first
	upMs   int64   // since when this one is up
}

// Saw notes that a start of a node is alive.
func (s *Starts) Saw(id base.NodeID, boot uint64, nowMs int64) {
	if s.nodes == nil {
		s.nodes = make(map[base.NodeID]*starts)
	}
	switch known := s.nodes[id]; {
	case known == nil:
		s.nodes[id] = &starts{boot: boot, upMs: nowMs}
	case boot > known.boot:
		s.nodes[id] = known.again(boot, nowMs)
	}
}

// Forget drops nodes.
func (s *Starts) Forget(drop func(base.NodeID) bool) {
	maps.DeleteFunc(s.nodes, func(id base.NodeID, _ *starts) bool { return drop(id) })
}

// again is the node after it has started again, once or more often since it was looked at.
func (s *starts) again(boot uint64, nowMs int64) *starts {
	before := append(slices.Clone(s.before), s.upMs)
	for range min(boot-s.boot-1, mostStarts) {
		before = append(before, nowMs)
	}
	before = slices.DeleteFunc(before, func(ms int64) bool { return nowMs-ms > startsMs })
	return &starts{boot: boot, before: before[max(0, len(before)-mostStarts):], upMs: nowMs}
}

// Of says how often a node had started in the ten minutes before its last start, and when it is settled after that.
func (s *Starts) Of(id base.NodeID) (restarts int, settledMs int64) {
	n := s.nodes[id]
	if n == nil {
		return 0, 0
	}
	return len(n.before), n.upMs + settleMs<<len(n.before)
}
