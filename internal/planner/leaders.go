package planner

import (
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// ShardVoters are the voters of one shard, in the order in which they should lead it.
type ShardVoters struct {
	Shard  base.ShardID
	Voters []base.NodeID
}

// Leaders says which voter of each shard should lead it, so that no node leads more than it must: where some spread
// differs by at most one between the fullest and the emptiest node, so does this one. Only nodes that are fit lead; a
// shard without any is not in the answer.
//
// It is a function of its input, so that nodes with the same view agree without asking. Each shard begins at its first
// fit voter, so that the loss of a node moves what it led and little else.
func Leaders(shards []ShardVoters, fit func(base.NodeID) bool) map[base.ShardID]base.NodeID {
	s := newSpread(shards, fit)
	for s.improve() {
	}
	leaders := make(map[base.ShardID]base.NodeID, len(s.shards))
	for i, leader := range s.leader {
		leaders[s.shards[i].Shard] = s.nodes[leader]
	}
	return leaders
}

// spread is an assignment of leaders that is being evened out.
type spread struct {
	shards []ShardVoters // those with a fit voter
	voters [][]int       // of each shard, its fit ones, by index of node
	nodes  []base.NodeID // fit, by name
	leader []int         // of each shard
	load   []int         // of each node
}

func newSpread(shards []ShardVoters, fit func(base.NodeID) bool) *spread {
	s := &spread{}
	shards = slices.Clone(shards)
	slices.SortFunc(shards, func(a, b ShardVoters) int { return a.Shard.Compare(b.Shard) })
	for _, shard := range shards {
		var voters []base.NodeID
		for _, v := range shard.Voters {
			if fit(v) {
				voters = append(voters, v)
			}
		}
		if len(voters) > 0 {
			s.shards = append(s.shards, ShardVoters{Shard: shard.Shard, Voters: voters})
			s.nodes = append(s.nodes, voters...)
		}
	}
	slices.Sort(s.nodes)
	s.nodes = slices.Compact(s.nodes)
	s.load = make([]int, len(s.nodes))
	for _, shard := range s.shards {
		var voters []int
		for _, v := range shard.Voters {
			i, _ := slices.BinarySearch(s.nodes, v)
			voters = append(voters, i)
		}
		s.voters = append(s.voters, voters)
		s.leader = append(s.leader, voters[0])
		s.load[voters[0]]++
	}
	return s
}

// improve moves one leadership's worth of load from a fuller node to one that has at least two less, if a chain of
// shards connects them: the first gives one of its shards to another voter of it, that one gives one of its own on, and
// so forth. When no such chain is left, no other assignment is more even.
func (s *spread) improve() bool {
	order := make([]int, len(s.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.load[b] - s.load[a] })
	for _, from := range order {
		if s.relieve(from) {
			return true
		}
	}
	return false
}

// relieve looks for the shortest chain from a node to one with at least two less, and shifts along it.
func (s *spread) relieve(from int) bool {
	via := make([]int, len(s.nodes)) // the shard by which a node was reached; -1: not reached
	for i := range via {
		via[i] = -1
	}
	owned := s.owned()
	seen := make([]bool, len(s.nodes))
	seen[from] = true
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, shard := range owned[queue[0]] {
			for _, v := range s.voters[shard] {
				if seen[v] {
					continue
				}
				seen[v], via[v] = true, shard
				if s.load[v]+2 <= s.load[from] {
					s.shift(from, v, via)
					return true
				}
				queue = append(queue, v)
			}
		}
	}
	return false
}

func (s *spread) owned() [][]int {
	owned := make([][]int, len(s.nodes))
	for shard, leader := range s.leader {
		owned[leader] = append(owned[leader], shard)
	}
	return owned
}

// shift gives each shard on the chain to the node that it leads to.
func (s *spread) shift(from, to int, via []int) {
	s.load[from]--
	s.load[to]++
	for to != from {
		shard := via[to]
		to, s.leader[shard] = s.leader[shard], to
	}
}

// Limits of how a node gives leaderships away on its own. They let every node that comes back take its share within
// seconds, and keep two nodes that see the cluster differently from playing ball.
const (
	LeaderSettled  = 10 * time.Second // the other has been the better leader for so long
	LeaderStart    = 5 * time.Second  // the same, when this node has just started, as all may have
	LeaderFar      = 4 * time.Second  // the same, when leaders are far from even
	LeaderPause    = 2 * time.Second  // between two transfers of one node
	LeaderReturned = 5 * time.Minute  // a shard that came back at once is not given to the same node again before
	leaderFarFrom  = 4                // shards that others should lead, and half of those led here: far from even
	leaderAtOnce   = time.Minute      // what comes back later has its own reasons
	leaderStarting = time.Minute      // for so long a node has just started
)

// LedShard is a shard led here, and who should lead it instead.
type LedShard struct {
	Shard     base.ShardID
	Preferred base.NodeID // empty: nobody else
	Ready     bool        // the preferred node is a voter, answers and has caught up
}

// Handovers is the memory of a node that gives leaderships away. The zero value remembers nothing. It is not safe for
// concurrent use.
type Handovers struct {
	since map[base.ShardID]preference
	given map[base.ShardID]preference // to whom a shard was given last, and when
	last  time.Time
}

type preference struct {
	node base.NodeID
	at   time.Time
	back bool // what was given has come back at once
}

// Next chooses what to give away now: usually nothing or one shard, the one that waits longest. Where leaders are far
// from even, as after the founding of a cluster or the start of a whole one, it is all that others should lead, once
// nothing has changed for a while: one by one that would take a minute. started is when this node did; the shards are
// those led here, in any order.
func (h *Handovers) Next(now, started time.Time, led []LedShard) []LedShard {
	waiting := h.waiting(now, led)
	settled := LeaderSettled
	switch {
	case farFromEven(len(waiting), len(led)) && now.Sub(h.since[waiting[len(waiting)-1].Shard].at) >= LeaderFar:
		return h.give(now, waiting)
	case now.Sub(started) < leaderStarting:
		settled = LeaderStart
	}
	if len(waiting) == 0 || now.Sub(h.since[waiting[0].Shard].at) < settled || !h.last.IsZero() && now.Sub(h.last) < LeaderPause {
		return nil
	}
	return h.give(now, waiting[:1])
}

func farFromEven(waiting, led int) bool { return waiting >= leaderFarFrom && 2*waiting >= led }

// waiting are the shards that may be given to a node that is ready for them, the longest first. What is not ready, or
// has another preference than before, begins to wait anew.
func (h *Handovers) waiting(now time.Time, led []LedShard) (waiting []LedShard) {
	since := make(map[base.ShardID]preference, len(led))
	for _, l := range led {
		if l.Preferred == "" || !l.Ready {
			continue
		}
		p, known := h.since[l.Shard]
		if !known || p.node != l.Preferred {
			p = preference{node: l.Preferred, at: now}
		}
		since[l.Shard] = p
		if !h.bounced(now, l) {
			waiting = append(waiting, l)
		}
	}
	h.since = since
	slices.SortStableFunc(waiting, func(a, b LedShard) int { return since[a.Shard].at.Compare(since[b.Shard].at) })
	return waiting
}

func (h *Handovers) give(now time.Time, list []LedShard) []LedShard {
	if h.given == nil {
		h.given = make(map[base.ShardID]preference)
	}
	h.last = now
	for _, l := range list {
		h.given[l.Shard] = preference{node: l.Preferred, at: now}
		delete(h.since, l.Shard)
	}
	return list
}

// bounced reports whether the preferred node had the shard and gave it back at once, not long ago: it sees things
// differently.
func (h *Handovers) bounced(now time.Time, l LedShard) bool {
	given, ever := h.given[l.Shard]
	if !ever || given.node != l.Preferred {
		return false
	}
	if !given.back {
		if now.Sub(given.at) >= leaderAtOnce {
			delete(h.given, l.Shard)
			return false
		}
		given.back = true
		h.given[l.Shard] = given
	}
	return now.Sub(given.at) < LeaderReturned
}

// Failed says that a shard was not given away after all.
func (h *Handovers) Failed(shard base.ShardID) { delete(h.given, shard) }
