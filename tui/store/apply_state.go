package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// state takes what a node sees and leads.
func (s *Store) state(m Message) {
	st := m.State
	s.self(&st.Self, m.Node)
	row := s.nodes.edit(m.Node)
	row.Replicas, row.ShardLeaders = st.Self.Replicas, st.Self.ShardLeaders
	row.RingHash, row.RingVersion = st.RingHash, st.RingVersion
	o := s.observers.edit(m.Node)
	o.Node, o.Stale, o.RingHash, o.RingVersion = m.Node, false, st.RingHash, st.RingVersion
	members := st.Members[:min(len(st.Members), maxNodes)]
	o.Beliefs = make([]Belief, len(members))
	for i, b := range members {
		o.Beliefs[i] = Belief{
			Node: s.names.node(b.Node), State: s.names.of(b.State), Boot: b.Boot, Since: at(b.SinceMs), Vnodes: b.Vnodes,
			OwnsPerMillion: b.OwnsPerMillion, Status: s.names.of(b.Status), Rack: s.names.of(b.Rack),
		}
	}
	slices.SortStableFunc(o.Beliefs, func(a, b Belief) int { return cmp.Compare(a.Node, b.Node) })
	o.Beliefs = slices.CompactFunc(o.Beliefs, func(a, b Belief) bool { return a.Node == b.Node }) // one voice each
	s.believesChanged = true
	for i := range st.Shards {
		s.shard(m.Node, &st.Shards[i])
	}
}

// self takes what is known of a node by its own word.
func (s *Store) self(st *sdk.NodeStatus, node sdk.NodeID) {
	if node == "" || s.nodes.get(node) == nil && s.nodes.len() >= maxNodes {
		return
	}
	row := s.nodes.edit(node)
	if row.ID == "" {
		row.ID, row.State, row.CacheHit = node, "unknown", -1
	}
	s.believesChanged = true
	row.Address = cmp.Or(st.Address, row.Address)
	row.Rack = cmp.Or(st.Rack, row.Rack)
	row.Software = cmp.Or(st.Version, row.Software)
	row.Status = cmp.Or(st.Status, row.Status)
	row.Admitted, row.Full = st.Admitted, st.Full
	row.Vnodes, row.OwnsPerMillion = cmp.Or(st.Vnodes, row.Vnodes), cmp.Or(st.OwnsPerMillion, row.OwnsPerMillion)
	row.UptimeMs = cmp.Or(st.UptimeMs, row.UptimeMs)
}

// listNodes takes a list of all nodes: what the streams do not tell of them.
func (s *Store) listNodes(m Message) {
	if m.Nodes.Cluster != (sdk.NodeList{}).Cluster {
		s.cluster.ID = m.Nodes.Cluster.String()
		s.headChanged = true
	}
	for i := range m.Nodes.Nodes {
		st := &m.Nodes.Nodes[i]
		s.self(st, st.ID)
		if s.nodes.get(st.ID) == nil {
			continue // it has no name, or there are too many
		}
		row := s.nodes.edit(st.ID)
		row.RttUs = cmp.Or(st.RttUs, row.RttUs)
		row.Boot = max(row.Boot, st.Boot)
		row.Damaged, row.Quarantined, row.Short = st.Damaged, st.Quarantined, st.Short
		if row.countedAt.IsZero() { // its counters are fresher
			row.DiskUsed, row.DiskTotal = cmp.Or(st.DiskUsed, row.DiskUsed), cmp.Or(st.DiskTotal, row.DiskTotal)
			row.Segments, row.Leaders, row.Followers = st.Segments, st.Leaders, st.Followers
			row.Connections = st.Connections
			row.InBytes, row.OutBytes = float64(st.InBytesPerSec), float64(st.OutBytesPerSec)
			row.InRecords, row.OutRecords = float64(st.InRecordsPerSec), float64(st.OutRecordsPerSec)
			row.Raw.Fsync.P99Us, row.Raw.Ack.P99Us = st.FsyncP99Us, st.AckP99Us
		}
		if s.observers.len() == 0 { // nobody has told what it believes: this is the word of who answered
			row.State, row.Since = cmp.Or(st.State, "unknown"), at(st.SinceMs)
		}
	}
}

func (s *Store) reach(r *sdk.Reached) {
	for _, p := range r.Peers {
		if s.nodes.get(p.Node) != nil && len(p.RttUs) > 0 {
			s.nodes.edit(p.Node).RttUs = slices.Min(p.RttUs)
		}
	}
}

// listShards takes a list of all shards. Whoever made it asked the leaders: it is their word, but for those that did not
// answer.
func (s *Store) listShards(list *sdk.ShardList) {
	for i := range list.Shards {
		st, by := &list.Shards[i], list.Observer
		if st.Leader != "" && !slices.Contains(list.Missing, st.ID) {
			by = st.Leader
		}
		s.shard(by, st)
	}
}

// shard takes one node's word on a shard: that of the highest term counts, within a term that of the leader.
func (s *Store) shard(observer sdk.NodeID, st *sdk.ShardStatus) {
	was := s.shards.get(st.ID)
	if was == nil && s.shards.len() >= maxShards {
		return
	}
	if was != nil && !s.better(was, observer, st) {
		return
	}
	row := s.shards.edit(st.ID)
	if from := row.Leader; from != "" && from != st.Leader {
		row.LastFrom = from
	}
	if row.Leader != st.Leader {
		row.LeaderlessMs = 0
	}
	commit, applied, topics, trails := row.Commit, row.Applied, row.Topics, row.Trails
	row.ShardStatus, row.Observer, row.Since, row.Stale = *st, observer, at(st.SinceMs), false
	if st.Commit == 0 { // the streams leave out what only counts up
		row.Commit, row.Applied, row.Topics, row.Trails = commit, applied, topics, trails
	}
}

func (s *Store) better(was *Shard, observer sdk.NodeID, st *sdk.ShardStatus) bool {
	teller := s.nodes.get(was.Observer)
	switch {
	case st.Term != was.Term:
		return st.Term > was.Term
	case observer == was.Observer || teller == nil || teller.Stream == StreamLost || s.time.Sub(teller.Heard) > StaleAfter:
		return true
	case st.Leader == "":
		return was.Leader == ""
	case was.Leader == "":
		return true
	}
	return observer == st.Leader
}

// The first and the last moment that can be written down: years have four digits.
const (
	firstMs = -62135596799999
	lastMs  = 253402300799999
)

// at is a time of the wire; 0 is none. A node may tell any number: what no calendar has is the end of it.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(min(max(ms, firstMs), lastMs)).UTC()
}
