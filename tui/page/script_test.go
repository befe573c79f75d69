package page

import (
	"fmt"
	"math"
	"time"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// noon is when the scripted views are drawn: the clock of the tests.
var noon = time.Date(2026, 11, 29, 12, 4, 31, 0, time.UTC)

// script builds a store's input by hand: a cluster of which every number is known.
type script struct {
	st    *store.Store
	nodes int
	seq   map[sdk.NodeID]uint64
	rolls int
	plot  map[time.Duration]func() // what happens how long ago, beside rolls
	well  bool                     // no shard is in trouble
	told  bool                     // counters tell of groups, too
}

func newScript(nodes int) *script {
	return &script{st: store.New(store.Options{History: -1}), nodes: nodes, seq: map[sdk.NodeID]uint64{}}
}

func (s *script) node(i int) sdk.NodeID {
	if s.nodes > 9 {
		return sdk.NodeID(fmt.Sprintf("n%02d", i))
	}
	return sdk.NodeID(fmt.Sprintf("n%d", i))
}

func (s *script) boot(i int) uint64 {
	switch i {
	case 3:
		return 7
	case 5:
		return 4
	}
	return 3
}

func (s *script) at(ago time.Duration, m store.Message) {
	m.Time = noon.Add(-ago)
	s.st.Apply(m)
}

func (s *script) hello() {
	s.at(3*time.Minute, store.Message{Hello: &store.Hello{
		Cluster: "c", Context: "prod-eu", Seeds: []string{"10.0.0.11:2921"}, Version: "v0.9.1",
	}})
}

// state is what a node tells of itself, of the members and of its shards.
func (s *script) state(i int, ago time.Duration, suspects int, shards []sdk.ShardStatus) {
	id := s.node(i)
	racks := []string{"eu-b", "eu-a", "eu-b", "eu-c"}
	disk := []int64{0, 41, 40, 44, 41, 39}
	state := &sdk.NodeState{RingHash: 0x9f3c5a1122334455, RingVersion: 184, Shards: shards}
	state.Self = sdk.NodeStatus{
		ID: id, Boot: s.boot(i), Address: fmt.Sprintf("10.0.%d.%d:2921", i/200, 10+i%200), State: "alive", Status: "normal",
		Rack: racks[i%4], Version: "v0.9.1", UptimeMs: (76*time.Hour + time.Duration(i)*time.Minute).Milliseconds(),
		DiskUsed: disk[i%6] << 34, DiskTotal: 100 << 34, Segments: 786 + i*7%30, Leaders: 47 + i*3%8, Followers: 2 * (47 + i*3%8),
		ShardLeaders: 256/s.nodes + i%3 - 1, Vnodes: 256, OwnsPerMillion: 1_000_000/s.nodes + i%3*4000 - 4000,
		FsyncP99Us: 3100, AckP99Us: 8100, RttUs: int64(400 + i%3*100), Connections: 40 + i, RingHash: state.RingHash,
		RingVersion: 184, Replicas: 3 * 256 / s.nodes, SinceMs: noon.Add(-76 * time.Hour).UnixMilli(), Admitted: true,
	}
	for j := 1; j <= s.nodes; j++ {
		m := sdk.RingMember{
			Node: s.node(j), State: "alive", Status: "normal", Boot: s.boot(j), Vnodes: 256, Rack: racks[j%4],
			OwnsPerMillion: 1_000_000/s.nodes + j%3*4000 - 4000, SinceMs: noon.Add(-76 * time.Hour).UnixMilli(),
		}
		if j == suspects && i != 5 {
			m.State, m.SinceMs = "suspect", noon.Add(-3*time.Second).UnixMilli()
		}
		state.Members = append(state.Members, m)
	}
	if i == 5 && suspects != 0 {
		state.RingVersion = 183
	}
	s.at(ago, store.Message{Node: id, Boot: s.boot(i), State: state})
}

// wave is a number that goes up and down without chance.
func wave(i, t int) float64 {
	return 1 + 0.5*math.Sin(float64(t)/9+float64(i)/40) + 0.3*math.Sin(float64(t)/4.3+float64(i)/20)
}

// topics of the script: name, ranges, bytes a second.
var scriptTopics = []struct {
	name   string
	ranges int
	rate   float64
}{
	{"orders", 8, 61.2e6},
	{"clicks", 8, 33e6},
	{"payments", 4, 12.4e6},
	{"audit", 2, 1.1e6},
	{"名前-événements", 2, 400e3},
	{"evil\x1b[2J\u202etopic", 1, 20e3},
}

// rangeIDs of orders are those of a topic that has split; others count.
func scriptRange(topic string, i int) sdk.RangeID {
	if topic == "orders" {
		return []sdk.RangeID{3, 5, 41, 42, 18, 20, 25, 26}[i]
	}
	return sdk.RangeID(i + 1)
}

// bounds are the cuts of a topic's key space.
func scriptSpan(topic string, i, of int) (start, end uint64) {
	if topic == "orders" {
		cuts := []uint64{0, 0x2 << 60, 0x4 << 60, 0x5 << 60, 0x6 << 60, 0x8 << 60, 0xc << 60, 0xe << 60, 0}
		return cuts[i], cuts[i+1]
	}
	step := math.MaxUint64/uint64(of) + 1
	if of == 1 {
		return 0, 0
	}
	return step * uint64(i), step * uint64(i+1)
}

func quantiles(p50, p90, p99, p999, most int64) sdk.Quantiles {
	return sdk.Quantiles{Count: 1000, P50Us: p50, P90Us: p90, P99Us: p99, P999Us: p999, MaxUs: most}
}

func (s *script) counters(i int, ago time.Duration) {
	t := int(ago / time.Second)
	f := wave(i, t)
	c := &sdk.NodeCounters{
		ObservedMs: noon.Add(-ago).UnixMilli(), WindowMs: 10_000,
		InBytesPerSec: int64(25.7e6 * f), OutBytesPerSec: int64(80.5e6 * f),
		InRecordsPerSec: int64(102e3 * f), OutRecordsPerSec: int64(320e3 * f),
		Ack: quantiles(3100, 5900, 8100+int64(900*f), 22_400, 31_000), Fsync: quantiles(1200, 2200, 3200, 6000, 9000),
		Replicate: quantiles(1500, 2500, 4200, 9000, 15_000), SealGap: quantiles(88_000, 100_000, 121_000, 121_000, 121_000),
		BatchesPerSec: 30, BatchRecords: 11_800, BatchBytes: 1_990_000, CacheHits: uint64(1e6 - 990*t), CacheMisses: uint64(1e4 - 8*t),
		WalBytes: 64 << 20, WalFiles: 2, DiskUsed: 41 << 34, DiskTotal: 100 << 34, Segments: 786 + i*7%30, Leaders: 47 + i*3%8,
		Followers: 2 * (47 + i*3%8), Connections: 40 + i, RssBytes: 420 << 20, Others: []int{120, 30, 12, 4, 1, 0, 0},
	}
	for _, topic := range scriptTopics {
		for r := range topic.ranges {
			if r%s.nodes+1 != i {
				continue
			}
			row := sdk.RangeCounters{
				Topic: topic.name, Range: scriptRange(topic.name, r), InBytesPerSec: int64(topic.rate / float64(topic.ranges) * (0.6 + 0.8*f*float64(r%3+1)/3)),
				InRecordsPerSec: int64(topic.rate / float64(topic.ranges) / 250), Load: "normal",
				Segment: sdk.SegmentID(880 + r*4), SegmentBytes: int64(11+r*9) << 20, End: 1_204_881,
			}
			row.Span.Start, row.Span.End = scriptSpan(topic.name, r, topic.ranges)
			switch {
			case topic.name == "orders" && (row.Range == 41 || row.Range == 42):
				row.Load, row.Segment = "unknown", sdk.SegmentID(864+row.Range)
			case topic.name == "orders" && row.Range == 5:
				row.Load, row.Streak = "pressure", 2
			case topic.name == "audit":
				row.Load, row.Streak = "idle", 4
			}
			c.Ranges = append(c.Ranges, row)
		}
	}
	if s.told && i == 1 {
		c.Groups = s.groups(t)
	}
	if s.told && i == 5 {
		c.Repairs = s.repairs()
	}
	s.at(ago, store.Message{Node: s.node(i), Boot: s.boot(i), Counters: c})
}

func (s *script) event(i int, ago time.Duration, e sdk.Event) {
	id := s.node(i)
	s.seq[id]++
	e.Seq, e.Node, e.TimeMs = s.seq[id], id, noon.Add(-ago).UnixMilli()
	s.at(ago, store.Message{Node: id, Boot: s.boot(i), Event: &e})
}

// seal is a roll as the shard's leader and the new segment's leader tell it.
func (s *script) seal(i int, ago time.Duration, subject, old, next, cause string, gap int64) {
	other := s.node(i%s.nodes + 1)
	s.event(i, ago, sdk.Event{
		Type: "SEGMENT_SEALED", Subject: subject, Cause: cause,
		Detail: fmt.Sprintf("bytes=1073741824 end=1204881 next=%s replicas=%s,%s segment=%s shard=44", next, s.node(i), other, old),
	})
	s.event(i, ago-20*time.Millisecond, sdk.Event{
		Type: "SEGMENT_OPENED", Subject: subject, Cause: cause, GapMs: gap,
		Detail: fmt.Sprintf("base=1204881 previous=%s role=leader segment=%s", old, next),
	})
}

func (s *script) shards() map[int][]sdk.ShardStatus {
	led := map[int][]sdk.ShardStatus{}
	count := 256
	if s.nodes > 9 {
		count = 2048
	}
	for id := range count {
		lead := id%s.nodes + 1
		sh := sdk.ShardStatus{
			ID: sdk.ShardID{Root: uint16(id)}, State: "ok", Leader: s.node(lead), Term: uint64(2 + id%5), Commit: uint64(880 + id*71%20000),
			Voters: []sdk.NodeID{s.node(lead), s.node(lead%s.nodes + 1), s.node((lead+1)%s.nodes + 1)}, Topics: id % 4, Want: 3, Hosted: true,
			SinceMs: noon.Add(-75 * time.Hour).UnixMilli(),
		}
		sh.Applied = sh.Commit
		if s.well {
			id = 0
		}
		switch id {
		case 12:
			sh.Term, sh.SinceMs = 9, noon.Add(-17*time.Second).UnixMilli()
		case 91:
			sh.State, sh.Trails, sh.Applied = "catching_up", 3, sh.Commit-3
		case 107:
			sh.State, sh.Leader, sh.Commit, sh.Applied, sh.Term = "no_leader", "", 0, 0, 11
			sh.SinceMs = noon.Add(-time.Second).UnixMilli()
		}
		led[lead] = append(led[lead], sh)
	}
	return led
}

func (s *script) topicList() {
	page := &store.TopicPage{Complete: true}
	for i, t := range scriptTopics {
		page.Topics = append(page.Topics, sdk.TopicSummary{
			ID: sdk.TopicID{byte(i + 1)}, Name: t.name, State: 1, ReplicationFactor: 3, Ranges: t.ranges, Segments: 40 * t.ranges,
			Records: int64(t.rate) * 3, Bytes: int64(t.rate) * 4000, InBytesPerSec: int64(t.rate), InRecordsPerSec: int64(t.rate / 250),
			RetentionMs: (7 * 24 * time.Hour).Milliseconds(), Compression: "zstd", CreatedMs: noon.Add(-90 * 24 * time.Hour).UnixMilli(),
			Shard: sdk.ShardID{Root: uint16(44 + i)}, ShardLeader: s.node(i%s.nodes + 1), UnderReplicated: 1 - min(i, 1), Partial: i == 2,
		})
	}
	s.at(2*time.Second, store.Message{Topics: page})
	s.at(2*time.Second, store.Message{Totals: &store.Totals{
		Topics: 214, Ranges: 1902, Segments: 44_012, Groups: 0, Records: 812e6, Bytes: 6 << 40, UnderReplicated: 1,
	}})
}

func (s *script) ordersDetail() {
	d := &sdk.TopicDetail{Copies: 3}
	d.Summary = sdk.TopicSummary{ID: sdk.TopicID{1}, Name: "orders", State: 1, ReplicationFactor: 3, Ranges: 8, Segments: 320, InBytesPerSec: 61_200_000, InRecordsPerSec: 244_800, Records: 183_600_000, Bytes: 244_800_000_000}
	old := func(id sdk.RangeID, start, end uint64, parent sdk.RangeID, children ...sdk.RangeID) sdk.RangeDetail {
		r := sdk.RangeDetail{ID: id, State: 2, Children: children, Cause: 7, CreatedMs: noon.Add(-50 * time.Hour).UnixMilli(), SealedMs: noon.Add(-20 * time.Hour).UnixMilli()}
		r.Span.Start, r.Span.End = start, end
		if parent != 0 {
			r.Parents = []sdk.RangeID{parent}
		}
		return r
	}
	d.Ranges = append(d.Ranges,
		old(1, 0, 0, 0, 2, 4), old(2, 0, 0x8<<60, 1, 3, 7), old(7, 0x2<<60, 0x8<<60, 2, 5, 9), old(9, 0x4<<60, 0x8<<60, 7, 17, 18),
		old(17, 0x4<<60, 0x6<<60, 9, 41, 42), old(4, 0x8<<60, 0, 1, 20, 19), old(19, 0xc<<60, 0, 4, 25, 26))
	d.Ranges[4].SealedMs = noon.Add(-4 * time.Second).UnixMilli()
	parents := map[sdk.RangeID]sdk.RangeID{3: 2, 5: 7, 41: 17, 42: 17, 18: 9, 20: 4, 25: 19, 26: 19}
	for i := range 8 {
		id := scriptRange("orders", i)
		r := sdk.RangeDetail{
			ID: id, State: 1, Parents: []sdk.RangeID{parents[id]}, End: 1_204_881, Records: 4_000_000, Bytes: 16 << 30,
			InBytesPerSec: int64(61.2e6 / 8), InRecordsPerSec: 30_000, Load: "normal", CreatedMs: noon.Add(-time.Duration(i*7+2) * time.Minute).UnixMilli(),
			Leader: s.node(i%s.nodes + 1),
		}
		r.Span.Start, r.Span.End = scriptSpan("orders", i, 8)
		switch id {
		case 41, 42:
			r.Load, r.CreatedMs = "unknown", noon.Add(-4*time.Second).UnixMilli()
		case 5:
			r.Load = "pressure 2"
		}
		r.Segments = []sdk.SegmentDetail{s.segment(sdk.SegmentID(880+i*4), 1, 0, i)}
		d.Ranges = append(d.Ranges, r)
	}
	s.at(1500*time.Millisecond, store.Message{Topic: d})
}

func (s *script) segment(id sdk.SegmentID, state, cause uint8, i int) sdk.SegmentDetail {
	g := sdk.SegmentDetail{ID: id, Base: 1000, End: 9000, Records: 8000, Bytes: int64(11+i*9) << 20, CreatedMs: noon.Add(-time.Duration(i*40+3) * time.Second).UnixMilli(), Copies: 3}
	g.State++
	for g.State = 0; uint8(g.State) < state; g.State++ {
	}
	for g.Cause = 0; uint8(g.Cause) < cause; g.Cause++ {
	}
	for k := range 3 {
		r := sdk.ReplicaDetail{Node: s.node((i+k)%s.nodes + 1), DurableEnd: 9000, State: "in_sync"}
		if k == 0 && state == 1 {
			r.State = "leader"
		}
		g.Replicas = append(g.Replicas, r)
	}
	return g
}

func (s *script) segments() {
	page := &store.SegmentPage{}
	add := func(topic string, rng sdk.RangeID, g sdk.SegmentDetail, copies int) {
		page.Segments = append(page.Segments, sdk.SegmentRow{Topic: topic, Range: rng, ReplicationFactor: 3, Copies: copies, Segment: g})
	}
	add("orders", 41, s.segment(905, 1, 0, 0), 3)
	add("orders", 42, s.segment(906, 1, 0, 3), 3)
	hurt := s.segment(881, 2, 4, 0)
	hurt.GapMs, hurt.Replicas[2].State, hurt.SealedMs = 96, "no_answer", noon.Add(-3*time.Second).UnixMilli()
	add("orders", 9, hurt, 2)
	add("orders", 9, s.segment(907, 1, 0, 0), 3)
	add("clicks", 2, s.segment(902, 1, 0, 1), 3)
	add("clicks", 2, s.segment(870, 2, 1, 1), 3)
	add("orders", 5, s.segment(790, 2, 6, 1), 2)
	for i := range 20 {
		add("payments", sdk.RangeID(i%4+1), s.segment(sdk.SegmentID(700+i), 2, uint8(1+i%3), i), 3)
	}
	s.at(time.Second, store.Message{Segments: page})
}

func (s *script) health(worst bool) {
	h := &sdk.ClusterHealth{Observer: s.node(1), ObservedMs: noon.UnixMilli(), Nodes: s.nodes}
	h.Checks = []sdk.HealthCheck{
		{ID: "EG101", Name: "membership", Detail: fmt.Sprintf("%d known, %d alive", s.nodes, s.nodes)},
		{ID: "EG102", Name: "view", Detail: fmt.Sprintf("all %d nodes report the same ring hash", s.nodes)},
		{ID: "EG103", Name: "shards", Detail: "256/256 have a leader, max term 9"},
		{ID: "EG104", Name: "replication", Detail: "every segment has its copies"},
		{ID: "EG105", Name: "disk", Detail: "max 44% (n3)"},
		{ID: "EG106", Name: "clocks", Detail: "max skew 4 ms"},
		{ID: "EG107", Name: "versions", Detail: fmt.Sprintf("%d × v0.9.1", s.nodes)},
	}
	if worst {
		h.Checks[0].Result, h.Checks[0].Detail = sdk.HealthWarn, fmt.Sprintf("%d known, %d alive, 1 suspect (n3 3s)", s.nodes, s.nodes-1)
		h.Checks[3].Result, h.Checks[3].Detail = sdk.HealthWarn, "1 segment below RF (orders/r9 s881)"
	}
	s.at(time.Second, store.Message{Health: h})
}

func (s *script) logs() {
	lines := []sdk.LogLine{
		{Level: "info", Message: "shard leadership gained", Attrs: []sdk.LogAttr{{Key: "shard", Value: "12"}, {Key: "term", Value: "9"}}},
		{Level: "warn", Message: "replica is late", Attrs: []sdk.LogAttr{{Key: "segment", Value: "s881"}, {Key: "node", Value: "n3"}, {Key: "waited", Value: "1.2s"}}},
		{Level: "error", Message: "dial failed", Attrs: []sdk.LogAttr{{Key: "node", Value: "n3"}, {Key: "error", Value: "connection \x1b[31mrefused\nsecond line"}}},
		{Level: "debug", Message: "checkpoint written", Attrs: []sdk.LogAttr{{Key: "bytes", Value: "4096"}}},
	}
	for i := range lines {
		lines[i].Seq, lines[i].TimeMs = uint64(i+1), noon.Add(-time.Duration(20-5*i)*time.Second).UnixMilli()
		l := lines[i]
		s.at(time.Second, store.Message{Node: s.node(1 + i%2), Boot: 3, Logs: &store.LogPage{Lines: []sdk.LogLine{l}}})
	}
}

func (s *script) groups(t int) []sdk.GroupCounters {
	member := func(name string, seq uint64, heard time.Duration, lag int64, ranges ...string) sdk.GroupMember {
		return sdk.GroupMember{Name: name, Sequence: seq, HeardMs: noon.Add(-heard).UnixMilli(), Lag: lag, Ranges: ranges, Assignment: 0x77, Tokens: 20}
	}
	gone := member("billing-3", 81_002, 51*time.Second, 0)
	gone.Evicted, gone.SinceMs = "sequence stalled 3s", noon.Add(-51*time.Second).UnixMilli()
	return []sdk.GroupCounters{
		{Group: "billing", State: "stable", Generation: 14, Ranges: 12, Lag: int64(12_004 - 60*t), LagMs: 300, RecordsPerSec: 41_000, Converged: 4, ConvergedMs: 1400, Topics: []string{"orders"}, Members: []sdk.GroupMember{
			member("billing-1", 88_120, 400*time.Millisecond, 2001, "orders/r3", "orders/r41"), member("billing-2", 88_119, 200*time.Millisecond, 3110, "orders/r5", "orders/r42"),
			member("billing-4", 87_990, 900*time.Millisecond, 1004, "orders/r18", "orders/r20"), member("billing-5", 88_031, 100*time.Millisecond, 4889, "orders/r25", "orders/r26"), gone,
		}},
		{Group: "search-index", State: "rebalancing", Generation: 9, Ranges: 8, Lag: int64(2113 + 9*t), LagMs: 100, RecordsPerSec: 33_000, Converged: 10},
		{Group: "fraud", State: "stable", Generation: 3, Ranges: 12, Lag: 88, RecordsPerSec: 61_000},
		{Group: "etl-nightly", State: "empty", Generation: 22, Lag: 4004, LagMs: 720_000},
		{Group: "mailer", State: "stable", Generation: 5, Ranges: 2, RecordsPerSec: 1000},
	}
}

// calm is a cluster of which all is well, seen for two minutes.
func (s *script) calm() *script {
	s.hello()
	led := s.shards()
	for i := 1; i <= s.nodes; i++ {
		s.state(i, 2*time.Minute, 0, led[i])
	}
	for ago := 120; ago > 3; ago-- {
		s.history(time.Duration(ago) * time.Second)
	}
	s.reach()
	s.topicList()
	s.ordersDetail()
	s.segments()
	s.logs()
	return s
}

// history is what happened two minutes long, second by second.
func (s *script) history(ago time.Duration) {
	if happens := s.plot[ago]; happens != nil {
		happens()
	}
	for i := 1; i <= s.nodes; i++ {
		s.counters(i, ago)
		t := int(ago/time.Second) + i*5
		switch {
		case t%17 == 0:
			s.rolls++
			s.seal(i, ago, fmt.Sprintf("clicks/r%d", s.rolls%8+1), fmt.Sprintf("s%d", 2000+s.rolls), fmt.Sprintf("s%d", 2100+s.rolls), "DATA_PRESSURE", int64(40+t%60))
		case t%53 == 0:
			s.rolls++
			s.seal(i, ago, fmt.Sprintf("payments/r%d", s.rolls%4+1), fmt.Sprintf("s%d", 2000+s.rolls), fmt.Sprintf("s%d", 2100+s.rolls), "IDLE", 20)
		}
	}
}

// incident is the same, and n3 falls silent: suspected, its segments sealed, a range split meanwhile.
func (s *script) incident() *script {
	n1, n3 := string(s.node(1)), string(s.node(3))
	s.plot = map[time.Duration]func(){
		69 * time.Second: func() {
			s.event(4, 69*time.Second, sdk.Event{Type: "RANGE_MERGED", Subject: "audit/r40", Cause: "IDLE", Detail: "parents=r30,r31 shard=9"})
		},
		51 * time.Second: func() {
			s.event(1, 51*time.Second, sdk.Event{Type: "GROUP_MEMBER", Subject: "billing", After: "evicted", Detail: `detail="sequence stalled 3s" member=billing-3`})
			s.event(1, 51*time.Second, sdk.Event{Type: "GROUP_GENERATION", Subject: "billing", Before: "13", After: "14", Detail: "members=6 moved=4"})
		},
		20 * time.Second: func() {
			s.event(1, 20*time.Second, sdk.Event{Type: "LEADER_CHANGED", Subject: "shard 12", Before: n3, After: n1, GapMs: 140, Detail: "term=9"})
		},
		4 * time.Second: func() {
			s.event(2, 4*time.Second, sdk.Event{Type: "RANGE_SPLIT", Subject: "orders/r17", Cause: "DATA_PRESSURE", Detail: "at=0x5000000000000000 children=r41,r42 streak=3 shard=44"})
		},
	}
	s.calm()
	s.seal(1, 3*time.Second, "orders/r9", "s881", "s907", "REPLICA_FAILURE", 96)
	s.event(1, 2*time.Second, sdk.Event{Type: "NODE_SUSPECT", Subject: n3, Before: "alive", After: "suspect", Detail: "boot=7"})
	led := s.shards()
	for i := 1; i <= s.nodes; i++ {
		if i == 3 {
			continue
		}
		s.state(i, 2*time.Second, 3, led[i])
	}
	s.at(1900*time.Millisecond, store.Message{Node: s.node(3), Stream: &store.Stream{State: store.StreamLost, Error: "dial " + n3 + ": connection refused"}})
	s.health(true)
	s.alive()
	return s
}

// alive lets all but n3 count until now.
func (s *script) alive() {
	for ago := 3; ago >= 0; ago-- {
		for i := 1; i <= s.nodes; i++ {
			if i != 3 {
				s.counters(i, time.Duration(ago)*time.Second)
			}
		}
	}
}

// grouped adds what no broker of this version tells: groups and a repair.
func (s *script) grouped() *script {
	s.told = true
	return s
}

func (s *script) repairs() []sdk.RepairProgress {
	return []sdk.RepairProgress{{
		Segment: 790, Topic: "orders", Range: 5, Source: s.node(2), Target: s.node(5), Bytes: 620 << 20, Total: 1000 << 20, BytesPerSec: 110 << 20,
		StartedMs: noon.Add(-9 * time.Second).UnixMilli(),
	}}
}

// lost is the incident, and then nobody answers.
func (s *script) lost() *script {
	s.view() // somebody looked while it was well: what was believed then stays
	s.at(-12*time.Second, store.Message{Conn: &store.Conn{
		Lost: true, Error: "dial n2: connection refused", Tried: []string{"n1", "n2", "n3", "n4", "n5", "10.0.0.11:2921"}, Attempt: 4, Next: noon.Add(15200 * time.Millisecond),
	}})
	return s
}

// reach is how far the nodes are from one of them.
func (s *script) reach() {
	r := &sdk.Reached{Observer: s.node(1)}
	for i := 1; i <= s.nodes; i++ {
		if i != 3 {
			r.Peers = append(r.Peers, sdk.PeerReach{Node: s.node(i), Sent: 1, OK: 1, RttUs: []int64{int64(400 + i%3*100)}})
		}
	}
	s.at(2*time.Second, store.Message{Reach: r})
}

func (s *script) view() *store.View { return s.st.View(noon) }
