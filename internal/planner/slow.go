package planner

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

const (
	slowMs    = 60_000      // how long a node counts as slow at first
	mostSlow  = 10 * 60_000 // and at most, when it is found slow again and again
	reportMs  = 60_000      // how long a leader's report counts if no other one follows
	fewVoters = 3           // below which all leaders must agree
)

// Slowness judges which nodes are slow by what leaders report: a node that half of the leaders with segments on it (all
// of them, where there are fewer than three) name as late is slow for a minute, and twice as long each time it comes
// soon after the last. Every node judges for itself, by the same reports. The zero value is ready; it is not safe for
// concurrent use.
type Slowness struct {
	reports map[base.NodeID]lateReport
	spells  map[base.NodeID]spell
}

type lateReport struct {
	atMs      int64
	late      []base.NodeID
	followers []base.NodeID
}

// spell is a time for which a node is slow.
type spell struct{ fromMs, untilMs int64 }

// Report takes a leader's word: whom it has waited for in vain in the last ten seconds, itself perhaps among them, and
// on whose nodes its segments have followers.
func (s *Slowness) Report(leader base.NodeID, late, followers []base.NodeID, nowMs int64) {
	if s.reports == nil {
		s.reports, s.spells = make(map[base.NodeID]lateReport), make(map[base.NodeID]spell)
	}
	s.expire(nowMs)
	delete(s.reports, leader)
	if len(late)+len(followers) > 0 {
		s.reports[leader] = lateReport{atMs: nowMs, late: late, followers: followers}
	}
	for _, id := range late {
		if s.agreed(id) {
			s.begin(id, nowMs)
		}
	}
}

// agreed reports whether enough of the leaders that know a node find it late.
func (s *Slowness) agreed(id base.NodeID) bool {
	voters, named := 0, 0
	for _, r := range s.reports {
		late := slices.Contains(r.late, id)
		if late {
			named++
		}
		if late || slices.Contains(r.followers, id) {
			voters++
		}
	}
	if voters < fewVoters {
		return named == voters
	}
	return 2*named >= voters
}

func (s *Slowness) begin(id base.NodeID, nowMs int64) {
	last, again := s.spells[id]
	length := int64(slowMs)
	switch {
	case again && nowMs < last.untilMs:
		return // it is slow already
	case again:
		length = min(2*(last.untilMs-last.fromMs), mostSlow)
	}
	s.spells[id] = spell{fromMs: nowMs, untilMs: nowMs + length}
}

// expire forgets reports that nobody renewed, and spells so long ago that the next one is a first one.
func (s *Slowness) expire(nowMs int64) {
	for id, r := range s.reports {
		if nowMs-r.atMs > reportMs {
			delete(s.reports, id)
		}
	}
	for id, sp := range s.spells {
		if nowMs-sp.untilMs > mostSlow {
			delete(s.spells, id)
		}
	}
}

// Slow reports whether a node is slow.
func (s *Slowness) Slow(id base.NodeID, nowMs int64) bool { return nowMs < s.spells[id].untilMs }
