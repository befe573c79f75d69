package seal

import (
	"github.com/eastguard/eastguard/internal/replica"
)

// plant breaks one rule at the seam between a core and its shell.
type plant struct {
	ackBeforeFsync     bool // a follower acks what it has taken
	extentWithoutFence bool // a replica says how far it goes and goes on
	extentBeforeFence  bool // a replica says how far it goes, and is fenced afterwards
	maximum            bool // the longest unbroken copy decides
	lateAck            bool // acks that arrive after the freeze are counted
	thaw               bool // a leader whose roll is not answered goes on
	fenceDiesWithFile  bool // a replica that drops an empty segment forgets that it was fenced
	missingIsEmpty     bool // a replica whose file is missing answers that it holds nothing
	leaderResumes      bool // a leader that restarts goes on leading, as if it had never been away
	unguardedRoll      bool // a roll ends whatever is active
	minimumOfRestarted bool // restarted copies count like unbroken ones
	anyDisk            bool // an empty disk answers for the one that was named
	bootIgnored        bool // another process of the node opens the segment
	lossUnrecorded     bool // nobody writes down that acks from memory may be gone
	unlistedIsUnbroken bool // a disk that does not list the segment is taken for one that never held it
}

// countLateAck acks what all replicas have said they hold, whatever the leader thinks.
func (r *run) countLateAck(at, seg int) {
	n, s, m := &r.w.nodes[at], r.segment(&r.w, seg), &r.w.net[seg]
	c := n.copyOf(seg, n.durable)
	end := int(s.Base) + c.count
	for _, follower := range s.nodes[1:] {
		end = min(end, int(m.acks[follower])-1)
	}
	if r.leads[n.lead[seg]].core.State() != replica.Frozen {
		return
	}
	for offset := int(s.Base); offset < end; offset++ {
		r.acked(seg, offset, c.payloads[offset-int(s.Base)], true)
	}
}

// resumeAll makes leaders again of what the log holds.
func (r *run) resumeAll(at int) {
	n := &r.w.nodes[at]
	for seg := range r.segments(&r.w) {
		s, c := r.segment(&r.w, seg), n.copyOf(seg, n.n)
		if s.place(at, n.id) == 0 && c.listed && !c.fenced && c.sealed < 0 {
			r.rebuild(at, seg)
		}
	}
}

// rebuild makes a leader that has appended what the log holds and heard what was acked.
func (r *run) rebuild(at, seg int) {
	n, s := &r.w.nodes[at], r.segment(&r.w, seg)
	c := n.copyOf(seg, n.n)
	n.lead[seg] = r.newLeader(seg, s)
	for _, payload := range c.payloads[:c.count] {
		r.callLead(at, seg, leadEvent{kind: leadAppend, arg: payload})
	}
	if held := n.copyOf(seg, n.durable).count; held > 0 {
		r.callLead(at, seg, leadEvent{kind: leadDurable, arg: uint8(int(s.Base) + held)})
	}
}
