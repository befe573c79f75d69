package gossip

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/hashicorp/memberlist"
)

// Member is one node as this process sees it.
type Member struct {
	Self
	Rename      uint32 // how often this start came back after a false burial
	Address     string // where gossip reaches it, ip:port
	Liveness    topology.Liveness
	Incarnation uint32
	Since       time.Time // this process has seen it in this liveness
}

func (m *Member) life() life { return life{m.Boot, m.Rename} }

// Events is the member as topology takes it: what it says of itself, then the failure detector's word.
func (m *Member) Events() []topology.Event {
	return []topology.Event{
		{Seen: &topology.Seen{
			ID: m.Node, Disk: m.Disk, Boot: m.Boot, Rename: m.Rename, Instance: m.Instance, Address: m.Client, Rack: m.Rack,
			Labels: m.Labels, Version: m.Version, Admitted: m.State != Starting, Leaving: m.State == Leaving,
		}},
		{Moved: &topology.Moved{ID: m.Node, Boot: m.Boot, Rename: m.Rename, Liveness: m.Liveness}},
	}
}

// Snapshot is everyone this process knows of, itself included. It does not change; the next one does.
type Snapshot struct {
	Version uint64
	Members []Member // by node id, one each: its latest life; read only
}

// Member finds a node.
func (s *Snapshot) Member(id base.NodeID) (Member, bool) {
	i, ok := slices.BinarySearchFunc(s.Members, id, func(m Member, id base.NodeID) int { return strings.Compare(string(m.Node), string(id)) })
	if !ok {
		return Member{}, false
	}
	return s.Members[i], true
}

// Count is how many members are in a liveness.
func (s *Snapshot) Count(l topology.Liveness) int {
	n := 0
	for i := range s.Members {
		if s.Members[i].Liveness == l {
			n++
		}
	}
	return n
}

// maxDead bounds how many of the dead are remembered; the longest dead are forgotten first.
const maxDead = 4096

// roll is the membership from one reading to the next. It belongs to the agent's loop.
type roll struct {
	members map[base.NodeID]*Member
	metas   map[base.NodeID]string // as last decoded
}

func newRoll() *roll {
	return &roll{members: make(map[base.NodeID]*Member), metas: make(map[base.NodeID]string)}
}

// fold takes a reading of all states. buried reports lives that are over, for members which memberlist has forgotten.
func (r *roll) fold(states []state, self *Member, selfMeta string, buried func(base.NodeID, life) bool, now time.Time) (changed bool) {
	for i := range states {
		changed = r.foldOne(&states[i], self.Node, now) || changed
	}
	if r.metas[self.Node] != selfMeta {
		r.metas[self.Node] = selfMeta
		delete(r.members, self.Node)
	}
	changed = r.set(*self, now) || changed
	dead := 0
	for id, m := range r.members {
		if m.Liveness < topology.Dead && id != self.Node && buried(id, m.life()) {
			m.Liveness, m.Since, changed = topology.Dead, now, true
		}
		if m.Liveness >= topology.Dead {
			dead++
		}
	}
	for ; dead > maxDead; dead-- {
		r.forgetOldest()
		changed = true
	}
	return changed
}

func (r *roll) foldOne(s *state, self base.NodeID, now time.Time) bool {
	id, l, err := parseName(s.Name)
	if err != nil || id == self {
		return false
	}
	old := r.members[id]
	if old != nil && old.life().compare(l) > 0 {
		return false // a name that its process has given up, on its way out
	}
	m := Member{Rename: l.Rename, Address: s.address(), Incarnation: s.Incarnation, Liveness: liveness(s.State)}
	if old != nil && old.life() == l && r.metas[id] == string(s.Meta) {
		m.Self = old.Self
	} else {
		meta, err := decodeMeta(s.Meta)
		if err != nil {
			return false
		}
		m.Self = meta.self(id, l.Boot)
		r.metas[id] = string(s.Meta)
		return r.replace(m, now)
	}
	return r.set(m, now)
}

// set takes a member whose description has not changed; replace one whose has, or who is new.
func (r *roll) set(m Member, now time.Time) bool {
	old := r.members[m.Node]
	if old == nil {
		return r.replace(m, now)
	}
	if old.life() == m.life() && old.Liveness >= topology.Dead && m.Liveness < old.Liveness {
		return false // dead is final; memberlist is about to hear so
	}
	same := old.life() == m.life() && old.Liveness == m.Liveness && old.Address == m.Address && old.Incarnation == m.Incarnation
	if same {
		return false
	}
	return r.replace(m, now)
}

func (r *roll) replace(m Member, now time.Time) bool {
	m.Since = now
	if old := r.members[m.Node]; old != nil && old.life() == m.life() {
		if old.Liveness >= topology.Dead && m.Liveness < old.Liveness {
			return false
		}
		if old.Liveness == m.Liveness {
			m.Since = old.Since
		}
	}
	r.members[m.Node] = &m
	return true
}

func (r *roll) forgetOldest() {
	var oldest *Member
	for _, m := range r.members {
		if m.Liveness >= topology.Dead && (oldest == nil || m.Since.Before(oldest.Since)) {
			oldest = m
		}
	}
	if oldest != nil {
		delete(r.members, oldest.Node)
		delete(r.metas, oldest.Node)
	}
}

func (r *roll) snapshot(version uint64) *Snapshot {
	s := &Snapshot{Version: version, Members: make([]Member, 0, len(r.members))}
	for _, m := range r.members {
		s.Members = append(s.Members, *m)
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return s
}

func liveness(s memberlist.NodeStateType) topology.Liveness {
	switch s {
	case memberlist.StateAlive:
		return topology.Alive
	case memberlist.StateSuspect:
		return topology.Suspect
	case memberlist.StateLeft:
		return topology.Left
	case memberlist.StateDead:
	}
	return topology.Dead
}

// unmapped parses ip:port into the form addresses are compared in.
func unmapped(addr string) (string, bool) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return "", false
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String(), true
}
