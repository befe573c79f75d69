package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Options are the size of the cluster, and when things happen.
type Options struct {
	Seed                          uint64
	Nodes, Topics, Ranges, Shards int           // 0: 5, 6, 40, 16
	Groups                        int           // less than 0: none, as a cluster of today
	Start                         time.Time     // zero: 2026-11-30 12:00:00 UTC
	Length                        time.Duration // 0: 90 s
	Quiet                         bool          // nothing happens but load and rolls
	Calm                          bool          // nothing happens at all: rates wobble by a few per cent
	Storm                         bool          // everything happens at once: see the function of that name
}

// Large is the cluster that the budgets are made for.
func Large(seed uint64) Options {
	return Options{Seed: seed, Nodes: 60, Topics: 200, Ranges: 10_000, Shards: 2048}
}

// When what happens, from the start. The node that dies is [Victim].
const (
	SplitAt     = 10 * time.Second
	MergeAt     = 15 * time.Second
	RebalanceAt = 20 * time.Second
	KillAt      = 30 * time.Second
	SuspectAt   = KillAt + 1200*time.Millisecond
	DeadAt      = KillAt + 6*time.Second
	RepairAt    = KillAt + 8*time.Second
	RepairedAt  = KillAt + 17*time.Second
	ReturnAt    = KillAt + 30*time.Second
)

func (o *Options) ensureDefaults() {
	o.Nodes, o.Topics, o.Shards = cmp.Or(o.Nodes, 5), cmp.Or(o.Topics, 6), cmp.Or(o.Shards, 16)
	o.Ranges = max(cmp.Or(o.Ranges, 40), o.Topics)
	o.Groups = cmp.Or(o.Groups, 6)
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	}
	o.Length = cmp.Or(o.Length, 90*time.Second)
	o.Quiet = o.Quiet || o.Calm || o.Nodes < 2 // of two, nobody would be left to tell
}

// Victim is the node that dies.
func (o Options) Victim() sdk.NodeID {
	return nodeName(min(2, max(cmp.Or(o.Nodes, 5)-1, 0)), cmp.Or(o.Nodes, 5))
}

func nodeName(i, of int) sdk.NodeID {
	if of > 9 {
		return sdk.NodeID(fmt.Sprintf("n%02d", i+1))
	}
	return sdk.NodeID(fmt.Sprintf("n%d", i+1))
}

// world is the cluster as it truly is.
type world struct {
	o           Options
	rnd         *rand.Rand
	now         time.Time
	nodes       []*node
	shards      []*shard
	topics      []*topic
	byNode      [][]*rng // ranges by leader
	nextSegment sdk.SegmentID
	ring        uint64
	ringVersion uint64
	groups      []*sdk.GroupCounters
	repairs     []*repair
	damaged     []*rng // that lost a replica with the victim
}

type node struct {
	i        int
	id       sdk.NodeID
	boot     uint64
	up       bool
	started  time.Time
	seq      uint64
	logSeq   uint64
	in, out  uint64
	hits     uint64
	believes []belief // by index
}

type belief struct {
	state string
	boot  uint64
	since time.Time
}

type shard struct {
	id     sdk.ShardID
	voters []int
	leader int // -1: none
	term   uint64
	commit uint64
	since  time.Time
}

type topic struct {
	name    string
	id      sdk.TopicID
	shard   *shard
	ranges  []*rng // active ones
	past    []*rng
	next    sdk.RangeID
	weight  float64
	created time.Time
}

type rng struct {
	topic             *topic
	id                sdk.RangeID
	start, end        uint64
	parents, children []sdk.RangeID
	cause             string
	created, sealed   time.Time
	replicas          []int // leader first
	segment           sdk.SegmentID
	base, offset      int64
	bytes             int64
	opened            time.Time
	rate              float64 // bytes a second on the average
	load              string
	streak            int
	olds              []sdk.SegmentDetail
}

type repair struct {
	r              *rng
	old            sdk.SegmentID
	source, target int
	total          int64
	from, to       time.Time
}

var topicNames = []string{"orders", "clicks", "payments", "telemetry", "sessions", "audit", "invoices", "search", "mail", "prices"}

const recordSize = 250

func newWorld(o Options) *world {
	w := &world{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 0x5eed)), now: o.Start, nextSegment: 1000, ring: 0x9f3c_51aa_0b17_22e4, ringVersion: 184}
	w.byNode = make([][]*rng, o.Nodes)
	for i := range o.Nodes {
		n := &node{i: i, id: sdk.NodeID(o.lengthen(string(nodeName(i, o.Nodes)), longestNode)), boot: 3 + uint64(w.rnd.IntN(2)), up: true, started: o.Start.Add(-76 * time.Hour)}
		n.believes = make([]belief, o.Nodes)
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes {
		for j, m := range w.nodes {
			n.believes[j] = belief{"alive", m.boot, o.Start.Add(-70 * time.Hour)}
		}
	}
	w.makeShards()
	w.makeTopics()
	w.makeGroups()
	return w
}

func (w *world) pick3() []int {
	n := len(w.nodes)
	first := w.rnd.IntN(n)
	set := []int{first}
	for step := 1; len(set) < min(3, n); step++ {
		set = append(set, (first+step*(1+w.rnd.IntN(2)))%n)
		if set[len(set)-1] == set[len(set)-2] || set[len(set)-1] == first {
			set = set[:len(set)-1]
		}
	}
	return set
}

func (w *world) makeShards() {
	bits := uint8(0)
	for 1<<bits < w.o.Shards {
		bits++
	}
	for i := range w.o.Shards {
		voters := w.pick3()
		w.shards = append(w.shards, &shard{
			id: sdk.ShardID{Root: uint16(i)}, voters: voters, leader: voters[0], term: 3 + uint64(w.rnd.IntN(4)),
			commit: uint64(1000 + w.rnd.IntN(20_000)), since: w.o.Start.Add(-time.Duration(w.rnd.IntN(72)) * time.Hour),
		})
	}
}

func (w *world) makeTopics() {
	var sum float64
	for i := range w.o.Topics {
		t := &topic{weight: 1 / float64(i+1), next: 1, shard: w.shards[w.rnd.IntN(len(w.shards))], created: w.o.Start.Add(-70 * time.Hour)}
		t.name = fmt.Sprintf("topic-%03d", i)
		if i < len(topicNames) {
			t.name = topicNames[i]
		}
		t.name = w.o.lengthen(t.name, longestTopic)
		t.id = sdk.TopicID{byte(i >> 8), byte(i), 0x40, 0x01, 1}
		sum += t.weight
		w.topics = append(w.topics, t)
	}
	left := w.o.Ranges - w.o.Topics
	for _, t := range w.topics {
		n := 1 + int(float64(left)*t.weight/sum)
		rate := 120e6 * float64(w.o.Nodes) / 5 * t.weight / sum / float64(n)
		for i := range n {
			r := w.newRange(t, cut(i, n), cut(i+1, n))
			r.rate = rate * (0.4 + 1.2*w.rnd.Float64())
		}
	}
}

// cut is the position of the i-th of n equal parts; that of the last ends the key space.
func cut(i, n int) uint64 {
	if i == n {
		return 0
	}
	return ^uint64(0) / uint64(n) * uint64(i)
}

func (w *world) newRange(t *topic, start, end uint64) *rng {
	r := &rng{topic: t, id: t.next, start: start, end: end, created: w.now.Add(-time.Duration(w.rnd.IntN(3600)) * time.Second), load: "normal"}
	t.next++
	r.replicas = w.pick3()
	r.base = int64(w.rnd.IntN(1_000_000))
	r.offset = r.base
	r.opened = w.now.Add(-time.Duration(w.rnd.IntN(240)) * time.Second)
	w.open(r)
	switch w.rnd.IntN(12) {
	case 0:
		r.load, r.streak = "pressure", 1+w.rnd.IntN(2)
	case 1:
		r.load, r.streak = "idle", 1+w.rnd.IntN(2)
	}
	t.ranges = append(t.ranges, r)
	w.byNode[r.replicas[0]] = append(w.byNode[r.replicas[0]], r)
	return r
}

func (w *world) open(r *rng) {
	w.nextSegment++
	r.segment, r.bytes = w.nextSegment, int64(w.rnd.IntN(200<<20))
}

// lead moves a range to another leader.
func (w *world) lead(r *rng, replicas []int) {
	from := r.replicas[0]
	for i, other := range w.byNode[from] {
		if other == r {
			w.byNode[from] = append(w.byNode[from][:i:i], w.byNode[from][i+1:]...)
			break
		}
	}
	r.replicas = replicas
	w.byNode[replicas[0]] = append(w.byNode[replicas[0]], r)
}

func (w *world) makeGroups() {
	names := []string{"billing", "search-index", "fraud", "etl-nightly", "mailer", "dash"}
	for i := range max(w.o.Groups, 0) {
		g := &sdk.GroupCounters{Group: fmt.Sprintf("group-%03d", i), State: "stable", Generation: uint64(2 + w.rnd.IntN(20)), RecordsPerSec: int64(1000 + w.rnd.IntN(60_000))}
		if i < len(names) {
			g.Group = names[i]
		}
		t := w.topics[i%len(w.topics)]
		g.Topics = []string{t.name}
		g.Ranges = len(t.ranges)
		g.Lag, g.LagMs = int64(w.rnd.IntN(20_000)), int64(w.rnd.IntN(900))
		members := 1 + w.rnd.IntN(5)
		if g.Group == "etl-nightly" {
			g.State, members, g.RecordsPerSec = "empty", 0, 0
		}
		for m := range members {
			member := sdk.GroupMember{Name: fmt.Sprintf("%s-%d", g.Group, m+1), Sequence: uint64(80_000 + w.rnd.IntN(9000)), Tokens: 20, Assignment: 0xa1, Lag: g.Lag / int64(members)}
			for k, r := range t.ranges {
				if k%members == m && len(member.Ranges) < 40 {
					member.Ranges = append(member.Ranges, t.name+"/"+r.id.String())
				}
			}
			g.Members = append(g.Members, member)
		}
		g.Converged, g.ConvergedMs = members, 1400
		w.groups = append(w.groups, g)
	}
}
