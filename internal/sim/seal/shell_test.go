package seal

import (
	"github.com/eastguard/eastguard/internal/replica"
)

// run is one step being taken: a copy of a world, changed in place, and what went wrong in it.
type run struct {
	*model

	w   world
	bad string
}

func (r *run) fail(format string, args ...any) {
	if r.bad == "" {
		r.bad = describe(format, args...)
	}
}

// The leader's side.

// told is an assignment to lead an active segment: dataplane.(*actor).assigned, openSegment, makeDurable.
//
//   - A process whose boot is not the one named never opens the segment (actor.fromEarlierBoot).
//   - Neither does a node that has been fenced up to its epoch, or held it before (store.OpenSegment).
//   - The end of the old segment and the beginning of the new one are made durable together.
func (r *run) told(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	if s.place(at, n.id) != 0 || n.lead[seg] != 0 || n.follow[seg] != 0 || n.full() {
		return
	}
	if n.boot != bootOf(s, 0) && !r.plant.bootIgnored || int(n.fenced) > seg || n.copyOf(seg, n.n).listed {
		return
	}
	if seg > 0 {
		r.toldSealed(at, seg-1)
	}
	n.append(record(openEntry, seg, 0))
	n.lead[seg] = opening
}

// beginToLead follows the open record: dataplane.(*actor).beginToLead. A leader that goes on where it led before gives
// the successor what was pending above the committed end, offsets unchanged.
func (r *run) beginToLead(at, seg int) {
	n := &r.w.nodes[at]
	n.lead[seg] = r.newLeader(seg, r.segment(&r.w, seg))
	r.w.net[seg].opened = true
	if seg == 0 || !running(n.lead[seg-1]) {
		return
	}
	if old := r.leads[n.lead[seg-1]].core; old.State() == replica.Sealed {
		for _, payload := range old.Tail() {
			r.append(at, seg, payload)
			r.pass(tailReplayed)
		}
	}
}

// append is dataplane.(*actor).onAppend for a batch of one record.
func (r *run) append(at, seg int, payload uint8) {
	n := &r.w.nodes[at]
	n.disk.append(record(batchEntry, seg, int(payload)))
	r.callLead(at, seg, leadEvent{kind: leadAppend, arg: payload})
	if r.bounds.memory {
		r.durable(at, seg, int(r.leads[n.lead[seg]].core.Next()))
	}
}

// resume makes a leader again that was dropped: dataplane.(*actor).resume. The log refuses its batches if it was fenced
// meanwhile.
func (r *run) resume(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	if int(n.fenced) <= seg {
		n.lead[seg] = r.resumed(seg, s, int(s.Base)+n.copyOf(seg, n.n).count)
	}
}

// callLead gives a leader an event and carries out what it comes to: dataplane.(*actor).settle.
func (r *run) callLead(at, seg int, e leadEvent) {
	n, m := &r.w.nodes[at], &r.w.net[seg]
	e.of = n.lead[seg]
	led := r.lead(e)
	n.lead[seg] = led.next
	if led.err != nil {
		r.fail("%s stops: %v", nodeName(at), led.err)
		return
	}
	next := int(r.leads[led.next].core.Next())
	if led.ready.Advanced {
		first := int(led.ready.Commit) - len(led.ready.Done)
		for i, payload := range led.ready.Done {
			r.acked(seg, first+i, payload, e.kind != leadSealed)
		}
	}
	for _, send := range led.ready.Sends {
		for i, payload := range send.Items {
			m.batches |= batchBit(next-len(send.Items)+i, int(payload))
		}
		if r.bounds.readers {
			m.commit = max(m.commit, uint8(send.Commit))
		}
	}
	if led.ready.AskRoll {
		m.asks |= 1 << led.ready.Roll.End
	}
}

// arriveAck is a follower's ack at the leader: dataplane.(*actor).onAckFrom.
func (r *run) arriveAck(at, seg, from int) {
	n, m := &r.w.nodes[at], &r.w.net[seg]
	if !running(n.lead[seg]) || m.acks[from] == 0 {
		return
	}
	r.callLead(at, seg, leadEvent{kind: leadAck, node: uint8(from), arg: m.acks[from] - 1})
	if r.plant.lateAck {
		r.countLateAck(at, seg)
	}
}

// arriveLost is a follower's word that it will never ack again.
func (r *run) arriveLost(at, seg, from int) {
	if running(r.w.nodes[at].lead[seg]) && r.w.net[seg].lost&(1<<from) != 0 {
		r.callLead(at, seg, leadEvent{kind: leadLost, node: uint8(from)})
	}
}

// The follower's side.

// arriveOpen is a leader's open: dataplane.(*actor).onOpenFrom.
//
//   - Nobody becomes a replica by receiving data: a committed assignment names this node and this disk.
//   - It names this process, by its boot; another one answers lost.
//   - A node that has been fenced up to the epoch answers lost, whatever became of the segment's file
//     (store.OpenSegment).
func (r *run) arriveOpen(at, seg int) {
	n, m, s := &r.w.nodes[at], &r.w.net[seg], r.segment(&r.w, seg)
	if !m.opened || n.full() || n.lead[seg] != 0 {
		return
	}
	place := s.place(at, n.id)
	if n.follow[seg] == 0 {
		if place < 1 || n.boot != bootOf(s, place) || int(n.fenced) > seg || n.gone&(1<<seg) != 0 {
			r.lost(at, seg)
			return
		}
		n.follow[seg] = r.newFollower(seg, s)
	}
	var verdict replica.Verdict
	r.callFollow(at, seg, func(f *replica.Follower) { verdict = f.Open(sourceOf(s)) })
	r.obey(at, seg, verdict, record(openEntry, seg, 0))
}

// arriveBatch is an append: dataplane.(*actor).onAppendFrom.
func (r *run) arriveBatch(at, seg, offset, payload int) {
	n := &r.w.nodes[at]
	if n.follow[seg] == 0 || n.full() {
		return
	}
	var verdict replica.Verdict
	r.callFollow(at, seg, func(f *replica.Follower) {
		verdict = f.Append(sourceOf(r.segment(&r.w, seg)), int64(offset), int64(offset+1))
		if (r.bounds.memory || r.plant.ackBeforeFsync) && verdict == replica.Take {
			f.Durable(int64(offset + 1))
		}
	})
	r.obey(at, seg, verdict, record(batchEntry, seg, payload))
}

func (r *run) obey(at, seg int, verdict replica.Verdict, e entry) {
	switch verdict {
	case replica.Take:
		r.w.nodes[at].append(e)
	case replica.Refuse:
		r.lost(at, seg)
	case replica.Early, replica.Duplicate, replica.Gap:
	}
}

// lost is the word that this replica will never ack again.
func (r *run) lost(at, seg int) {
	r.pass(refused)
	if r.bounds.losses {
		r.w.net[seg].lost |= 1 << at
	}
}

// arriveCommit is the leader's commit, which travels with its appends.
func (r *run) arriveCommit(at, seg int) {
	n := &r.w.nodes[at]
	if n.follow[seg] != 0 {
		r.callFollow(at, seg, func(f *replica.Follower) {
			f.Commit(sourceOf(r.segment(&r.w, seg)), int64(r.w.net[seg].commit))
		})
	}
}

// callFollow gives a follower an event and carries out what it comes to.
func (r *run) callFollow(at, seg int, call func(f *replica.Follower)) {
	n, m := &r.w.nodes[at], &r.w.net[seg]
	var ready replica.FollowerReady
	n.follow[seg], ready = r.follow(n.follow[seg], call)
	if ready.Publish {
		r.readable(at, seg, int(ready.Commit))
	}
	if ready.Lost != 0 {
		r.lost(at, seg)
	}
	if ready.Ack {
		m.acks[at] = max(m.acks[at], uint8(ready.Durable)+1)
	}
}

// Both.

// fsync makes all that was written durable, and calls back for each record in order: store's callbacks.
func (r *run) fsync(at int) {
	n := &r.w.nodes[at]
	from, to := n.durable, n.n
	n.durable = to
	for i := from; i < to; i++ {
		seg := n.log[i].seg()
		switch n.log[i].kind() {
		case openEntry:
			if n.lead[seg] == opening {
				r.beginToLead(at, seg)
			} else if n.follow[seg] != 0 {
				r.callFollow(at, seg, (*replica.Follower).Opened)
			}
		case batchEntry:
			r.durable(at, seg, int(r.segment(&r.w, seg).Base)+n.copyOf(seg, i+1).count)
		case fenceEntry:
			r.answerFence(at, seg, i)
		case sealEntry:
		}
	}
}

func (r *run) durable(at, seg, end int) {
	n := &r.w.nodes[at]
	switch {
	case running(n.lead[seg]):
		r.callLead(at, seg, leadEvent{kind: leadDurable, arg: uint8(end)})
	case n.follow[seg] != 0:
		r.callFollow(at, seg, func(f *replica.Follower) { f.Durable(int64(end)) })
	}
}

// arriveFence is a coordinator's fence: dataplane.(*Plane).fence, store.Fence.
//
//   - A leader that is fenced stops counting acks before the fence is written; one that is opening never opens.
//   - A follower takes and acks nothing more.
//   - Later appends of the epoch or below are refused from the call on; the answer goes out when the fence is durable.
//   - Another disk than the one named answers that it is not the one, and so it is no answer.
func (r *run) arriveFence(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	if seg >= int(r.bounds.fences) || n.full() || s.named(at) < 0 {
		return
	}
	if s.place(at, n.id) < 0 && !r.plant.anyDisk {
		r.w.net[seg].say(at, answered|otherDisk)
		return
	}
	if r.plant.extentWithoutFence || r.plant.extentBeforeFence {
		before := r.w.net[seg].answers[at]
		if r.answerFence(at, seg, n.n); r.plant.extentWithoutFence || before != r.w.net[seg].answers[at] {
			return
		}
	}
	for i, e := range n.log[:n.n] {
		if e == record(fenceEntry, seg, 0) {
			if i < int(n.durable) {
				r.answerFence(at, seg, uint8(i)) // fenced before: the promise stands, and is worth the same
			}
			return
		}
	}
	r.stop(at, seg)
	n.append(record(fenceEntry, seg, 0))
}

// stop ends, in memory, all that is under way in a segment and those before it.
func (r *run) stop(at, seg int) {
	n := &r.w.nodes[at]
	n.fenced = max(n.fenced, uint8(seg+1))
	for old := 0; old <= seg; old++ {
		switch {
		case n.lead[old] == retired:
		case n.lead[old] == opening:
			n.lead[old] = 0
		case running(n.lead[old]):
			r.callLead(at, old, leadEvent{kind: leadFreeze})
		case n.follow[old] != 0:
			r.callFollow(at, old, (*replica.Follower).Fence)
		}
	}
}

// answerFence says how far the copy goes that stands before the fence at index i: dataplane.(*Plane).extent.
//
//   - Unbroken is who has the boot that was named, also if nothing was ever opened.
//   - A disk that was named and never listed the segment answers its base; one whose file is missing answers damaged.
func (r *run) answerFence(at, seg int, i uint8) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	c := n.copyOf(seg, i)
	end := int(s.Base) + c.count
	if c.sealed >= 0 {
		end = min(end, c.sealed)
	}
	a := answered | answer(end)
	if n.boot == bootOf(s, s.named(at)) || r.plant.unlistedIsUnbroken && !c.listed {
		a |= unbroken
	}
	if !c.listed {
		a |= unlisted
	}
	if n.gone&(1<<seg) != 0 {
		a = a&unbroken | answered | damaged | answer(s.Base)
		if r.plant.missingIsEmpty {
			a &^= damaged
		}
	}
	r.w.net[seg].say(at, a)
}

// toldSealed is the committed end of a segment: dataplane.(*actor).sealed, store.Seal. It fences the epoch for good,
// also when the segment is empty and dropped, and also on a replica that never held it.
func (r *run) toldSealed(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	if s.End < 0 || s.place(at, n.id) < 0 || n.full() {
		return
	}
	c := n.copyOf(seg, n.n)
	r.endCore(at, seg)
	if c.listed && c.sealed < 0 {
		n.append(record(sealEntry, seg, int(s.End)))
	}
	n.fenced = max(n.fenced, uint8(seg+1))
	if r.plant.fenceDiesWithFile && s.End == s.Base {
		n.fenced, n.follow[seg] = 0, 0
	}
}

// endCore gives the committed end to whatever core there is. One that contradicts what was acked ends the process, unless
// it is on record that acked records may be gone: dataplane.(*actor).endLead.
func (r *run) endCore(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	switch {
	case n.lead[seg] == retired: // its copy is all there is
	case running(n.lead[seg]):
		if core := r.leads[n.lead[seg]].core; r.isLossy(seg) && core.Commit() > s.End {
			n.lead[seg] = retired
			return
		}
		r.callLead(at, seg, leadEvent{kind: leadSealed, arg: uint8(s.End)})
	case n.follow[seg] == 0:
		n.lead[seg] = 0
		n.follow[seg] = r.newFollower(seg, s)
		fallthrough
	default:
		r.callFollow(at, seg, func(f *replica.Follower) {
			if err := f.Seal(s.End); err != nil && !r.isLossy(seg) {
				r.fail("%s stops: %v", nodeName(at), err)
			}
		})
	}
}

// crash ends a process and starts the next one: nothing of its memory is left, and of its log what was durable, or as
// much more as the page cache had written.
func (r *run) crash(at int, unsynced bool) {
	n := &r.w.nodes[at]
	if unsynced {
		n.durable = n.n
	}
	n.cut(n.durable)
	r.restart(at)
}

func (r *run) restart(at int) {
	n := &r.w.nodes[at]
	n.lead, n.follow = [maxSegments]coreID{}, [maxSegments]coreID{}
	n.fenced = n.fence()
	if r.plant.leaderResumes {
		r.resumeAll(at)
		return
	}
	n.boot++
}

// rot is a crash after which the last durable records are silently gone.
func (r *run) rot(at int, records uint8) {
	n := &r.w.nodes[at]
	n.cut(n.durable - records)
	n.rotted = true
	r.restart(at)
}

// wipe replaces a node's disk by an empty one. Its starts are counted anew: not even the boot tells it from the old one.
func (r *run) wipe(at int) {
	n := &r.w.nodes[at]
	*n = node{disk: disk{id: n.id + 1}, boot: 1, spent: n.spent}
}

// loseFile takes a segment's file away from a follower that runs on: what it should append to is not there.
func (r *run) loseFile(at, seg int) {
	n := &r.w.nodes[at]
	n.gone |= 1 << seg
	r.callFollow(at, seg, (*replica.Follower).Failed)
}

// settle takes the steps that come at once, until there are none.
//
//   - A node that will not crash any more syncs at once: a later fsync is an ack that arrives later, and those do anyway.
//   - A segment behind the first is open on its followers as soon as its leader has it, unless opens may be late.
//   - In the last segment, where nothing is fenced or sealed any more, batches and acks arrive at once. All that can
//     still go wrong there is that it acks, and it does that soonest so.
func (r *run) settle() {
	for again := true; again; {
		again = false
		for seg := 1; seg < r.segments(&r.w); seg++ {
			r.settleSegment(seg)
		}
		for at := range r.w.nodes {
			if n := &r.w.nodes[at]; n.durable < n.n && !n.mayCrash(at, &r.bounds) {
				r.fsync(at)
				again = true
			}
		}
	}
}

func (r *run) settleSegment(seg int) {
	s := r.segment(&r.w, seg)
	for _, at := range s.nodes[1:] {
		if n := &r.w.nodes[at]; n.follow[seg] == 0 && s.place(at, n.id) > 0 && !r.bounds.late {
			r.arriveOpen(at, seg)
		}
		if !r.bounds.last(seg) {
			continue
		}
		r.arriveBatches(at, seg)
		r.arriveAck(s.nodes[0], seg, at)
	}
}

// arriveBatches delivers what was sent of a segment and is not there.
func (r *run) arriveBatches(at, seg int) {
	n, batches := &r.w.nodes[at], r.w.net[seg].batches
	for offset := int(r.segment(&r.w, seg).Base); batches>>(4*offset) != 0; offset++ {
		for payload := 1; n.follow[seg] != 0 && payload <= 4 && int(r.follows[n.follow[seg]].core.End()) == offset; payload++ {
			if batches&batchBit(offset, payload) != 0 {
				r.arriveBatch(at, seg, offset, payload)
			}
		}
	}
}
