package store

import (
	"cmp"
	"encoding/gob"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// image is a view as it is kept for later: what it shows, and what the store needs to go on from there. Its tables follow
// it, in parts, since what writes them holds each part as a whole. The logs are not in it.
type image struct {
	Version uint64
	Time    time.Time
	Cluster Cluster
	Health  Health
	History History
	Tables  [7]tableImage
}

// tableImage is a table without its rows.
type tableImage struct {
	Version uint64
	Rows    int
}

// partRows is how many rows are written at once.
const partRows = 256

// nodeImage is a node with what only the store knows of it.
type nodeImage struct {
	Node                              *Node
	Spoke, Seen, Logged, Hits, Misses uint64
	CountedAt                         time.Time
	Counted                           []RangeKey
	Hist                              []int
}

// topicImage and rangeImage are the same for topics and ranges.
type topicImage struct {
	Topic                *Topic
	SumBytes, SumRecords float64
	Counted              int
}

type rangeImage struct {
	Range    *Range
	ByLeader bool
	Rated    int64
}

// freeze writes the image of a view.
func freeze(w io.Writer, v *View) error {
	enc := gob.NewEncoder(w)
	i := image{
		Version: v.Version, Time: v.Time, Cluster: v.Cluster, Health: v.Health, History: v.History,
		Tables: [...]tableImage{
			headOf(v.Nodes), headOf(v.Believes.table()), headOf(v.Shards), headOf(v.Topics), headOf(v.Ranges), headOf(v.Segments), headOf(v.Groups),
		},
	}
	err := cmp.Or(
		enc.Encode(&i),
		freezeRows(enc, v.Nodes.rows, func(n *Node) nodeImage {
			return nodeImage{n, n.spoke, n.seen, n.logged, n.hits, n.misses, n.countedAt, n.counted, n.hist}
		}),
		freezeRows(enc, v.Believes.Observers, itself[Observer]),
		freezeRows(enc, v.Shards.rows, itself[Shard]),
		freezeRows(enc, v.Topics.rows, func(t *Topic) topicImage { return topicImage{t, t.sumBytes, t.sumRecords, t.nCounted} }),
		freezeRows(enc, v.Ranges.rows, func(r *Range) rangeImage { return rangeImage{r, r.byLeader, r.rated} }),
		freezeRows(enc, v.Segments.rows, itself[Segment]),
		freezeRows(enc, v.Groups.rows, itself[Group]),
	)
	if err != nil {
		return fmt.Errorf("keep a view: %w", err)
	}
	return nil
}

// thaw reads what freeze has written.
func thaw(r io.Reader) (*View, error) {
	dec := gob.NewDecoder(r)
	var i image
	if err := dec.Decode(&i); err != nil {
		return nil, fmt.Errorf("read a view: %w", err)
	}
	v := &View{Version: i.Version, Time: i.Time, Cluster: i.Cluster, Health: i.Health, History: i.History}
	var observers Table[sdk.NodeID, Observer]
	err := cmp.Or(
		thawRows(dec, i.Tables[0], &v.Nodes, cmp.Compare, func(n nodeImage) (sdk.NodeID, *Node) {
			n.Node.spoke, n.Node.seen, n.Node.logged, n.Node.hits, n.Node.misses = n.Spoke, n.Seen, n.Logged, n.Hits, n.Misses
			n.Node.countedAt, n.Node.counted, n.Node.hist = n.CountedAt, n.Counted, n.Hist
			return n.Node.ID, n.Node
		}),
		thawRows(dec, i.Tables[1], &observers, cmp.Compare, func(o *Observer) (sdk.NodeID, *Observer) { return o.Node, o }),
		thawRows(dec, i.Tables[2], &v.Shards, compareShards, func(s *Shard) (sdk.ShardID, *Shard) { return s.ID, s }),
		thawRows(dec, i.Tables[3], &v.Topics, cmp.Compare, func(t topicImage) (string, *Topic) {
			t.Topic.sumBytes, t.Topic.sumRecords, t.Topic.nCounted = t.SumBytes, t.SumRecords, t.Counted
			return t.Topic.Name, t.Topic
		}),
		thawRows(dec, i.Tables[4], &v.Ranges, compareRanges, func(r rangeImage) (RangeKey, *Range) {
			r.Range.byLeader, r.Range.rated = r.ByLeader, r.Rated
			return r.Range.Key, r.Range
		}),
		thawRows(dec, i.Tables[5], &v.Segments, cmp.Compare, func(s *Segment) (sdk.SegmentID, *Segment) { return s.ID, s }),
		thawRows(dec, i.Tables[6], &v.Groups, cmp.Compare, func(g *Group) (string, *Group) { return g.Group, g }),
	)
	if err != nil {
		return nil, fmt.Errorf("read a view: %w", err)
	}
	v.Believes = Believes{Version: observers.Version, Members: v.Nodes.keys, Observers: observers.rows}
	return v, nil
}

func itself[R any](r *R) *R { return r }

func headOf[K comparable, R any](t Table[K, R]) tableImage { return tableImage{t.Version, len(t.rows)} }

// freezeRows writes the rows of a table.
func freezeRows[R, I any](enc *gob.Encoder, rows []*R, of func(*R) I) error {
	var part []I
	for some := range slices.Chunk(rows, partRows) {
		part = part[:0]
		for _, r := range some {
			part = append(part, of(r))
		}
		if err := enc.Encode(part); err != nil {
			return err
		}
	}
	return nil
}

// thawRows reads the rows of a table.
func thawRows[K comparable, R, I any](dec *gob.Decoder, head tableImage, t *Table[K, R], compare func(a, b K) int, row func(I) (K, *R)) error {
	*t = Table[K, R]{Version: head.Version, keys: make([]K, 0, head.Rows), rows: make([]*R, 0, head.Rows), compare: compare}
	for len(t.rows) < head.Rows {
		var part []I
		if err := dec.Decode(&part); err != nil {
			return err
		}
		for _, i := range part {
			k, r := row(i)
			t.keys, t.rows = append(t.keys, k), append(t.rows, r)
		}
	}
	return nil
}

// marks are how much of each log had come at a time. The logs of the past are what is left of it today: a storm that fills
// them again and again is not kept more than once.
type marks struct{ seals, changes, gaps, events, logs uint64 }

func (s *Store) marks(v *View) marks {
	return marks{came(v.Seals), came(v.Changes), came(v.Gaps), s.arrived, came(v.Logs)}
}

// into gives a view of then the logs that a view of now still has.
func (m marks) into(then, now *View) {
	then.Seals, then.Changes, then.Logs = until(now.Seals, m.seals), until(now.Changes, m.changes), until(now.Logs, m.logs)
	then.Gaps = until(now.Gaps, m.gaps)
	then.Gaps.entries = slices.Clone(then.Gaps.entries)
	for i, g := range then.Gaps.entries {
		if g.To.After(then.Time) { // nobody knew yet
			open := *g
			open.To = time.Time{}
			then.Gaps.entries[i] = &open
		}
	}
	events := Log[*Event]{Version: now.Events.Version, Dropped: now.Events.Dropped, Moved: now.Events.Moved}
	for _, e := range now.Events.entries { // some have come late, and stand before others
		if e.arrived <= m.events {
			events.entries = append(events.entries, e)
		}
	}
	then.Events = events
}

// came is how many entries of a log have ever come.
func came[E any](l Log[E]) uint64 { return l.Dropped + uint64(len(l.entries)) }

// until is a log when no more than a number of its entries had come.
func until[E any](l Log[E], number uint64) Log[E] {
	n := max(min(number, came(l)), l.Dropped) - l.Dropped
	l.entries = l.entries[:n:n]
	return l
}
