package store

import (
	"cmp"
	"encoding/gob"
	"fmt"
	"io"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// image is a view as it is kept for later: what it shows, and what the store needs to go on from there. The logs are not
// in it: their entries are shared with the view of today.
type image struct {
	Version   uint64
	Time      time.Time
	Cluster   Cluster
	Health    Health
	History   History
	Nodes     tableImage[nodeImage]
	Observers tableImage[*Observer]
	Shards    tableImage[*Shard]
	Topics    tableImage[topicImage]
	Ranges    tableImage[rangeImage]
	Segments  tableImage[*Segment]
	Groups    tableImage[*Group]
}

type tableImage[R any] struct {
	Version uint64
	Rows    []R
}

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
	i := image{
		Version: v.Version, Time: v.Time, Cluster: v.Cluster, Health: v.Health, History: v.History,
		Nodes: imageOf(v.Nodes, func(n *Node) nodeImage {
			return nodeImage{n, n.spoke, n.seen, n.logged, n.hits, n.misses, n.countedAt, n.counted, n.hist}
		}),
		Observers: tableImage[*Observer]{v.Believes.Version, v.Believes.Observers},
		Shards:    imageOf(v.Shards, itself[Shard]),
		Topics:    imageOf(v.Topics, func(t *Topic) topicImage { return topicImage{t, t.sumBytes, t.sumRecords, t.nCounted} }),
		Ranges:    imageOf(v.Ranges, func(r *Range) rangeImage { return rangeImage{r, r.byLeader, r.rated} }),
		Segments:  imageOf(v.Segments, itself[Segment]),
		Groups:    imageOf(v.Groups, itself[Group]),
	}
	if err := gob.NewEncoder(w).Encode(&i); err != nil {
		return fmt.Errorf("keep a view: %w", err)
	}
	return nil
}

// thaw reads what freeze has written.
func thaw(r io.Reader) (*View, error) {
	var i image
	if err := gob.NewDecoder(r).Decode(&i); err != nil {
		return nil, fmt.Errorf("read a view: %w", err)
	}
	v := &View{Version: i.Version, Time: i.Time, Cluster: i.Cluster, Health: i.Health, History: i.History}
	v.Nodes = tableOf(i.Nodes, func(n nodeImage) (sdk.NodeID, *Node) {
		n.Node.spoke, n.Node.seen, n.Node.logged, n.Node.hits, n.Node.misses = n.Spoke, n.Seen, n.Logged, n.Hits, n.Misses
		n.Node.countedAt, n.Node.counted, n.Node.hist = n.CountedAt, n.Counted, n.Hist
		return n.Node.ID, n.Node
	}, cmp.Compare)
	v.Believes = Believes{Version: i.Observers.Version, Members: v.Nodes.keys, Observers: i.Observers.Rows}
	v.Shards = tableOf(i.Shards, func(s *Shard) (sdk.ShardID, *Shard) { return s.ID, s }, compareShards)
	v.Topics = tableOf(i.Topics, func(t topicImage) (string, *Topic) {
		t.Topic.sumBytes, t.Topic.sumRecords, t.Topic.nCounted = t.SumBytes, t.SumRecords, t.Counted
		return t.Topic.Name, t.Topic
	}, cmp.Compare)
	v.Ranges = tableOf(i.Ranges, func(r rangeImage) (RangeKey, *Range) {
		r.Range.byLeader, r.Range.rated = r.ByLeader, r.Rated
		return r.Range.Key, r.Range
	}, compareRanges)
	v.Segments = tableOf(i.Segments, func(s *Segment) (sdk.SegmentID, *Segment) { return s.ID, s }, cmp.Compare)
	v.Groups = tableOf(i.Groups, func(g *Group) (string, *Group) { return g.Group, g }, cmp.Compare)
	return v, nil
}

func itself[R any](r *R) *R { return r }

func imageOf[K comparable, R, I any](t Table[K, R], of func(*R) I) tableImage[I] {
	i := tableImage[I]{Version: t.Version, Rows: make([]I, len(t.rows))}
	for n, r := range t.rows {
		i.Rows[n] = of(r)
	}
	return i
}

func tableOf[K comparable, R, I any](i tableImage[I], row func(I) (K, *R), compare func(a, b K) int) Table[K, R] {
	t := Table[K, R]{Version: i.Version, keys: make([]K, len(i.Rows)), rows: make([]*R, len(i.Rows)), compare: compare}
	for n, r := range i.Rows {
		t.keys[n], t.rows[n] = row(r)
	}
	return t
}

// logs are those of a view.
type logs struct {
	seals   Log[*Seal]
	changes Log[*Change]
	gaps    Log[*StreamGap]
	events  Log[*Event]
	logs    Log[*LogLine]
}

func logsOf(v *View) logs { return logs{v.Seals, v.Changes, v.Gaps, v.Events, v.Logs} }

func (l logs) into(v *View) {
	v.Seals, v.Changes, v.Gaps, v.Events, v.Logs = l.seals, l.changes, l.gaps, l.events, l.logs
}

// sizeSince is what of them came after earlier ones, about: what they keep alive beside those.
func (l logs) sizeSince(before logs) (n int) {
	n = 320*came(l.seals, before.seals) + 256*came(l.changes, before.changes) + 128*came(l.gaps, before.gaps) + 384*came(l.events, before.events)
	for _, line := range l.logs.Last(came(l.logs, before.logs)) {
		n += line.size()
	}
	return n
}

// came is how many of a log's entries came after an earlier one of it.
func came[E any](l, before Log[E]) int {
	return min(int(l.Dropped+uint64(l.Len())-before.Dropped-uint64(before.Len())), l.Len())
}
