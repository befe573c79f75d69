package seal

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/replica"
)

// finding is a broken rule, with the shortest way to it.
type finding struct {
	what  string
	trace []string
}

func (f *finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", f.what)
	for i, line := range f.trace {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, line)
	}
	return b.String()
}

// search is a breadth-first walk over worlds. A state that was met is remembered by its hash: at 64 bits and a few
// million states the odds that two collide, and one is not looked at, are one in a million.
type search struct {
	*model

	seed     maphash.Seed
	met      map[uint64]struct{}
	parents  []parent
	found    *finding
	moves    int // steps out of the state at hand that change something
	frontier []reached
	next     []reached
}

// parent is how a state was first reached.
type parent struct {
	from int32
	by   step
}

type reached struct {
	w  world
	id int32
}

// result is what a search came to.
type result struct {
	found     *finding // nil when nothing is broken
	states    int
	exhausted bool // there are no more
}

// explore searches until something is found, nothing is left, or limit states were met.
func explore(m *model, limit int) result {
	s := &search{model: m, seed: maphash.MakeSeed(), met: make(map[uint64]struct{})}
	w := m.initial()
	s.met[maphash.Comparable(s.seed, w)] = struct{}{}
	s.parents = append(s.parents, parent{from: -1})
	s.frontier = []reached{{w, 0}}
	for len(s.frontier) > 0 {
		for i := range s.frontier {
			s.expand(&s.frontier[i])
			if s.found != nil || len(s.parents) >= limit {
				return result{found: s.found, states: len(s.parents)}
			}
		}
		s.frontier, s.next = s.next, s.frontier[:0]
	}
	return result{states: len(s.parents), exhausted: true}
}

// try takes a step on a copy of a world and keeps what is new.
func (s *search) try(from *reached, by step, take func(r *run)) {
	r := run{model: s.model, w: from.w}
	take(&r)
	r.settle()
	if r.w == from.w && r.bad == "" {
		return
	}
	s.moves++
	if r.bad == "" {
		h := maphash.Comparable(s.seed, r.w)
		if _, ok := s.met[h]; ok {
			return
		}
		s.met[h] = struct{}{}
		r.check()
	}
	id := int32(len(s.parents))
	s.parents = append(s.parents, parent{from: from.id, by: by})
	if r.bad != "" {
		s.found = &finding{what: r.bad, trace: s.trace(id)}
		return
	}
	s.next = append(s.next, reached{r.w, id})
}

func (s *search) trace(id int32) []string {
	var lines []string
	for ; s.parents[id].from >= 0; id = s.parents[id].from {
		lines = append(lines, s.parents[id].by.String())
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}

// expand takes every step that can be taken. Where there is none the system must be one that works: a segment that takes
// batches, or the last one of this world.
func (s *search) expand(from *reached) {
	w := &from.w
	s.moves = 0
	for at := range w.nodes {
		s.nodeSteps(from, at)
		for seg := range s.segments(w) {
			n := &w.nodes[at]
			if n.lead[seg] == retired {
				s.try(from, step{kind: resumeStep, at: uint8(at), seg: uint8(seg)}, func(r *run) { r.resume(at, seg) })
			}
			if running(n.lead[seg]) {
				s.leaderSteps(from, at, seg)
			}
			s.copySteps(from, at, seg)
		}
	}
	s.coordinatorSteps(from)
	if s.moves == 0 && s.found == nil && s.stuck(w) {
		s.found = &finding{what: describe("I13: nobody can end s%d", s.segments(w)), trace: s.trace(from.id)}
	}
}

// stuck reports whether the active segment takes no batches and will never end, although it may: there can be a
// successor, and if its leader is gone, coordinators may think so.
func (s *search) stuck(w *world) bool {
	seg := s.shards[w.meta].active()
	if seg+1 >= int(s.bounds.segments) {
		return false
	}
	switch lead := w.nodes[s.segment(w, seg).nodes[0]].lead[seg]; {
	case lead == retired:
		return false
	case running(lead):
		return s.leads[lead].core.State() != replica.Leading
	}
	return seg < int(s.bounds.fences)
}

func (s *search) nodeSteps(from *reached, at int) {
	n, b := &from.w.nodes[at], &s.bounds
	with := func(kind stepKind, a uint8) step { return step{kind: kind, at: uint8(at), a: a} }
	if n.durable < n.n {
		s.try(from, with(fsyncStep, 0), func(r *run) { r.fsync(at) })
	}
	if n.spent.crashes < b.crashes[at] {
		s.try(from, with(crashStep, 0), func(r *run) { r.w.nodes[at].spent.crashes++; r.crash(at, false) })
		if n.durable < n.n {
			s.try(from, with(crashStep, 1), func(r *run) { r.w.nodes[at].spent.crashes++; r.crash(at, true) })
		}
	}
	for records := uint8(1); n.spent.rots == 0 && records <= min(b.rots[at], n.durable); records++ {
		s.try(from, with(rotStep, records), func(r *run) { r.w.nodes[at].spent.rots++; r.rot(at, records) })
	}
	if n.spent.wipes < b.wipes[at] {
		s.try(from, with(wipeStep, 0), func(r *run) { r.w.nodes[at].spent.wipes++; r.wipe(at) })
	}
}

func (s *search) leaderSteps(from *reached, at, seg int) {
	w := &from.w
	core, m, b := s.leads[w.nodes[at].lead[seg]].core, &w.net[seg], &s.bounds
	with := func(kind stepKind, a uint8) step { return step{kind: kind, at: uint8(at), seg: uint8(seg), a: a} }
	leading := core.State() == replica.Leading
	if leading && core.Room(1) && w.ghosts.payloads < b.batches && core.Next() < maxRecords && !w.nodes[at].full() {
		payload := w.ghosts.payloads + 1
		s.try(from, with(produceStep, payload), func(r *run) { r.w.ghosts.payloads++; r.append(at, seg, payload) })
	}
	for f := range w.nodes {
		if m.acks[f] > 0 {
			s.try(from, with(ackStep, uint8(f)), func(r *run) { r.arriveAck(at, seg, f) })
		}
		if m.lost&(1<<f) != 0 && core.State() < replica.Frozen {
			s.try(from, with(lostStep, uint8(f)), func(r *run) { r.arriveLost(at, seg, f) })
		}
	}
	if leading && len(core.Lost()) > 0 && w.ghosts.payloads < b.batches {
		s.try(from, with(freezeStep, 0), func(r *run) { r.callLead(at, seg, leadEvent{kind: leadFreezeIfLost}) })
	}
	if leading && w.freezes < b.freezes && !b.last(seg) {
		s.try(from, with(freezeStep, 1), func(r *run) { r.w.freezes++; r.callLead(at, seg, leadEvent{kind: leadFreeze}) })
		s.try(from, with(drainStep, 0), func(r *run) { r.w.freezes++; r.callLead(at, seg, leadEvent{kind: leadDrain}) })
	}
	if core.State() == replica.Draining { // for too long
		s.try(from, with(freezeStep, 2), func(r *run) { r.callLead(at, seg, leadEvent{kind: leadFreeze}) })
	}
	if b.retire && core.Idle() && !b.last(seg) {
		s.try(from, with(retireStep, 0), func(r *run) { r.w.nodes[at].lead[seg] = retired })
	}
	if core.State() == replica.Frozen && s.plant.thaw {
		s.try(from, with(thawStep, 0), func(r *run) { r.rebuild(at, seg) })
	}
}

func (s *search) copySteps(from *reached, at, seg int) {
	w, b := &from.w, &s.bounds
	n, m := &w.nodes[at], &w.net[seg]
	with := func(kind stepKind, a, b uint8) step {
		return step{kind: kind, at: uint8(at), seg: uint8(seg), a: a, b: b}
	}
	if m.opened && at != s.segment(w, seg).nodes[0] {
		s.try(from, with(openStep, 0, 0), func(r *run) { r.arriveOpen(at, seg) })
	}
	if n.follow[seg] != 0 {
		for bit := range 16 {
			if offset, payload := bit/4, bit%4+1; m.batches&(1<<bit) != 0 {
				s.try(from, with(batchStep, uint8(offset), uint8(payload)), func(r *run) { r.arriveBatch(at, seg, offset, payload) })
			}
		}
		s.try(from, with(commitStep, 0, 0), func(r *run) { r.arriveCommit(at, seg) })
		if n.spent.files < b.files[at] && n.copyOf(seg, n.durable).listed {
			s.try(from, with(fileStep, 0, 0), func(r *run) { r.w.nodes[at].spent.files++; r.loseFile(at, seg) })
		}
	}
	s.try(from, with(fenceStep, 0, 0), func(r *run) { r.arriveFence(at, seg) })
	s.try(from, with(toldStep, 0, 0), func(r *run) { r.told(at, seg) })
	if b.tellAll || running(n.lead[seg]) {
		s.try(from, with(sealedStep, 0, 0), func(r *run) { r.toldSealed(at, seg) })
	}
}

// coordinatorSteps ends the active segment in each way that some coordinator may: by the end that its leader asks for,
// or by the answers to fences. Planning and committing are one step, but for one coordinator whose proposal takes its time.
func (s *search) coordinatorSteps(from *reached) {
	w := &from.w
	seg := s.shards[w.meta].active()
	if w.stale != 0 {
		s.try(from, step{kind: commitStaleStep}, func(r *run) {
			r.w.stale = 0
			r.commitRoll(w.stale)
		})
	}
	if seg+1 >= int(s.bounds.segments) {
		return
	}
	met := make(map[commandID]struct{})
	s.plans(from, seg, func(kind stepKind, end int, cmd commandID) {
		if _, again := met[cmd]; again || cmd == 0 {
			return
		}
		met[cmd] = struct{}{}
		by := step{kind: kind, seg: uint8(seg), a: uint8(end)}
		s.try(from, by, func(r *run) { r.commitRoll(cmd) })
		if s.bounds.stale && w.stale == 0 {
			by.kind = staleStep
			s.try(from, by, func(r *run) { r.w.stale = cmd })
		}
	})
}

// plans visits each roll of the active segment that can be planned now.
func (s *search) plans(from *reached, seg int, visit func(kind stepKind, end int, cmd commandID)) {
	w := &from.w
	leader := uint8(1) << s.segment(w, seg).nodes[0]
	for _, l := range s.looks(w, 0) {
		for end := range maxRecords + 1 {
			if w.net[seg].asks&(1<<end) != 0 {
				visit(askedStep, end, s.plan(planCall{meta: w.meta, look: l, end: int8(end)}))
			}
		}
	}
	looks := s.looks(w, leader)
	if s.bounds.alive {
		looks = append(looks, s.looks(w, 0)...)
	}
	eachSubset(&w.net[seg].answers, func(answers [replicas]answer) {
		for _, l := range looks {
			visit(answersStep, 0, s.plan(planCall{meta: w.meta, look: l, end: -1, answers: answers}))
		}
	})
}

// eachSubset visits every choice of at most one answer a replica, but the empty one.
func eachSubset(all *[replicas][2]answer, visit func([replicas]answer)) {
	var chosen [replicas]answer
	var choose func(at int)
	choose = func(at int) {
		if at == replicas {
			if chosen != [replicas]answer{} {
				visit(chosen)
			}
			return
		}
		chosen[at] = 0
		choose(at + 1)
		for _, a := range all[at] {
			if a != 0 {
				chosen[at] = a
				choose(at + 1)
			}
		}
		chosen[at] = 0
	}
	choose(0)
}

func (s *search) look(w *world, dead uint8) look {
	l := look{dead: dead}
	for at := range w.nodes {
		l.boot[at], l.disk[at] = w.nodes[at].boot, w.nodes[at].id
	}
	return l
}

// looks are what coordinators may believe: the truth but for who is dead, or what was true before the last restarts.
func (s *search) looks(w *world, dead uint8) []look {
	now := s.look(w, dead)
	before := now
	for at := range w.nodes {
		if s.bounds.behind && before.boot[at] > 1 {
			before.boot[at]--
		}
	}
	if before == now {
		return []look{now}
	}
	return []look{now, before}
}

// commitRoll is a proposal that reaches the log of the shard.
func (r *run) commitRoll(cmd commandID) {
	before := r.shards[r.w.meta].active()
	next := r.commit(r.w.meta, cmd)
	if r.shards[next].active() == before {
		return
	}
	if r.proposals[cmd].Cause == base.CauseLeaderFailure && r.proposals[cmd].counted == 0 {
		r.pass(sealedByRestarted)
	}
	r.w.meta = next
	r.w.ghosts.counted[before] = r.proposals[cmd].counted
	if r.proposals[cmd].Lossy {
		r.recordLoss(before, int(r.proposals[cmd].End))
	}
}
