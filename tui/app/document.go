package app

import (
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/tui/store"
)

// snapshot is the document of eg-top --once -o json: all that is known at one moment. Fields are only ever added.
type snapshot struct {
	Schema     string        `json:"schema"`
	ObservedAt term.Time     `json:"observed_at"`
	Cluster    clusterDoc    `json:"cluster"`
	Health     healthDoc     `json:"health"`
	Nodes      []nodeDoc     `json:"nodes"`
	Believes   []believesDoc `json:"believes"`
	Shards     []shardDoc    `json:"shards"`
	Topics     []topicDoc    `json:"topics"`
	Ranges     []rangeDoc    `json:"ranges"`
	Segments   []segmentDoc  `json:"segments"`
	Seals      []sealDoc     `json:"seals"`
	Changes    []changeDoc   `json:"changes"`
	Groups     []groupDoc    `json:"groups"`
	Events     []eventDoc    `json:"events"`
}

const schemaSnapshot = "top/1"

// Most of each that a document holds, the newest kept: a cluster may have tens of thousands of ranges.
const (
	mostEvents = 200
	mostSeals  = 500
)

type clusterDoc struct {
	ID         string       `json:"id"`
	Context    string       `json:"context"`
	Link       string       `json:"link"`
	Streams    int          `json:"streams"`
	Known      int          `json:"known"`
	AtLeast    bool         `json:"at_least"`
	Alive      int          `json:"alive"`
	Suspect    int          `json:"suspect"`
	Dead       int          `json:"dead"`
	Left       int          `json:"left"`
	InBytes    float64      `json:"in_bytes_per_second"`
	OutBytes   float64      `json:"out_bytes_per_second"`
	InRecords  float64      `json:"in_records_per_second"`
	OutRecords float64      `json:"out_records_per_second"`
	AckP50     float64      `json:"ack_p50_ms"`
	AckP99     float64      `json:"ack_p99_ms"`
	FsyncP99   float64      `json:"fsync_p99_ms"`
	SealGapP99 float64      `json:"seal_gap_p99_ms"`
	Agree      int          `json:"agree"`
	AgreeOf    int          `json:"agree_of"`
	Shards     int          `json:"shards"`
	Leaders    int          `json:"leaders"`
	Totals     store.Totals `json:"totals"`
}

type healthDoc struct {
	Result   string     `json:"result"`
	Observer string     `json:"observer"`
	Checks   []checkDoc `json:"checks"`
}

type checkDoc struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

type nodeDoc struct {
	ID          string    `json:"id"`
	Address     string    `json:"address"`
	Rack        string    `json:"rack"`
	Version     string    `json:"version"`
	State       string    `json:"state"`
	Since       term.Time `json:"since"`
	Status      string    `json:"status"`
	Stream      string    `json:"stream"`
	HeardAt     term.Time `json:"heard_at"`
	UptimeMs    int64     `json:"uptime_ms"`
	InBytes     float64   `json:"in_bytes_per_second"`
	OutBytes    float64   `json:"out_bytes_per_second"`
	DiskUsed    int64     `json:"disk_used"`
	DiskTotal   int64     `json:"disk_total"`
	Segments    int       `json:"segments"`
	Leads       int       `json:"leads"`
	ShardLeads  int       `json:"shard_leads"`
	RingHash    string    `json:"ring_hash"`
	RingVersion uint64    `json:"ring_version"`
	RttUs       int64     `json:"rtt_us"`
	SkewMs      int64     `json:"skew_ms"`
}

type believesDoc struct {
	Observer string      `json:"observer"`
	Stale    bool        `json:"stale"`
	Beliefs  []beliefDoc `json:"beliefs"`
}

type beliefDoc struct {
	Node  string `json:"node"`
	State string `json:"state"`
}

type shardDoc struct {
	ID     string    `json:"id"`
	Leader string    `json:"leader"`
	Term   uint64    `json:"term"`
	Since  term.Time `json:"since"`
	Stale  bool      `json:"stale"`
}

type topicDoc struct {
	Name      string  `json:"name"`
	Ranges    int     `json:"ranges"`
	InBytes   float64 `json:"in_bytes_per_second"`
	InRecords float64 `json:"in_records_per_second"`
	AtLeast   bool    `json:"at_least"`
}

type rangeDoc struct {
	Topic   string    `json:"topic"`
	Range   string    `json:"range"`
	Start   term.Hash `json:"start"`
	End     term.Hash `json:"end" doc:"0: the end of the key space"`
	State   string    `json:"state"`
	Load    string    `json:"load"`
	InBytes float64   `json:"in_bytes_per_second"`
	Leader  string    `json:"leader"`
	Segment string    `json:"segment"`
	Counted bool      `json:"counted"`
}

type segmentDoc struct {
	ID       string   `json:"id"`
	Topic    string   `json:"topic"`
	Range    string   `json:"range"`
	State    string   `json:"state"`
	Cause    string   `json:"cause"`
	Base     int64    `json:"base"`
	End      int64    `json:"end"`
	Bytes    int64    `json:"bytes"`
	Replicas []string `json:"replicas"`
	Copies   int      `json:"copies"`
	Want     int      `json:"want"`
	GapMs    int64    `json:"gap_ms"`
}

type sealDoc struct {
	Time  term.Time `json:"time"`
	Node  string    `json:"node"`
	Topic string    `json:"topic"`
	Range string    `json:"range"`
	Old   string    `json:"old"`
	New   string    `json:"new"`
	Cause string    `json:"cause"`
	GapMs int64     `json:"gap_ms" doc:"-1: not known yet"`
}

type changeDoc struct {
	Time     term.Time `json:"time"`
	Topic    string    `json:"topic"`
	Merge    bool      `json:"merge"`
	Parents  []string  `json:"parents"`
	Children []string  `json:"children"`
	Cause    string    `json:"cause"`
}

type groupDoc struct {
	Name        string `json:"name"`
	Coordinator string `json:"coordinator"`
	State       string `json:"state"`
	Generation  uint64 `json:"generation"`
	Members     int    `json:"members"`
	Converged   int    `json:"converged"`
	Ranges      int    `json:"ranges"`
	Lag         int64  `json:"lag"`
	LagMs       int64  `json:"lag_ms"`
}

type eventDoc struct {
	Time    term.Time `json:"time"`
	Node    string    `json:"node"`
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Cause   string    `json:"cause"`
	Before  string    `json:"before"`
	After   string    `json:"after"`
	Detail  string    `json:"detail"`
	Local   bool      `json:"local" doc:"of the program that watched"`
}

func newSnapshot(v *store.View, now time.Time) snapshot {
	c := &v.Cluster
	ms := func(us int64) float64 { return float64(us) / 1000 }
	s := snapshot{
		Schema: schemaSnapshot, ObservedAt: term.Time{Time: now},
		Cluster: clusterDoc{
			ID: c.ID, Context: c.Context, Link: string(c.Link.State), Streams: c.Streams, Known: c.Known, AtLeast: c.AtLeast,
			Alive: c.Alive, Suspect: c.Suspect, Dead: c.Dead, Left: c.Left,
			InBytes: c.InBytes, OutBytes: c.OutBytes, InRecords: c.InRecords, OutRecords: c.OutRecords,
			AckP50: ms(c.Ack.P50Us), AckP99: ms(c.Ack.P99Us), FsyncP99: ms(c.Fsync.P99Us), SealGapP99: ms(c.SealGap.P99Us),
			Agree: c.Agree, AgreeOf: c.AgreeOf, Shards: c.Shards, Leaders: c.Leaders, Totals: c.Totals,
		},
		Health: healthDoc{Result: healthWord(v), Observer: string(v.Health.Observer), Checks: []checkDoc{}},
		Nodes:  []nodeDoc{}, Believes: []believesDoc{}, Shards: []shardDoc{}, Topics: []topicDoc{}, Ranges: []rangeDoc{}, Segments: []segmentDoc{},
		Seals: []sealDoc{}, Changes: []changeDoc{}, Groups: []groupDoc{}, Events: []eventDoc{},
	}
	for _, h := range v.Health.Checks {
		s.Health.Checks = append(s.Health.Checks, checkDoc{ID: h.ID, Name: h.Name, Result: h.Result.String(), Detail: h.Detail})
	}
	s.addNodes(v)
	s.addTopics(v)
	s.addHistory(v)
	return s
}

// healthWord is the verdict; empty when nobody was asked.
func healthWord(v *store.View) string {
	if v.Health.At.IsZero() {
		return ""
	}
	return v.Health.Worst.String()
}

func (s *snapshot) addNodes(v *store.View) {
	for _, n := range v.Nodes.Rows() {
		s.Nodes = append(s.Nodes, nodeDoc{
			ID: string(n.ID), Address: n.Address, Rack: n.Rack, Version: n.Software, State: n.State, Since: term.Time{Time: n.Since}, Status: n.Status,
			Stream: string(n.Stream), HeardAt: term.Time{Time: n.Heard}, UptimeMs: n.UptimeMs, InBytes: n.InBytes, OutBytes: n.OutBytes,
			DiskUsed: n.DiskUsed, DiskTotal: n.DiskTotal, Segments: n.Segments, Leads: n.Leaders, ShardLeads: n.ShardLeaders,
			RingHash: term.Hash(n.RingHash).String(), RingVersion: n.RingVersion, RttUs: n.RttUs, SkewMs: n.SkewMs,
		})
	}
	for _, o := range v.Believes.Observers {
		row := believesDoc{Observer: string(o.Node), Stale: o.Stale, Beliefs: []beliefDoc{}}
		for _, b := range o.Beliefs {
			row.Beliefs = append(row.Beliefs, beliefDoc{string(b.Node), b.State})
		}
		s.Believes = append(s.Believes, row)
	}
	for id, r := range v.Shards.All() {
		s.Shards = append(s.Shards, shardDoc{ID: id.String(), Leader: string(r.Leader), Term: r.Term, Since: term.Time{Time: r.Since}, Stale: r.Stale})
	}
}

func (s *snapshot) addTopics(v *store.View) {
	for _, t := range v.Topics.Rows() {
		s.Topics = append(s.Topics, topicDoc{Name: t.Name, Ranges: t.Ranges, InBytes: t.InBytes, InRecords: t.InRecords, AtLeast: t.AtLeast})
	}
	for k, r := range v.Ranges.All() {
		row := rangeDoc{
			Topic: k.Topic, Range: k.Range.String(), Start: term.Hash(r.Start), End: term.Hash(r.End), State: r.State, Load: r.Load,
			InBytes: r.InBytes, Leader: string(r.Leader), Counted: r.Counted,
		}
		if r.Segment != 0 {
			row.Segment = r.Segment.String()
		}
		s.Ranges = append(s.Ranges, row)
	}
	for id, r := range v.Segments.All() {
		row := segmentDoc{
			ID: id.String(), Topic: r.Range.Topic, Range: r.Range.Range.String(), State: r.State, Cause: r.Cause, Base: r.Base, End: r.End,
			Bytes: r.Bytes, Replicas: []string{}, Copies: r.Copies, Want: r.Want, GapMs: r.GapMs,
		}
		for _, c := range r.Replicas {
			row.Replicas = append(row.Replicas, string(c.Node))
		}
		s.Segments = append(s.Segments, row)
	}
}

func (s *snapshot) addHistory(v *store.View) {
	for _, e := range v.Seals.Last(mostSeals) {
		s.Seals = append(s.Seals, sealDoc{
			Time: term.Time{Time: e.Time}, Node: string(e.Node), Topic: e.Range.Topic, Range: e.Range.Range.String(), Old: e.Old.String(), New: e.New.String(),
			Cause: e.Cause, GapMs: e.GapMs,
		})
	}
	for _, e := range v.Changes.Last(mostSeals) {
		row := changeDoc{Time: term.Time{Time: e.Time}, Topic: e.Topic, Merge: e.Merge, Parents: []string{}, Children: []string{}, Cause: e.Cause}
		for _, r := range e.Parents {
			row.Parents = append(row.Parents, r.String())
		}
		for _, r := range e.Children {
			row.Children = append(row.Children, r.String())
		}
		s.Changes = append(s.Changes, row)
	}
	for name, g := range v.Groups.All() {
		s.Groups = append(s.Groups, groupDoc{
			Name: name, Coordinator: string(g.Coordinator), State: g.State, Generation: g.Generation, Members: len(g.Members), Converged: g.Converged,
			Ranges: g.Ranges, Lag: g.Lag, LagMs: g.LagMs,
		})
	}
	for _, e := range v.Events.Last(mostEvents) {
		s.Events = append(s.Events, eventDoc{
			Time: term.Time{Time: e.At}, Node: string(e.Node), Type: e.Type, Subject: e.Subject, Cause: e.Cause, Before: e.Before, After: e.After,
			Detail: e.Detail, Local: e.Local,
		})
	}
}
