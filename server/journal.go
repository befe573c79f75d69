package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/ring"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/telemetry"
)

// What the parts report, turned into the node's journal. An event of a shard's log stands in one journal only, that of
// the node that led the shard when it was applied: who follows all nodes sees it once. What a node believes (members,
// the ring) stands in every journal, because they may differ in it.

// note appends an event to the journal and lets those who watch this node know. It does not block.
func (s *Server) note(e telemetry.Event) {
	e.Node = s.id.Node
	s.journal.Append(e)
	s.told.of(s.registry, e.Type).Inc()
	s.watches.wake()
}

// eventCounts counts the events by type. The types are those of the program: there are a few dozen.
type eventCounts struct {
	mu sync.Mutex
	m  map[string]*telemetry.Counter
}

func (c *eventCounts) of(r *telemetry.Registry, event string) *telemetry.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.m[event]
	if !ok {
		if c.m == nil {
			c.m = make(map[string]*telemetry.Counter)
		}
		n = r.Counter("eastguard_events_total", "Events written to this node's journal, by type.", "type", event)
		c.m[event] = n
	}
	return n
}

// onApply hears what a shard has applied.
func (s *Server) onApply(shard base.ShardID, events []meta.Event) {
	if s.isNews(shard, events) {
		for _, e := range events {
			t := metaEvent(shard, e)
			if reason := s.words.take(e.Segment); reason != "" && e.Type == meta.EventSegmentSealed {
				t.Detail["reason"] = reason
			}
			s.note(t)
		}
	}
	if c := s.coord.Load(); c != nil {
		c.Applied(shard, events)
	}
}

// isNews reports whether what was applied is for this node to tell: it leads the shard, and it is not a log being
// applied again after a start, which an earlier start, or another node, has told.
func (s *Server) isNews(shard base.ShardID, events []meta.Event) bool {
	if len(events) == 0 || events[0].TimeMs < s.started.UnixMilli() {
		return false
	}
	if leader, _ := s.host.Leader(shard); leader != s.id.Node {
		return false
	}
	if _, serves := s.leadAt.get(shard); serves {
		return true
	}
	// It was decided under an earlier leader, whose followers learn of it with whatever comes next. That one has told it,
	// and its journal is there as long as it lives. Who it was, of several within a moment, is not known here.
	links := routedPeers{s}.Liveness()
	return slices.ContainsFunc(s.host.Voters(shard), func(n base.NodeID) bool {
		return n != s.id.Node && links[n].Status != peer.Reachable
	})
}

func metaEvent(shard base.ShardID, e meta.Event) telemetry.Event {
	t := telemetry.Event{
		Type: string(e.Type), TimeMs: e.TimeMs, Cause: e.Cause, GapMs: e.GapMs, Before: e.Before, After: e.After,
		Detail: map[string]string{"shard": shard.String()},
	}
	switch {
	case e.Type == meta.EventShardRecovered:
		t.Subject = shardSubject(shard)
	case e.Name != "" && e.Range != 0:
		t.Subject = e.Name + "/" + e.Range.String()
	case e.Name != "":
		t.Subject = e.Name
	case e.Node != "":
		t.Subject = string(e.Node)
	}
	set := func(key, value string) {
		if value != "" {
			t.Detail[key] = value
		}
	}
	if e.Segment != 0 {
		set("segment", e.Segment.String())
		set("end", strconv.FormatInt(e.Offset, 10))
	}
	if e.Next != 0 {
		set("next", e.Next.String())
	}
	if e.Bytes != 0 {
		set("bytes", strconv.FormatInt(e.Bytes, 10))
	}
	set("replicas", nodeList(nodesOf(e.Replicas)))
	set("late", nodeList(e.Late))
	set("lost", nodeList(e.Lost))
	if e.Forced || e.Lossy {
		set("loss", "possible")
	}
	set("detail", e.Detail)
	return t
}

// nodeList names nodes in the way that the other events do.
func nodeList(nodes []base.NodeID) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return strings.Join(names, ",")
}

// noteLead tells that this node has begun to lead a shard, after whom, and for how long nobody did: since the last sign
// of life of whoever led before. A handover by agreement takes less than that can measure.
func (s *Server) noteLead(shard base.ShardID, leading bool, term uint64) {
	s.leadAt.set(shard, leading)
	s.watches.changed()
	if !leading {
		return
	}
	e := telemetry.Event{
		Type: "LEADER_CHANGED", Subject: shardSubject(shard), After: string(s.id.Node),
		Detail: map[string]string{"term": strconv.FormatUint(term, 10)},
	}
	if from := s.claimedBefore(shard); from != "" {
		e.Before = string(from)
		if last, ok := (routedPeers{s}).Liveness()[from]; ok && !last.Heard.IsZero() {
			e.GapMs = max(time.Since(last.Heard).Milliseconds(), 0)
		}
	}
	s.note(e)
}

// claimedBefore is who led a shard as far as the gossip has spread it: this node's own claim comes after.
func (s *Server) claimedBefore(shard base.ShardID) base.NodeID {
	if a := s.members.agent.Load(); a != nil {
		claim, _ := a.ClaimOn(shard)
		return claim.Leader
	}
	return ""
}

// noteRing tells that shards have other intended voters from now on. The first ring of a start is no news.
func (s *Server) noteRing(before, after *versionedRing) {
	s.watches.changed()
	if before.ring.Len() == 0 || before.ring.Hash() == after.ring.Hash() {
		return
	}
	s.note(telemetry.Event{
		Type: "RING_CHANGED", Subject: "ring", Before: describeMembers(before.ring), After: describeMembers(after.ring),
		Detail: map[string]string{
			"version": strconv.FormatUint(uint64(after.version), 10), "hash": fmt.Sprintf("%#016x", after.ring.Hash()),
		},
	})
}

// describeMembers names a ring's members, if they are few.
func describeMembers(r *ring.Ring) string {
	const most = 10
	members := r.Members()
	if len(members) > most {
		return fmt.Sprintf("%d nodes", len(members))
	}
	nodes := make([]base.NodeID, len(members))
	for i, m := range members {
		nodes[i] = m.Node
	}
	return nodeList(nodes)
}

func shardSubject(id base.ShardID) string { return "shard " + id.String() }

// leadTimes remembers since when this node leads each of its shards.
type leadTimes struct {
	mu sync.Mutex
	m  map[base.ShardID]time.Time
}

func (l *leadTimes) set(shard base.ShardID, leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = make(map[base.ShardID]time.Time)
	}
	if leading {
		l.m[shard] = time.Now()
	} else {
		delete(l.m, shard)
	}
}

func (l *leadTimes) get(shard base.ShardID) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.m[shard]
	return at, ok
}

// leadSince is when a leader began, where this node can know; else 0.
func (s *Server) leadSince(shard base.ShardID, leader base.NodeID) int64 {
	if at, ok := s.leadAt.get(shard); ok && leader == s.id.Node {
		return at.UnixMilli()
	}
	return 0
}

// onRoll hears that a range goes on in a new segment: the gap is what producers felt.
func (s *Server) onRoll(r dataplane.Rolled) {
	s.note(telemetry.Event{
		Type: "SEGMENT_OPENED", Subject: r.Topic + "/" + r.Ref.Range.String(), Cause: r.Cause, GapMs: r.Gap.Milliseconds(),
		Detail: map[string]string{
			"role": "leader", "segment": r.Opened.String(), "previous": r.Sealed.String(), "base": strconv.FormatInt(r.End, 10),
		},
	})
}

// onCopy hears that the copy here of a sealed segment lacks a part of it, and so counts as none, or no longer does.
func (s *Server) onCopy(c dataplane.CopyChange) {
	e := telemetry.Event{
		Type: "REPLICA_SHORT", Subject: c.Topic + "/" + c.Ref.Range.String(),
		Detail: map[string]string{
			"segment": c.Segment.String(), "has": strconv.FormatInt(c.Has, 10), "end": strconv.FormatInt(c.End, 10),
		},
	}
	if c.Mended {
		e.Type = "REPLICA_MENDED"
	}
	s.note(e)
}

var storeEvents = map[store.EventKind]string{
	store.EventRecovered:   "STORE_RECOVERED",
	store.EventDamage:      "DATA_DAMAGED",
	store.EventQuarantined: "FILE_QUARANTINED",
	store.EventCheckpoint:  "", // too frequent to be news
	store.EventDiskFull:    "DISK_FULL",
	store.EventDiskFreed:   "DISK_FREED",
	store.EventDropped:     "FILES_DROPPED",
}

func (s *Server) onStoreEvent(e store.Event) {
	if e.Kind == store.EventDiskFull || e.Kind == store.EventDiskFreed {
		s.diskChanged()
	}
	name := storeEvents[e.Kind]
	if name == "" {
		return
	}
	detail := map[string]string{"detail": e.Detail}
	if e.Path != "" {
		detail["path"] = e.Path
	}
	if e.Bytes != 0 {
		detail["bytes"] = strconv.FormatInt(e.Bytes, 10)
	}
	subject := string(s.id.Node)
	if e.Segment != 0 {
		subject = e.Ref.String() + "/" + e.Segment.String()
	}
	s.note(telemetry.Event{Type: name, Subject: subject, Detail: detail})
}

// noteNode tells something about a node, with what there is to say in pairs of a name and a value.
func (s *Server) noteNode(node base.NodeID, kind, before, after string, pairs ...string) {
	e := telemetry.Event{Type: kind, Subject: string(node), Before: before, After: after, Detail: make(map[string]string, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		e.Detail[pairs[i]] = pairs[i+1]
	}
	s.note(e)
}
