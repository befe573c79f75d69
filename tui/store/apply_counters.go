package store

import (
	"time"

	"github.com/eastguard/eastguard/sdk"
)

const (
	nodeSamples = 120
	trendLength = 60
)

// counters takes what a node counts.
func (s *Store) counters(m Message) {
	c, row := m.Counters, s.nodes.edit(m.Node)
	share := 1.0
	if !row.countedAt.IsZero() {
		share = weight(m.Time.Sub(row.countedAt))
	}
	told := func(rate *float64, newest int64) { smooth(rate, float64(max(newest, 0)), share) }
	told(&row.InBytes, c.InBytesPerSec)
	told(&row.OutBytes, c.OutBytesPerSec)
	told(&row.InRecords, c.InRecordsPerSec)
	told(&row.OutRecords, c.OutRecordsPerSec)
	row.SkewMs = skew(row, c.ObservedMs-m.Time.UnixMilli())
	row.countedAt = m.Time
	row.DiskUsed, row.DiskTotal = c.DiskUsed, c.DiskTotal
	row.Segments, row.Leaders, row.Followers, row.Connections = c.Segments, c.Leaders, c.Followers, c.Connections
	row.CacheHit = cacheHit(row, c)
	row.hits, row.misses = c.CacheHits, c.CacheMisses
	row.Raw = *c
	row.Raw.Ranges, row.Raw.Others, row.Raw.Groups, row.Raw.Repairs = nil, nil, nil, nil
	row.In = push(row.In, float64(c.InBytesPerSec), nodeSamples)
	row.Out = push(row.Out, float64(c.OutBytesPerSec), nodeSamples)
	s.headChanged = true
	if m.Thin {
		return
	}
	row.hist = addHist(nil, c.Others)
	for i := range c.Ranges {
		row.hist[decade(float64(c.Ranges[i].InBytesPerSec))]++
	}
	s.countRanges(m.Time, m.Node, row, c.Ranges)
	for i := range c.Groups {
		s.group(m.Node, &c.Groups[i])
	}
	s.repairs(m.Node, c.Repairs)
}

// skewForgets is by how many milliseconds a second a clock may fall back before it is believed at once.
const skewForgets = 5

// skew is a node's clock less ours. What it told was under way for some time, which makes its clock look slow, never
// fast: so the greatest of the last values counts, and less is come down to slowly.
func skew(n *Node, told int64) int64 {
	if n.countedAt.IsZero() {
		return told
	}
	return max(told, n.SkewMs-skewForgets)
}

// cacheHit is the share of reads from memory since the last counters of the same start.
func cacheHit(n *Node, c *sdk.NodeCounters) float64 {
	if n.hits+n.misses == 0 || c.CacheHits < n.hits || c.CacheMisses < n.misses {
		return -1
	}
	hits, misses := float64(c.CacheHits-n.hits), float64(c.CacheMisses-n.misses)
	if hits+misses == 0 {
		return n.CacheHit
	}
	return hits / (hits + misses)
}

// countRanges takes the busiest ranges of a node. Those that were among them before and are not now have no known rate.
func (s *Store) countRanges(now time.Time, node sdk.NodeID, n *Node, list []sdk.RangeCounters) {
	before := n.counted
	n.counted = make([]RangeKey, 0, len(list))
	for i := range list {
		c := &list[i]
		key := RangeKey{Topic: c.Topic, Range: c.Range}
		was := s.ranges.get(key)
		switch {
		case was != nil:
			key = was.Key
		case s.ranges.len() >= maxRanges:
			continue
		default:
			key = s.names.key(key)
		}
		n.counted = append(n.counted, key)
		in, records := float64(c.InBytesPerSec), float64(c.InRecordsPerSec)
		if was != nil && was.byLeader && was.Leader == node && was.InBytes == in && was.InRecords == records &&
			was.Segment == c.Segment && was.SegmentBytes == c.SegmentBytes && was.Offset == c.End && was.Streak == c.Streak && was.Load == c.Load {
			continue
		}
		r := s.ranges.edit(key)
		r.Key, r.TopicID, r.byLeader = key, c.TopicID, true
		s.rate(now, r, key, in, records)
		r.Start, r.End = c.Span.Start, c.Span.End
		if r.State == "" {
			r.State = "active"
		}
		r.Leader, r.Load, r.Streak = n.ID, s.names.of(c.Load), c.Streak
		r.Segment, r.SegmentBytes, r.Offset = c.Segment, c.SegmentBytes, c.End
	}
	s.uncount(node, before, n.counted)
}

// uncount forgets the rates of the ranges that a node does not count any more, and no other has begun to.
func (s *Store) uncount(node sdk.NodeID, before, now []RangeKey) {
	if len(before) == 0 {
		return
	}
	still := make(map[RangeKey]struct{}, len(now))
	for _, k := range now {
		still[k] = struct{}{}
	}
	for _, k := range before {
		r := s.ranges.get(k)
		if _, ok := still[k]; ok || r == nil || r.Leader != node || !r.byLeader {
			continue
		}
		row := s.ranges.edit(k)
		row.byLeader = false
		s.unrate(row, k)
	}
}

// rate takes what a range's rate is told to be, and changes that of its topic with it.
func (s *Store) rate(now time.Time, r *Range, key RangeKey, in, records float64) {
	t := s.rated(r, key)
	if t == nil {
		return
	}
	share := 1.0
	if passed := time.Duration(now.UnixNano() - r.rated); r.Counted && passed >= 0 {
		share = weight(passed)
	}
	smooth(&r.InBytes, in, share)
	smooth(&r.InRecords, records, share)
	r.Counted, r.rated, r.Steady = true, now.UnixNano(), Steady(r.Steady, r.InBytes)
	t.sumBytes += r.InBytes
	t.sumRecords += r.InRecords
	t.nCounted++
}

// unrate forgets the rate of a range: nobody tells it any more.
func (s *Store) unrate(r *Range, key RangeKey) {
	if s.rated(r, key) != nil {
		r.Counted, r.InBytes, r.InRecords, r.Steady = false, 0, 0, 0
	}
}

// rated is the topic of a range whose rate is about to change, without what the range adds to it.
func (s *Store) rated(r *Range, key RangeKey) *Topic {
	if s.topics.get(key.Topic) == nil && s.topics.len() >= maxTopics {
		return nil
	}
	t := s.topics.edit(key.Topic)
	if t.Name == "" {
		t.Name, t.ID = key.Topic, r.TopicID
	}
	if r.Counted {
		t.sumBytes -= r.InBytes
		t.sumRecords -= r.InRecords
		t.nCounted--
	}
	s.touched[key.Topic] = struct{}{}
	return t
}

// addUp makes the rates of the topics whose ranges have changed theirs.
func (s *Store) addUp() {
	for name := range s.touched {
		if s.topics.get(name) == nil {
			continue
		}
		t := s.topics.edit(name)
		if t.nCounted <= 0 {
			t.nCounted, t.sumBytes, t.sumRecords = 0, 0, 0
		}
		t.sumBytes, t.sumRecords = max(t.sumBytes, 0), max(t.sumRecords, 0)
		if t.Listed.IsZero() {
			t.Ranges = t.nCounted // as far as is known
		}
		all := !t.Listed.IsZero() && t.Ranges > 0 && t.nCounted >= t.Ranges
		t.InBytes, t.InRecords, t.AtLeast = t.sumBytes, t.sumRecords, !all
		if !all && float64(t.InBytesPerSec) > t.sumBytes {
			t.InBytes, t.InRecords, t.AtLeast = float64(t.InBytesPerSec), float64(t.InRecordsPerSec), t.Partial
		}
	}
	clear(s.touched)
}

func (s *Store) group(coordinator sdk.NodeID, g *sdk.GroupCounters) {
	if s.groups.get(g.Group) == nil && s.groups.len() >= maxGroups {
		return
	}
	row := s.groups.edit(g.Group)
	row.GroupCounters, row.Coordinator = *g, coordinator
	row.Trend = push(row.Trend, float64(g.Lag), trendLength)
	s.headChanged = true
}

// repairs takes the copies that a node makes. One that it made and does not any more is done, or was given up.
func (s *Store) repairs(node sdk.NodeID, list []sdk.RepairProgress) {
	if len(list) == 0 && s.repairing == 0 {
		return
	}
	s.repairing = 0
	for id, slot := range s.segments.slots {
		if p := slot.row.Repair; p != nil && p.Target == node {
			s.segments.edit(id).Repair = nil
		} else if p != nil {
			s.repairing++
		}
	}
	for i := range list {
		p := &list[i]
		row := s.editSegment(p.Segment)
		if row == nil {
			continue
		}
		if row.Range.Topic == "" {
			row.Range = RangeKey{Topic: p.Topic, Range: p.Range}
		}
		row.Repair = p
		s.repairing++
	}
}
