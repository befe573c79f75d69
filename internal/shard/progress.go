package shard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
)

// heardFor is how long an answer of a member counts as a sign that it follows: raft's heartbeats come every 400 to
// 800 ms.
const heardFor = 3 * time.Second

// confirmed is which members of a group have a replica for the seat that they have now. A member that was removed and
// added again may still have the replica of before, with an order to give it up on its way: it must not vote until its
// node has taken the order of the new seat, after which it takes no older one.
type confirmed struct {
	mu    sync.Mutex
	term  uint64 // that this replica leads in
	since uint64 // orders of a configuration below this one say nothing: committed when the term began
	seats map[base.UUID]seatIndex
}

type seatIndex struct {
	added   uint64 // the configuration that lists the member; 0: one before the term
	ordered uint64 // the one that its node has confirmed
}

// begin forgets what was known in another term.
func (c *confirmed) begin(term, committed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term != c.term || c.seats == nil {
		c.term, c.since, c.seats = term, committed, make(map[base.UUID]seatIndex)
	}
}

// added notes that a member was added by the configuration of index.
func (c *confirmed) added(server base.UUID, index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seats != nil {
		c.seats[server] = seatIndex{added: index}
	}
}

// ordered notes that a member's node has taken an order of the configuration of index, or a later one that lists it.
func (c *confirmed) ordered(server base.UUID, index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.seats[server]; c.seats != nil && index > s.ordered {
		s.ordered = index
		c.seats[server] = s
	}
}

// has reports whether the member's node has confirmed the seat that the member has.
func (c *confirmed) has(server base.UUID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.seats[server]
	return known && s.ordered >= max(s.added, c.since) && s.ordered > 0
}

// progress is what the members of a group are known to hold, by their answers to this replica as leader. Raft keeps the
// same and shows it to nobody; the transport sees every answer and notes it here.
type progress struct {
	mu      sync.Mutex
	term    uint64 // of the answers; those of an earlier one are forgotten
	members map[raft.ServerID]memberProgress
}

// memberProgress is what one member is known to hold.
type memberProgress struct {
	match uint64    // its log is ours up to here; 0: not known in this term
	heard time.Time // when it acknowledged anything last
}

// appended notes the answer to entries, or to a heartbeat, which says nothing of the log.
func (p *progress) appended(id raft.ServerID, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	if !resp.Success {
		return // it has a later term, or other entries
	}
	p.note(id, req.Term, req.PrevLogEntry+uint64(len(req.Entries)))
}

// installed notes the answer to a snapshot.
func (p *progress) installed(id raft.ServerID, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse) {
	if resp.Success {
		p.note(id, req.Term, req.LastLogIndex)
	}
}

func (p *progress) note(id raft.ServerID, term, match uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case term < p.term:
		return
	case term > p.term || p.members == nil:
		p.term, p.members = term, make(map[raft.ServerID]memberProgress)
	}
	m := p.members[id]
	p.members[id] = memberProgress{match: max(m.match, match), heard: time.Now()}
}

// forget is for a member that is added or removed: it may begin with an empty log.
func (p *progress) forget(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, id)
}

// of is what is known of a member in a term that this replica leads in.
func (p *progress) of(term uint64, id raft.ServerID) memberProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term != p.term {
		return memberProgress{}
	}
	return p.members[id]
}

// follows reports whether the member has acknowledged something just now.
func (m memberProgress) follows(now time.Time) bool {
	return !m.heard.IsZero() && now.Sub(m.heard) < heardFor
}
