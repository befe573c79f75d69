package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// Every node tells the others how full its disk is and what it leads, so that coordinators place new segments well.

// usageMessage is one such report. It has no answer.
type usageMessage struct {
	Boot       uint64       `cbor:"1,keyasint"`
	Full       bool         `cbor:"2,keyasint,omitempty"`
	DiskFree   int64        `cbor:"3,keyasint"`
	DiskTotal  int64        `cbor:"4,keyasint"`
	Segments   int          `cbor:"5,keyasint"`
	Leading    int          `cbor:"6,keyasint"`
	BytesInSec int64        `cbor:"7,keyasint,omitempty"`
	Table      tableVersion `cbor:"8,keyasint"` // that the sender has
	Leaving    bool         `cbor:"9,keyasint,omitempty"`

	Late      []base.NodeID `cbor:"10,keyasint,omitempty"` // who stood still in segments that the sender led in the last 10 s
	Followers []base.NodeID `cbor:"11,keyasint,omitempty"` // who follows what it leads
}

const (
	usageEvery = 2 * time.Second
	usageScale = 40          // nodes above which reports become rarer, so that their number stays
	usageAge   = time.Second // how old a node's view of its own disk may be. To look costs a walk over every segment
)

// ownUsage looks at this node's disk.
func (s *Server) ownUsage() topology.Usage {
	st := s.store.Stats()
	u := topology.Usage{
		ID: s.id.Node, Boot: s.id.Boot, Full: st.DiskFull, DiskFree: st.DiskFree, DiskTotal: st.DiskTotal, Segments: st.Segments,
		BytesInSec: s.rates.now(time.Now()).inBytes,
	}
	if p := s.orders.plane.Load(); p != nil {
		u.Leading, u.Leaving = p.Leads(), p.Leaving()
	}
	return u
}

// view is the cluster as this node sees it now.
func (s *Server) view() topology.View {
	m := &s.members
	now := time.Now().UnixNano()
	if last := s.usageAt.Load(); now-last >= int64(usageAge) && s.usageAt.CompareAndSwap(last, now) {
		m.use(s.ownUsage())
	}
	return *m.view.Load()
}

// use takes a report into the view at once.
func (m *membership) use(u topology.Usage) {
	m.mu.Lock()
	m.usages[u.ID] = u
	m.mu.Unlock()
	for {
		before := m.view.Load()
		next := topology.Reduce(*before, topology.Event{Usage: &u})
		if next.Version == before.Version || m.view.CompareAndSwap(before, &next) {
			return
		}
	}
}

// hear takes another node's report: into the view at once what keeps segments off it, the rest with the next look.
func (m *membership) hear(u topology.Usage) {
	if u.Leaving || u.Full {
		m.use(u)
		return
	}
	m.mu.Lock()
	m.usages[u.ID] = u
	m.mu.Unlock()
}

// reportUsage tells everybody who is reachable, for as long as the node runs.
func (s *Server) reportUsage(ctx context.Context) error {
	pause := func() time.Duration {
		return usageEvery * time.Duration(max(1, len(s.members.nodeTable().Nodes)/usageScale))
	}
	next := time.NewTimer(pause())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.diskNews:
			s.members.use(s.ownUsage())
		case <-next.C:
			s.noteLeaderless()
			s.sample(time.Now())
			next.Reset(pause())
		}
		s.tellUsage()
	}
}

// diskChanged has everybody told at once that the disk here has filled up, or has room again: until coordinators know,
// they place segments on it that end with their first batch, hundreds a second. It does not block.
func (s *Server) diskChanged() {
	select {
	case s.diskNews <- struct{}{}:
	default: // it is about to be told
	}
}

func (s *Server) tellUsage() {
	own, _ := s.view().Node(s.id.Node)
	var late, followers []base.NodeID
	if p := s.orders.plane.Load(); p != nil {
		late, followers = p.LateNodes(time.Now()), p.FollowerNodes()
	}
	s.members.heardLate(s.id.Node, late, followers)
	msg := wire.Encode(usageMessage{
		Boot: s.id.Boot, Full: own.Full, DiskFree: own.DiskFree, DiskTotal: own.DiskTotal, Segments: own.Segments,
		Leading: own.Leading, BytesInSec: own.BytesInSec, Table: s.members.nodeTable().at(), Leaving: own.Leaving,
		Late: late, Followers: followers,
	})
	for _, node := range s.reachablePeers() {
		_ = s.peers.Send(node, kindUsage, msg) // the next one is on its way
	}
}

// tellLeaving tells everybody at once that this node takes nothing new. The rumour of it takes longer than many a stop.
func (s *Server) tellLeaving() {
	s.plane.Leave()
	s.members.use(s.ownUsage())
	s.viewChanged()
	s.tellUsage()
}

// takeUsage hears what another node reports. It runs on the connection's reader and does not block.
func (s *Server) takeUsage(_ context.Context, r *peer.Request) {
	var u usageMessage
	if err := wire.Decode(r.Body, &u); err != nil {
		r.Fail(err)
		return
	}
	r.Reply(nil)
	m := &s.members
	usage := topology.Usage{
		ID: r.From.Node, Boot: u.Boot, Full: u.Full, DiskFree: u.DiskFree, DiskTotal: u.DiskTotal, Segments: u.Segments,
		Leading: u.Leading, BytesInSec: u.BytesInSec, Leaving: u.Leaving,
	}
	m.hear(usage)
	if u.Leaving {
		s.viewChanged()
	}
	m.heardLate(r.From.Node, u.Late, u.Followers)
	if u.Table.newerThan(m.nodeTable().at()) {
		m.pullFrom(r.From.Node)
	}
	m.wakeUp()
}

// heardLate takes a leader's word on the nodes of its followers.
func (m *membership) heardLate(leader base.NodeID, late, followers []base.NodeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slowness.Report(leader, late, followers, time.Now().UnixMilli())
}

// judge is what follows for each living node from when it started and from what leaders say of it. The caller has the
// lock.
func (m *membership) judge(snapshot *gossip.Snapshot, now time.Time) []topology.Event {
	var events []topology.Event
	for i := range snapshot.Members {
		member := &snapshot.Members[i]
		if member.Liveness != topology.Alive {
			continue
		}
		m.starts.Saw(member.Node, member.Boot, now.UnixMilli())
		restarts, settled := m.starts.Of(member.Node)
		events = append(events, topology.Event{Judged: &topology.Judged{
			ID: member.Node, Boot: member.Boot, Slow: m.slowness.Slow(member.Node, now.UnixMilli()), Restarts: restarts, SettledMs: settled,
		}})
	}
	return events
}

// pullFrom asks for the table of a node, soon.
func (m *membership) pullFrom(node base.NodeID) {
	select {
	case m.pull <- node:
	default: // another one is asked already
	}
}
