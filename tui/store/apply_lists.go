package store

import (
	"cmp"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

func (s *Store) topicPage(now time.Time, p *TopicPage) {
	listed := make(map[string]struct{}, len(p.Topics))
	for i := range p.Topics {
		t := &p.Topics[i]
		listed[t.Name] = struct{}{}
		if s.topics.get(t.Name) == nil && s.topics.len() >= maxTopics {
			continue
		}
		row := s.topics.edit(t.Name)
		row.TopicSummary, row.Listed = *t, now
		s.touched[t.Name] = struct{}{}
	}
	s.setListing(&s.cluster.ListedTopics, Listing{Whole: p.Complete})
	if !p.Complete {
		return
	}
	for name := range s.topics.slots {
		if _, ok := listed[name]; !ok {
			s.dropTopic(name)
		}
	}
}

func (s *Store) dropTopic(name string) {
	if s.topics.get(name) == nil {
		return
	}
	s.topics.drop(name)
	for k := range s.ranges.slots {
		if k.Topic == name {
			s.ranges.drop(k)
		}
	}
	for id, slot := range s.segments.slots {
		if slot.row.Range.Topic == name {
			s.segments.drop(id)
		}
	}
}

// topicDetail takes everything about a topic.
func (s *Store) topicDetail(now time.Time, d *sdk.TopicDetail) {
	name := s.names.of(d.Summary.Name)
	if s.topics.get(name) == nil && s.topics.len() >= maxTopics {
		return
	}
	row := s.topics.edit(name)
	row.TopicSummary, row.Listed, row.Detailed = d.Summary, now, now
	s.touched[name] = struct{}{}
	kept := make(map[sdk.RangeID]struct{}, len(d.Ranges))
	for i := range d.Ranges {
		kept[d.Ranges[i].ID] = struct{}{}
		s.rangeDetail(now, name, d.Summary.ID, &d.Ranges[i], max(d.Copies, d.Summary.ReplicationFactor))
	}
	for k, slot := range s.ranges.slots { // those that are trimmed away
		if _, ok := kept[k.Range]; !ok && k.Topic == name && !slot.row.byLeader {
			s.unrate(s.ranges.edit(k), k)
			s.ranges.drop(k)
		}
	}
}

func (s *Store) rangeDetail(now time.Time, topic string, id sdk.TopicID, d *sdk.RangeDetail, want int) {
	key := RangeKey{Topic: topic, Range: d.ID}
	if s.ranges.get(key) == nil && s.ranges.len() >= maxRanges {
		return
	}
	r := s.ranges.edit(key)
	r.Key, r.TopicID, r.Start, r.End, r.State = key, id, d.Span.Start, d.Span.End, d.State.String()
	r.Parents, r.Children, r.Cause = d.Parents, d.Children, d.Cause.String()
	r.Created, r.Sealed = at(d.CreatedMs), at(d.SealedMs)
	r.Earliest, r.Offset, r.Records, r.Bytes, r.Segments = d.Earliest, d.End, d.Records, d.Bytes, len(d.Segments)
	if !r.byLeader {
		r.Leader, r.Load = s.names.node(d.Leader), s.names.of(cmp.Or(d.Load, "unknown"))
		if r.State == "active" {
			s.rate(now, r, key, float64(d.InBytesPerSec), float64(d.InRecordsPerSec))
		} else {
			s.unrate(r, key)
		}
	}
	for i := range d.Segments {
		seg := &d.Segments[i]
		s.segment(key, seg, want, seg.Copies)
		if seg.State.String() == "active" {
			r.Segment, r.SegmentBytes, r.SegmentCreated = seg.ID, seg.Bytes, at(seg.CreatedMs)
		}
	}
}

func (s *Store) segment(key RangeKey, d *sdk.SegmentDetail, want, copies int) {
	row := s.editSegment(d.ID)
	if row == nil {
		return
	}
	row.Range, row.State, row.Cause = key, d.State.String(), d.Cause.String()
	row.Base, row.End, row.Bytes = d.Base, d.End, d.Bytes
	row.Created, row.Sealed, row.GapMs = at(d.CreatedMs), at(d.SealedMs), d.GapMs
	row.Copies, row.Want, row.Forced, row.Unknown, row.Waits = copies, want, d.Forced, d.Unknown, d.Waits
	row.Replicas = make([]Replica, len(d.Replicas))
	for i, r := range d.Replicas {
		row.Replicas[i] = Replica{Node: s.names.node(r.Node), State: s.names.of(r.State), End: r.DurableEnd}
	}
}

func (s *Store) segmentPage(p *SegmentPage) {
	listed := make(map[sdk.SegmentID]struct{}, len(p.Segments))
	for i := range p.Segments {
		r := &p.Segments[i]
		listed[r.Segment.ID] = struct{}{}
		s.segment(s.names.key(RangeKey{Topic: r.Topic, Range: r.Range}), &r.Segment, r.ReplicationFactor, r.Copies)
	}
	s.setListing(&s.cluster.ListedSegments, Listing{p.Topic, p.Complete})
	if !p.Complete {
		return
	}
	for id, slot := range s.segments.slots {
		if _, ok := listed[id]; !ok && (p.Topic == "" || slot.row.Range.Topic == p.Topic) && slot.row.Repair == nil {
			s.segments.drop(id)
		}
	}
}

// setListing notes what a list was of; an empty one, that something has been dropped since.
func (s *Store) setListing(before *Listing, now Listing) {
	if *before != now {
		*before, s.headChanged = now, true
	}
}

// gone drops the details of what is on no screen.
func (s *Store) gone(g *Gone) {
	if !g.Exists {
		s.dropTopic(g.Topic)
		return
	}
	for k, slot := range s.ranges.slots {
		if k.Topic == g.Topic && !slot.row.byLeader {
			s.unrate(s.ranges.edit(k), k)
			s.ranges.drop(k)
		}
	}
	for id, slot := range s.segments.slots {
		if slot.row.Range.Topic == g.Topic && slot.row.State == "sealed" && slot.row.Repair == nil {
			s.segments.drop(id)
			s.setListing(&s.cluster.ListedSegments, Listing{})
		}
	}
	if s.topics.get(g.Topic) != nil {
		s.topics.edit(g.Topic).Detailed = time.Time{}
	}
}

func (s *Store) logPage(m Message) {
	if m.Logs.Anew {
		s.forgetLogs()
	}
	row := s.nodes.edit(m.Node)
	if m.Logs.Lost > 0 {
		s.gaps.add(&StreamGap{Node: m.Node, From: m.Time, To: m.Time, Lost: m.Logs.Lost, Reason: "log lines were dropped before they were read"})
	}
	for _, l := range m.Logs.Lines {
		if l.Seq != 0 && l.Seq <= row.logged && m.Boot == row.spoke {
			continue
		}
		row.logged = max(row.logged, l.Seq)
		line := &LogLine{LogLine: l, Node: row.ID, At: at(l.TimeMs)}
		line.Level = s.names.of(l.Level)
		s.logs.add(line)
	}
}

// forgetLogs drops all lines: those to come would not follow them in the order of time.
func (s *Store) forgetLogs() {
	s.logs.empty()
	for id, slot := range s.nodes.slots {
		if slot.row.logged != 0 {
			s.nodes.edit(id).logged = 0
		}
	}
}
