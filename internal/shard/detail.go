package shard

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
)

// Member is one replica of a shard, as the replica here knows it.
type Member struct {
	Node     base.NodeID
	Server   base.UUID // of its meta directory
	Voter    bool
	Leader   bool
	Intended bool   // by the ring
	Match    uint64 // the last entry it is known to hold; only a leader knows others'
	Heard    bool   // it has answered this leader just now
}

// Detail is everything about one shard that the replica here knows.
type Detail struct {
	Status

	Members       []Member
	Intended      []base.NodeID // by the ring, in its order
	FirstIndex    uint64        // of the log
	LastIndex     uint64
	SnapshotIndex uint64
	SnapshotBytes int64
	Recoveries    []meta.Recovery
	Seats         string // what the leader does about its seats, or waits for; empty elsewhere
}

// Detail describes the replica of a shard on this node.
func (h *Host) Detail(shard base.ShardID) (Detail, error) {
	g, err := h.group(shard)
	if err != nil {
		return Detail{}, err
	}
	d := Detail{
		Status: g.status(), Intended: planner.Intended(h.o.Ring(), shard, h.o.Voters),
		SnapshotIndex: g.snapshots.newestIndex(), SnapshotBytes: g.snapshots.newestSize(),
	}
	d.FirstIndex, _ = g.log.FirstIndex()
	d.LastIndex, _ = g.log.LastIndex()
	_ = g.fsm.view(func(s *meta.State) error {
		d.Recoveries = s.Recoveries()
		return nil
	})
	now := time.Now()
	for _, s := range g.members(g.readyTerm.Load()) {
		d.Members = append(d.Members, Member{
			Node: s.node, Server: s.server, Voter: s.voter, Leader: s.node == d.Leader,
			Intended: slices.Contains(d.Intended, s.node), Match: s.match, Heard: s.follows(now),
		})
	}
	if step := g.seatStep.Load(); step != nil && d.Ready {
		d.Seats = step.Why
	}
	return d, nil
}

// Leading is the term in which this node leads a shard, serving; 0 when it does not.
func (h *Host) Leading(shard base.ShardID) uint64 {
	g, err := h.group(shard)
	if err != nil {
		return 0
	}
	return g.readyTerm.Load()
}

// member is one server of a group's configuration, with what is known of it.
type member struct {
	memberProgress

	id     raft.ServerID
	server base.UUID
	node   base.NodeID
	addr   raft.ServerAddress
	voter  bool
}

// members are the servers of the group's configuration, with what this replica knows of them as leader of a term; in
// another role it knows only of itself.
func (g *group) members(term uint64) []member {
	servers := g.servers()
	members := make([]member, 0, len(servers))
	for _, s := range servers {
		m := member{id: s.ID, node: g.nodeOf(s.ID, s.Address), addr: s.Address, voter: s.Suffrage == raft.Voter}
		m.server, _ = base.ParseUUID(string(s.ID))
		if s.ID == g.serverID {
			last, _ := g.log.LastIndex()
			m.memberProgress = memberProgress{match: max(last, g.snapshots.newestIndex()), heard: time.Now()}
		} else if term != 0 {
			m.memberProgress = g.progress.of(term, s.ID)
		}
		members = append(members, m)
	}
	return members
}
