package store

import (
	"cmp"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Options bound what a store keeps.
type Options struct {
	// History is how far back At goes; 0 means 15 minutes, less than 0 nothing.
	History time.Duration
	// HistoryBytes is the most that it keeps for that; 0 means 16 MB.
	HistoryBytes int
	// Events and LogLines are how many of each are kept, and EventBytes and LogBytes what they may take; 0 means 10,000 and
	// 5,000, 4 MB and 3 MB.
	Events, EventBytes, LogLines, LogBytes int
}

// The most rows of each table, whatever the cluster says.
const (
	maxNodes    = 1024
	maxShards   = 1 << 16
	maxTopics   = 20_000
	maxRanges   = 50_000
	maxSegments = 12_000
	maxGroups   = 10_000
	maxSeals    = 5000
	maxChanges  = 1000
	maxGaps     = 1000
)

func (o *Options) ensureDefaults() {
	if o.History == 0 {
		o.History = 15 * time.Minute
	}
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.HistoryBytes, 16<<20)
	def(&o.Events, 10_000)
	def(&o.EventBytes, 4<<20)
	def(&o.LogLines, 5000)
	def(&o.LogBytes, 3<<20)
}

// Store takes messages and gives views. It belongs to one goroutine; its views belong to anybody.
type Store struct {
	opts    Options
	view    *View // the last one
	version uint64
	time    time.Time // of the newest message

	cluster   Cluster
	nodes     rows[sdk.NodeID, Node]
	observers rows[sdk.NodeID, Observer]
	shards    rows[sdk.ShardID, Shard]
	topics    rows[string, Topic]
	ranges    rows[RangeKey, Range]
	segments  rows[sdk.SegmentID, Segment]
	groups    rows[string, Group]
	seals     lines[*Seal]
	changes   lines[*Change]
	gaps      lines[*StreamGap]
	events    lines[*Event]
	logs      lines[*LogLine]
	arrived   uint64 // events
	names     names
	health    Health
	samples   History

	headChanged, healthChanged, sampled bool
	believesChanged                     bool
	membersVersion                      uint64              // at which a node came or went
	touched                             map[string]struct{} // topics whose rate is to be added up

	repairing int // segments with a copy being made
	refusal   refusal
	past      past
}

// New makes an empty store.
func New(opts Options) *Store {
	opts.ensureDefaults()
	s := bare(opts)
	s.cluster.Link.State, s.cluster.CacheHit = LinkConnecting, -1
	s.view = s.compose()
	return s
}

func bare(opts Options) *Store {
	s := &Store{opts: opts, version: 1, names: make(names), touched: make(map[string]struct{})}
	s.nodes = newRows(cmp.Compare[sdk.NodeID], func(r *Node, v uint64) { r.Version = v })
	s.observers = newRows(cmp.Compare[sdk.NodeID], func(r *Observer, v uint64) { r.Version = v })
	s.shards = newRows(compareShards, func(r *Shard, v uint64) { r.Version = v })
	s.topics = newRows(cmp.Compare[string], func(r *Topic, v uint64) { r.Version = v })
	s.ranges = newRows(compareRanges, func(r *Range, v uint64) { r.Version = v })
	s.segments = newRows(cmp.Compare[sdk.SegmentID], func(r *Segment, v uint64) { r.Version = v })
	s.groups = newRows(cmp.Compare[string], func(r *Group, v uint64) { r.Version = v })
	s.seals.most, s.changes.most, s.gaps.most = maxSeals, maxChanges, maxGaps
	s.events.most, s.events.room, s.events.size = opts.Events, opts.EventBytes, (*Event).size
	s.logs.most, s.logs.room, s.logs.size = opts.LogLines, opts.LogBytes, (*LogLine).size
	return s
}

// from is a store that knows what a view shows.
func from(v *View, opts Options) *Store {
	s := bare(opts)
	s.view, s.version, s.time, s.cluster, s.health, s.samples = v, v.Version+1, v.Time, v.Cluster, v.Health, v.History.clipped()
	s.membersVersion = v.Believes.Version
	s.nodes.restore(v.Nodes, s.version)
	for k, n := range v.Nodes.All() { // series of two stores must not grow into the same memory
		row := *n
		row.In, row.Out = clip(n.In), clip(n.Out)
		s.nodes.slots[k].row = &row
	}
	s.observers.restore(v.Believes.table(), s.version)
	s.shards.restore(v.Shards, s.version)
	s.topics.restore(v.Topics, s.version)
	s.ranges.restore(v.Ranges, s.version)
	s.segments.restore(v.Segments, s.version)
	s.groups.restore(v.Groups, s.version)
	for k, g := range v.Groups.All() {
		row := *g
		row.Trend = clip(g.Trend)
		s.groups.slots[k].row = &row
	}
	for _, r := range v.Segments.rows {
		if r.Repair != nil {
			s.repairing++
		}
	}
	s.seals.restore(v.Seals)
	s.changes.restore(v.Changes)
	s.gaps.restore(v.Gaps)
	s.events.restore(v.Events)
	s.logs.restore(v.Logs)
	return s
}

func compareShards(a, b sdk.ShardID) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path), cmp.Compare(a.PathLen, b.PathLen))
}

func compareRanges(a, b RangeKey) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Range, b.Range))
}

func (b Believes) table() Table[sdk.NodeID, Observer] {
	t := Table[sdk.NodeID, Observer]{Version: b.Version, compare: cmp.Compare[sdk.NodeID]}
	for _, o := range b.Observers {
		t.keys, t.rows = append(t.keys, o.Node), append(t.rows, o)
	}
	return t
}

// View is all that is known at a time, which is not before that of the last message. It is the same as the last one if
// nothing has changed. It is never nil.
func (s *Store) View(now time.Time) *View {
	s.silence(now)
	if !s.dirty() {
		return s.view
	}
	s.settle(now)
	s.view = s.compose()
	return s.view
}

func (s *Store) dirty() bool {
	return s.headChanged || s.healthChanged || s.sampled || s.believesChanged ||
		s.nodes.dirty() || s.observers.dirty() || s.shards.dirty() || s.topics.dirty() || s.ranges.dirty() ||
		s.segments.dirty() || s.groups.dirty() ||
		s.seals.changed || s.changes.changed || s.gaps.changed || s.events.changed || s.logs.changed
}

func (s *Store) compose() *View {
	v := &View{Version: s.version, Time: s.time}
	if s.nodes.shape {
		s.membersVersion = s.version
	}
	if s.healthChanged {
		s.health.Version = s.version
	}
	if s.sampled {
		s.samples.Version = s.version
	}
	v.Ranges, v.Segments, v.Groups = s.ranges.publish(), s.segments.publish(), s.groups.publish()
	if most := busiest(v.Ranges); most != s.cluster.Busiest {
		s.cluster.Busiest, s.cluster.Version = most, s.version
	}
	v.Cluster, v.Health, v.History = s.cluster, s.health, s.samples
	v.Nodes, v.Shards, v.Topics = s.nodes.publish(), s.shards.publish(), s.topics.publish()
	believes := s.observers.publish()
	v.Believes = Believes{Version: max(believes.Version, s.membersVersion), Members: v.Nodes.keys, Observers: believes.rows}
	v.Seals, v.Changes, v.Gaps = s.seals.publish(s.version), s.changes.publish(s.version), s.gaps.publish(s.version)
	v.Events, v.Logs = s.events.publish(s.version), s.logs.publish(s.version)
	s.headChanged, s.healthChanged, s.sampled, s.believesChanged = false, false, false, false
	s.version++
	return v
}

// busiest is the rate of the active range that is written to most.
func busiest(ranges Table[RangeKey, Range]) (most float64) {
	for _, r := range ranges.rows {
		if r.State == "active" {
			most = max(most, r.Steady)
		}
	}
	return most
}
