package store

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// settle makes what follows from the rows: what all believe of each node, and the header.
func (s *Store) settle(now time.Time) {
	if s.believesChanged {
		s.judge()
		s.doubtShards()
	}
	s.addUp()
	s.sumUp(now)
}

// judge decides on the state of each node by what those believe that are heard: suspect as soon as one says so, dead
// when most do. Of a cluster that nobody is heard of, the last verdict stays.
func (s *Store) judge() {
	votes := make(map[sdk.NodeID]*verdict)
	heard := 0
	for _, slot := range s.observers.slots {
		o := slot.row
		if n := s.nodes.get(o.Node); n == nil || n.Stream != StreamLive {
			continue
		}
		heard++
		for i := range o.Beliefs {
			b := &o.Beliefs[i]
			v := votes[b.Node]
			if v == nil {
				v = &verdict{}
				votes[b.Node] = v
			}
			v.add(o.Node, b)
		}
	}
	if heard == 0 {
		return
	}
	for id, v := range votes {
		if was := s.nodes.get(id); was == nil && s.nodes.len() < maxNodes || was != nil && !v.matches(was) {
			v.write(s.nodes.edit(id), id)
			s.silenced(id)
		}
	}
}

// silenced forgets what a dead node told of its ranges: they are led by another now, or by nobody.
func (s *Store) silenced(id sdk.NodeID) {
	n := s.nodes.get(id)
	if n.State != "dead" && n.State != "left" || n.Stream == StreamLive || len(n.counted) == 0 {
		return
	}
	s.uncount(id, n.counted, nil)
	s.nodes.edit(id).counted = nil
}

// verdict is what the observers say of the newest start of one node.
type verdict struct {
	alive, suspect, dead, left int
	by                         []sdk.NodeID // who says suspect or dead
	since                      map[string]time.Time
	best                       *Belief // of the newest start
}

func (v *verdict) add(observer sdk.NodeID, b *Belief) {
	if v.best != nil && v.best.Boot != 0 && b.Boot != 0 {
		switch {
		case b.Boot < v.best.Boot:
			return // of an earlier start: it has not heard of this one yet
		case b.Boot > v.best.Boot:
			*v = verdict{} // and so had all the others
		}
	}
	switch b.State {
	case "alive":
		v.alive++
	case "suspect":
		v.suspect++
	case "dead":
		v.dead++
	case "left":
		v.left++
	}
	if b.State == "suspect" || b.State == "dead" {
		v.by = append(v.by, observer)
	}
	if v.since == nil {
		v.since = make(map[string]time.Time, 2)
	}
	if at, ok := v.since[b.State]; !ok || b.Since.Before(at) && !b.Since.IsZero() || at.IsZero() {
		v.since[b.State] = b.Since
	}
	if v.best == nil || b.Boot > v.best.Boot || b.Boot == v.best.Boot && b.Vnodes > v.best.Vnodes {
		v.best = b
	}
}

func (v *verdict) state() string {
	all := v.alive + v.suspect + v.dead + v.left
	switch {
	case all == 0:
		return "unknown"
	case v.left*2 > all:
		return "left"
	case (v.dead+v.left)*2 > all:
		return "dead"
	case v.suspect+v.dead > 0:
		return "suspect"
	}
	return "alive"
}

// sinceWhen is when the first of those that say so began to.
func (v *verdict) sinceWhen(state string) time.Time {
	at := v.since[state]
	if at.IsZero() && state == "suspect" {
		at = v.since["dead"]
	}
	return at
}

func (v *verdict) matches(n *Node) bool {
	slices.Sort(v.by)
	state := v.state()
	return n.State == state && n.Since.Equal(v.sinceWhen(state)) && slices.Equal(n.SuspectedBy, v.by) && n.Boot >= v.best.Boot &&
		n.Vnodes == v.best.Vnodes && n.OwnsPerMillion == v.best.OwnsPerMillion && n.Status == v.best.Status && n.Rack == cmp.Or(v.best.Rack, n.Rack)
}

func (v *verdict) write(n *Node, id sdk.NodeID) {
	if n.ID == "" {
		n.ID, n.CacheHit = id, -1
	}
	slices.Sort(v.by)
	n.State = v.state()
	n.Since, n.SuspectedBy = v.sinceWhen(n.State), v.by
	n.Boot = max(n.Boot, v.best.Boot)
	n.Vnodes, n.OwnsPerMillion, n.Status = v.best.Vnodes, v.best.OwnsPerMillion, v.best.Status
	n.Rack = cmp.Or(v.best.Rack, n.Rack)
}

// doubtShards marks the shards of which the last word is that of a node that is not heard any more.
func (s *Store) doubtShards() {
	for id, slot := range s.shards.slots {
		n := s.nodes.get(slot.row.Observer)
		if stale := n == nil || n.Stream != StreamLive; stale != slot.row.Stale {
			s.shards.edit(id).Stale = stale
		}
	}
}

// sumUp makes the header.
func (s *Store) sumUp(now time.Time) {
	before := s.cluster
	c := &s.cluster
	c.Streams, c.Known, c.Alive, c.Suspect, c.Dead, c.Left = 0, 0, 0, 0, 0, 0
	c.InBytes, c.OutBytes, c.InRecords, c.OutRecords, c.BatchesPerSec, c.BatchRecords, c.BatchBytes = 0, 0, 0, 0, 0, 0, 0
	c.UptimeMs, c.MaxSkewMs, c.RateHist = 0, 0, nil
	var ack, fsync, replicate, gap mixture
	var hit, hitNodes float64
	versions := make(map[string]int)
	unheard := false // a node of which nobody says that it is dead
	for _, id := range s.sortedNodes() {
		n := s.nodes.get(id)
		c.count(n)
		if n.Stream != StreamLive {
			unheard = unheard || n.State != "dead" && n.State != "left"
			continue
		}
		c.Streams++
		if n.Software != "" {
			versions[n.Software]++
		}
		c.UptimeMs = max(c.UptimeMs, n.UptimeMs)
		c.InBytes, c.OutBytes = c.InBytes+n.InBytes, c.OutBytes+n.OutBytes
		c.InRecords, c.OutRecords = c.InRecords+n.InRecords, c.OutRecords+n.OutRecords
		batches := float64(n.Raw.BatchesPerSec)
		c.BatchesPerSec += batches
		c.BatchRecords, c.BatchBytes = c.BatchRecords+batches*float64(n.Raw.BatchRecords), c.BatchBytes+batches*float64(n.Raw.BatchBytes)
		ack.add(n.Raw.Ack)
		fsync.add(n.Raw.Fsync)
		replicate.add(n.Raw.Replicate)
		gap.add(n.Raw.SealGap)
		if n.CacheHit >= 0 {
			hit, hitNodes = hit+n.CacheHit, hitNodes+1
		}
		c.MaxSkewMs = max(c.MaxSkewMs, n.SkewMs, -n.SkewMs)
		if n.hist != nil {
			c.RateHist = addHist(c.RateHist, n.hist)
		}
	}
	if c.BatchesPerSec > 0 {
		c.BatchRecords, c.BatchBytes = c.BatchRecords/c.BatchesPerSec, c.BatchBytes/c.BatchesPerSec
	}
	c.Ack, c.Fsync, c.Replicate, c.SealGap = ack.quantiles(), fsync.quantiles(), replicate.quantiles(), gap.quantiles()
	c.CacheHit = -1
	if hitNodes > 0 {
		c.CacheHit = hit / hitNodes
	}
	c.AtLeast = unheard || c.partial()
	c.Versions = versionCounts(versions)
	s.agreement(now)
	s.countShards()
	s.linkState(now)
	if before.Version = c.Version; s.headChanged || !reflect.DeepEqual(&before, c) {
		c.Version = s.version
	}
}

// count counts a node by what the others believe of it.
func (c *Cluster) count(n *Node) {
	switch n.State {
	case "alive", "unknown":
		c.Alive++
	case "suspect":
		c.Suspect++
	case "dead":
		c.Dead++
	case "left":
		c.Left++
	}
	if n.State != "left" || n.Stream == StreamLive {
		c.Known++
	}
}

// partial reports whether more than half of the cluster is not heard. What those that are heard call dead may then as
// well be alive, and it is they that are cut off.
func (c *Cluster) partial() bool { return (c.Known-c.Streams)*2 > c.Known }

func (s *Store) sortedNodes() []sdk.NodeID {
	if !s.nodes.shape {
		return s.nodes.table.keys
	}
	ids := make([]sdk.NodeID, 0, s.nodes.len())
	for id := range s.nodes.slots {
		ids = append(ids, id)
	}
	slices.Sort(ids) // sums of floats depend on the order
	return ids
}

func versionCounts(m map[string]int) (list []VersionCount) {
	for v, n := range m {
		list = append(list, VersionCount{v, n})
	}
	slices.SortFunc(list, func(a, b VersionCount) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Version, b.Version))
	})
	return list
}

// agreement compares the rings that the live nodes have.
func (s *Store) agreement(now time.Time) {
	c := &s.cluster
	counts := make(map[uint64]int)
	c.Agree, c.AgreeOf, c.RingHash, c.RingVersion = 0, 0, 0, 0
	for _, slot := range s.observers.slots {
		o := slot.row
		if o.Stale || o.RingHash == 0 {
			continue
		}
		counts[o.RingHash]++
		c.AgreeOf++
		c.RingVersion = max(c.RingVersion, o.RingVersion)
	}
	for hash, n := range counts {
		if n > c.Agree || n == c.Agree && hash < c.RingHash {
			c.Agree, c.RingHash = n, hash
		}
	}
	differ := c.Agree < c.AgreeOf
	switch {
	case differ && (c.Disagreed.IsZero() || c.DisagreedFor > 0):
		c.Disagreed, c.DisagreedFor = s.time, 0
	case !differ && !c.Disagreed.IsZero() && c.DisagreedFor == 0:
		c.DisagreedFor = max(since(c.Disagreed, s.time), time.Millisecond)
	}
}

func (s *Store) countShards() {
	c := &s.cluster
	c.Shards, c.Leaders, c.MaxTerm = s.shards.len(), 0, 0
	for _, slot := range s.shards.slots {
		if slot.row.Leader != "" {
			c.Leaders++
		}
		c.MaxTerm = max(c.MaxTerm, slot.row.Term)
	}
}

// linkState follows from the streams, unless the feed has said that nothing can be reached.
func (s *Store) linkState(now time.Time) {
	c := &s.cluster
	l := &c.Link
	if l.State == LinkLost && c.Streams == 0 {
		return
	}
	state := LinkLive
	switch {
	case l.LastData.IsZero():
		state = LinkConnecting
	case c.partial():
		state = LinkPartial
	}
	if state != l.State {
		l.State, l.Since = state, s.time
		s.headChanged = true
	}
}

// decades are the bounds of Cluster.RateHist.
var decades = [...]float64{1e3, 1e4, 1e5, 1e6, 1e7}

func decade(rate float64) int {
	if rate <= 0 {
		return 0
	}
	for i, bound := range decades {
		if rate < bound {
			return i + 1
		}
	}
	return len(decades) + 1
}

func addHist(sum, more []int) []int {
	if sum == nil {
		sum = make([]int, len(decades)+2)
	}
	for i := range min(len(more), len(sum)) {
		sum[i] += more[i]
	}
	return sum
}
