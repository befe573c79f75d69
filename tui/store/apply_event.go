package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// event takes a line of a node's journal, and what follows from it.
func (s *Store) event(m Message) {
	e := m.Event
	row := s.nodes.get(m.Node)
	if row != nil && m.Boot == row.spoke && e.Seq != 0 {
		if e.Seq <= row.seen {
			return // told already
		}
		s.nodes.edit(m.Node).seen = e.Seq
	}
	ev := &Event{Event: *e, Boot: m.Boot, At: when(m.Time, row, e.TimeMs)}
	ev.Node = s.names.node(cmp.Or(e.Node, m.Node))
	for _, word := range []*string{&ev.Type, &ev.Cause, &ev.Before, &ev.After} {
		*word = s.names.of(*word)
	}
	s.remember(ev)
	switch e.Type {
	case "SEGMENT_SEALED":
		s.sealed(ev)
	case "SEGMENT_OPENED":
		s.opened(ev)
	case "LEADER_CHANGED":
		s.leaderChanged(ev)
	case "TOPIC_DELETED", "TOPIC_GONE":
		s.dropTopic(e.Subject)
	case sdk.EventRangeSplit, sdk.EventRangeMerged:
		s.topology(ev)
	case sdk.EventRepairStarted, sdk.EventSegmentRepaired:
		s.repaired(ev)
	case sdk.EventGroupGeneration:
		if g := s.groups.get(e.Subject); g != nil {
			if gen := parseDetail("g=" + e.After).position("g"); gen > g.Generation {
				s.groups.edit(e.Subject).Generation = gen
			}
		}
	}
}

// remember puts an event among the others by its time: nodes tell one after the other of what happened at once, and one
// that is heard again tells of what it did meanwhile.
func (s *Store) remember(e *Event) {
	s.arrived++
	e.arrived = s.arrived
	s.events.insert(e, func(other *Event) bool { return other.At.After(e.At) })
}

// sealed and opened are two words on one roll: the shard's leader tells of the end, the leader of the new segment of
// the gap. Either may come first.
func (s *Store) sealed(e *Event) {
	key, ok := s.rangeOf(e)
	if !ok {
		return
	}
	d := parseDetail(e.Detail)
	seal := &Seal{
		Time: e.At, Node: e.Node, Range: key, Old: d.segment("segment"), New: d.segment("next"), Cause: e.Cause, GapMs: -1,
		End: d.number("end"), Bytes: d.number("bytes"), Replicas: d.nodes("replicas", s.names), Lossy: d["loss"] != "",
	}
	if i := s.findSeal(key, seal.Old); i >= 0 {
		was := s.seals.all()[i]
		seal.Time, seal.Node, seal.Leader, seal.GapMs = was.Time, was.Node, was.Leader, was.GapMs
		s.seals.replace(i, seal)
	} else {
		if r := s.ranges.get(key); r != nil && r.Leader != "" {
			seal.Node = r.Leader
		}
		s.seals.add(seal)
	}
	s.endSegment(seal)
}

func (s *Store) opened(e *Event) {
	key, ok := s.rangeOf(e)
	if !ok {
		return
	}
	d := parseDetail(e.Detail)
	old := d.segment("previous")
	var seal Seal
	if i := s.findSeal(key, old); i >= 0 {
		seal = *s.seals.all()[i]
		seal.GapMs, seal.Leader, seal.New = e.GapMs, e.Node, d.segment("segment")
		s.seals.replace(i, &seal)
	} else if old != 0 {
		seal = Seal{Time: e.At, Node: e.Node, Range: key, Old: old, New: d.segment("segment"), Leader: e.Node, Cause: e.Cause, GapMs: e.GapMs, End: d.number("base")}
		if r := s.ranges.get(key); r != nil && r.Leader != "" {
			seal.Node = r.Leader
		}
		s.seals.add(&seal)
	}
	if row := s.editSegment(d.segment("segment")); row != nil {
		if row.State == "" {
			row.State, row.Copies = "active", -1
		}
		row.Range, row.Base, row.GapMs = key, d.number("base"), e.GapMs
		if row.Created.IsZero() {
			row.Created = e.At
		}
	}
	if r := s.ranges.get(key); r != nil {
		r = s.ranges.edit(key)
		r.Leader, r.Segment, r.SegmentBytes, r.SegmentCreated = e.Node, d.segment("segment"), 0, e.At
		s.touched[key.Topic] = struct{}{}
	}
}

// findSeal is the place of the seal of a segment, among the last ones.
func (s *Store) findSeal(key RangeKey, old sdk.SegmentID) int {
	const recent = 500
	all := s.seals.all()
	for i := len(all) - 1; i >= max(len(all)-recent, 0); i-- {
		if all[i].Old == old && all[i].Range == key {
			return i
		}
	}
	return -1
}

// endSegment writes a seal into the rows of the segments.
func (s *Store) endSegment(seal *Seal) {
	if s.segments.get(seal.Old) != nil {
		old := s.segments.edit(seal.Old)
		old.State, old.Cause, old.End, old.Sealed = "sealed", seal.Cause, seal.End, seal.Time
		if seal.Bytes > 0 {
			old.Bytes = seal.Bytes
		}
	}
	row := s.editSegment(seal.New)
	if row == nil {
		return
	}
	if row.State == "" {
		row.State, row.Range, row.Base, row.End, row.Created, row.Copies = "active", seal.Range, seal.End, seal.End, seal.Time, -1
	}
	if len(row.Replicas) > 0 || len(seal.Replicas) == 0 {
		return
	}
	for i, n := range seal.Replicas {
		r := Replica{Node: n}
		if i == 0 {
			r.State = "leader"
		}
		row.Replicas = append(row.Replicas, r)
	}
	row.Copies = len(row.Replicas)
	if t := s.topics.get(seal.Range.Topic); t != nil {
		row.Want = t.ReplicationFactor
	}
}

// editSegment is a segment's row to be changed; nil for no segment.
func (s *Store) editSegment(id sdk.SegmentID) *Segment {
	if id == 0 {
		return nil
	}
	if s.segments.get(id) == nil && s.segments.len() >= maxSegments {
		s.pruneSegments()
	}
	row := s.segments.edit(id)
	row.ID = id
	return row
}

// pruneSegments drops the oldest tenth of the sealed ones; of all, if there are none.
func (s *Store) pruneSegments() {
	var ids []sdk.SegmentID
	for id, slot := range s.segments.slots {
		if slot.row.State == "sealed" && slot.row.Repair == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		for id := range s.segments.slots {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:(len(ids)+9)/10] {
		s.segments.drop(id)
	}
	s.setListing(&s.cluster.ListedSegments, Listing{})
}

func (s *Store) leaderChanged(e *Event) {
	id, err := sdk.ParseShardID(strings.TrimPrefix(e.Subject, "shard "))
	if err != nil {
		return
	}
	term := parseDetail(e.Detail).position("term")
	was := s.shards.get(id)
	if was == nil && s.shards.len() >= maxShards || was != nil && term < was.Term {
		return
	}
	row := s.shards.edit(id)
	row.ID, row.Term, row.Since, row.LeaderlessMs, row.Stale = id, term, e.At, e.GapMs, false
	row.Leader, row.Observer, row.State = sdk.NodeID(e.After), e.Node, "ok"
	if e.Before != "" {
		row.LastFrom = sdk.NodeID(e.Before)
	}
}

// topology takes a split or a merge: the parents are sealed, the children begin.
func (s *Store) topology(e *Event) {
	key, ok := s.rangeOf(e)
	if !ok {
		return
	}
	d := parseDetail(e.Detail)
	c := &Change{
		Time: e.At, Topic: key.Topic, Merge: e.Type == sdk.EventRangeMerged, At: d.position("at"), Cause: e.Cause, Streak: int(d.number("streak")),
	}
	if c.Merge {
		c.Parents, c.Children = d.ranges("parents"), []sdk.RangeID{key.Range}
	} else {
		c.Parents, c.Children = []sdk.RangeID{key.Range}, d.ranges("children")
	}
	var topicID sdk.TopicID
	for i, id := range c.Parents {
		k := RangeKey{Topic: key.Topic, Range: id}
		if s.ranges.get(k) == nil {
			continue
		}
		r := s.ranges.edit(k)
		s.unrate(r, k)
		r.State, r.Cause, r.Sealed, r.Children, r.byLeader = "sealed", e.Cause, e.At, c.Children, false
		topicID = r.TopicID
		if i == 0 || r.Start < c.Start {
			c.Start = r.Start
		}
		if i == 0 || r.End == 0 || c.End != 0 && r.End > c.End {
			c.End = r.End
		}
	}
	s.changes.add(c)
	if topicID == (sdk.TopicID{}) { // no parent is known: where the children lie is not either
		return
	}
	for i, id := range c.Children {
		k := RangeKey{Topic: key.Topic, Range: id}
		if s.ranges.get(k) == nil && s.ranges.len() >= maxRanges {
			return
		}
		r := s.ranges.edit(k)
		if r.State != "" {
			continue // its leader has counted it already
		}
		r.Key, r.TopicID, r.State, r.Parents, r.Created, r.Load = k, topicID, "active", c.Parents, e.At, "unknown"
		r.Start, r.End = c.Start, c.End
		if !c.Merge && c.At != 0 && i == 0 {
			r.End = c.At
		} else if !c.Merge && c.At != 0 {
			r.Start = c.At
		}
		s.unrate(r, k)
	}
}

// repaired takes the begin or the end of a copy being made. The end stands in the timeline, in the lane of the node that
// has the copy now.
func (s *Store) repaired(e *Event) {
	key, ok := s.rangeOf(e)
	d := parseDetail(e.Detail)
	id := d.segment("segment")
	if !ok || id == 0 {
		return
	}
	target := sdk.NodeID(s.names.of(d["target"]))
	if e.Type == sdk.EventSegmentRepaired {
		s.seals.add(&Seal{Time: e.At, Node: target, Range: key, Old: id, Cause: "RECOVERY", GapMs: 0, Bytes: d.number("bytes")})
	}
	if s.segments.get(id) == nil {
		return
	}
	row := s.segments.edit(id)
	if e.Type == sdk.EventRepairStarted {
		row.Repair = &sdk.RepairProgress{
			Segment: id, Topic: key.Topic, Range: key.Range, Source: sdk.NodeID(s.names.of(d["source"])), Target: target,
			Total: d.number("bytes"), StartedMs: e.TimeMs,
		}
		s.repairing++
		return
	}
	row.Repair = nil
	if row.Copies >= 0 && row.Copies < row.Want {
		row.Copies++
	}
}

// since is for how long something has lasted.
func since(from, to time.Time) time.Duration { return max(to.Sub(from), 0) }

// rangeOf is the range that an event is about.
func (s *Store) rangeOf(e *Event) (RangeKey, bool) {
	key, ok := rangeOf(e.Subject)
	return s.names.key(key), ok
}
