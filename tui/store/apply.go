package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Apply takes one message in.
func (s *Store) Apply(m Message) {
	s.setBack(m.Time)
	s.past.keep(s, m)
	s.apply(m)
}

func (s *Store) apply(m Message) {
	if m.Time.After(s.time) {
		s.time = m.Time
	}
	s.sample()
	if m.Node != "" && !s.heard(m) || m.Node == "" && m.ofNode() {
		return
	}
	switch {
	case m.Hello != nil:
		s.hello(m.Hello)
	case m.Conn != nil:
		s.conn(m.Time, m.Conn)
	case m.Stream != nil:
		s.stream(m)
	case m.Gap != nil:
		s.gap(m)
	case m.State != nil:
		s.state(m)
	case m.Counters != nil:
		s.counters(m)
	case m.Event != nil:
		s.event(m)
	case m.Nodes != nil:
		s.listNodes(m)
	case m.Shards != nil:
		s.listShards(m.Shards)
	case m.Totals != nil:
		s.cluster.Totals, s.cluster.Counted, s.headChanged = *m.Totals, m.Time, true
	case m.Health != nil:
		s.health = Health{Observer: m.Health.Observer, At: m.Time, Worst: m.Health.Worst(), Checks: m.Health.Checks}
		s.healthChanged = true
	case m.Topics != nil:
		s.topicPage(m.Time, m.Topics)
	case m.Topic != nil:
		s.topicDetail(m.Time, m.Topic)
	case m.Gone != nil:
		s.gone(m.Gone)
	case m.Segments != nil:
		s.segmentPage(m.Segments)
	case m.Logs != nil:
		s.logPage(m)
	case m.Reach != nil:
		s.reach(m.Reach)
	case m.Refused != nil:
		s.refused(m.Time, m.Refused)
	}
}

// heard notes that a node speaks. What an earlier start of it said comes too late: it is nothing any more.
func (s *Store) heard(m Message) bool {
	n := s.nodes.get(m.Node)
	if n == nil && s.nodes.len() >= maxNodes {
		return false
	}
	back := m.Gap != nil && m.Gap.Restarted // its stream says so itself: that is the start of now, whatever its number
	if n != nil && m.Boot != 0 && m.Boot < n.spoke && !back {
		return m.Event != nil
	}
	row := s.nodes.edit(m.Node)
	if n == nil {
		row.ID, row.State, row.CacheHit = s.names.node(m.Node), "unknown", -1
		s.believesChanged = true
	}
	if m.Boot > row.spoke || back && m.Boot != row.spoke {
		row.anew(m.Boot)
	}
	if m.Stream != nil || m.Gap != nil && !m.Gap.Over {
		return true
	}
	row.Heard = m.Time
	if row.Stream != StreamLive {
		s.setStream(row, StreamLive, "")
	}
	if s.cluster.Link.LastData.Before(m.Time) {
		s.cluster.Link.LastData, s.headChanged = m.Time, true
	}
	return true
}

// anew forgets what counts since a node's start.
func (n *Node) anew(boot uint64) {
	n.spoke, n.Boot = boot, max(n.Boot, boot)
	n.seen, n.logged, n.hits, n.misses, n.CacheHit = 0, 0, 0, 0, -1
	n.InBytes, n.OutBytes, n.InRecords, n.OutRecords = 0, 0, 0, 0
	n.Raw = sdk.NodeCounters{}
	n.countedAt = time.Time{}
}

func (s *Store) setStream(n *Node, state StreamState, err string) {
	n.Stream, n.Error = state, err
	s.headChanged, s.believesChanged = true, true
	if o := s.observers.get(n.ID); o != nil && o.Stale != (state != StreamLive) {
		s.observers.edit(n.ID).Stale = state != StreamLive
	}
}

// silence marks streams from which nothing has come for too long.
func (s *Store) silence(now time.Time) {
	for _, slot := range s.nodes.slots {
		if slot.row.Stream == StreamLive && now.Sub(slot.row.Heard) > StaleAfter {
			s.setStream(s.nodes.edit(slot.row.ID), StreamStale, "")
		}
	}
}

func (s *Store) hello(h *Hello) {
	c := &s.cluster
	if c.ID != "" && h.Cluster != "" && h.Cluster != c.ID {
		s.begin()
	}
	c.ID, c.Context, c.Seeds, c.Polling = h.Cluster, h.Context, h.Seeds, h.Polling
	s.headChanged = true
}

// begin forgets everything: what follows is of another cluster.
func (s *Store) begin() {
	fresh := New(s.opts)
	fresh.version, fresh.time = s.version+1, s.time
	for _, t := range []interface{ restart(version uint64) }{&fresh.nodes, &fresh.observers, &fresh.shards, &fresh.topics, &fresh.ranges, &fresh.segments, &fresh.groups} {
		t.restart(fresh.version)
	}
	for _, changed := range []*bool{&fresh.seals.changed, &fresh.changes.changed, &fresh.gaps.changed, &fresh.events.changed, &fresh.logs.changed} {
		*changed = true
	}
	fresh.healthChanged, fresh.sampled, fresh.believesChanged = true, true, true
	*s = *fresh
}

func (s *Store) conn(at time.Time, c *Conn) {
	l := &s.cluster.Link
	s.headChanged = true
	was := l.State
	switch {
	case c.Lost && was != LinkLost:
		since := l.LastData
		if since.IsZero() {
			since = at
		}
		l.State, l.Since = LinkLost, since
		for _, slot := range s.nodes.slots { // those that were heard a moment ago, too
			if n := slot.row; n.Stream == StreamLive || n.Stream == StreamStale {
				s.setStream(s.nodes.edit(n.ID), StreamLost, c.Error)
			}
		}
		s.gaps.add(&StreamGap{From: since, Reason: c.Error})
		s.local(at, "CLIENT_LOST", "", c.Error)
	case !c.Lost && was == LinkLost:
		s.local(at, "CLIENT_BACK", "", "reconnected after "+lasted(at.Sub(l.Since)))
		s.closeGap("", at)
		l.State, l.Since = LinkLive, at
	}
	l.Error, l.Tried, l.Attempt, l.Next = c.Error, c.Tried, c.Attempt, c.Next
}

// lasted is a time in whole seconds, as people say it: 14 s, 1m5s.
func lasted(d time.Duration) string {
	if d = d.Round(time.Second); d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return d.String()
}

func (s *Store) stream(m Message) {
	row := s.nodes.edit(m.Node)
	was := row.Stream
	switch state := m.Stream.State; {
	case state == was && m.Stream.Error == row.Error:
		return
	case state == StreamLive:
		row.Heard = m.Time
		s.setStream(row, StreamLive, "")
		if s.closeGap(m.Node, m.Time) {
			s.local(m.Time, "STREAM_BACK", m.Node, "")
		}
	case state == StreamLost && (was == StreamLive || was == StreamStale):
		s.setStream(row, state, m.Stream.Error)
		s.gaps.add(&StreamGap{Node: m.Node, From: row.Heard, Reason: m.Stream.Error})
		s.local(m.Time, "STREAM_LOST", m.Node, m.Stream.Error)
	default:
		s.setStream(row, state, m.Stream.Error)
	}
}

func (s *Store) gap(m Message) {
	if m.Gap.Over {
		if s.closeGap(m.Node, m.Time) {
			s.local(m.Time, "STREAM_BACK", m.Node, "")
		}
	}
	if m.Gap.Lost > 0 || m.Gap.Restarted {
		reason := "events were dropped before they were read"
		if m.Gap.Restarted {
			reason = "the node has started anew"
		}
		s.gaps.add(&StreamGap{Node: m.Node, From: m.Time, To: m.Time, Lost: m.Gap.Lost, Reason: reason})
	}
}

// closeGap ends the open gaps of a node; of all, if it is empty.
func (s *Store) closeGap(node sdk.NodeID, at time.Time) (closed bool) {
	for i, g := range slices.Backward(s.gaps.all()) {
		if g.Node == node && g.To.IsZero() {
			done := *g
			done.To = at
			s.gaps.replace(i, &done)
			closed = true
		}
	}
	return closed
}

// local writes an event of the program that watches.
func (s *Store) local(at time.Time, kind string, node sdk.NodeID, detail string) {
	e := &Event{At: at, Local: true}
	e.Type, e.Subject, e.Detail, e.TimeMs = kind, string(node), detail, at.UnixMilli()
	s.remember(e)
}
