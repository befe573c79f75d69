package server

import (
	"context"
	"strconv"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/topology"
)

// What the parts report, turned into the node's journal and its view of the cluster.

// readNodes folds the root shard's nodes into the view.
func (s *Server) readNodes(ctx context.Context) error {
	return s.host.View(ctx, base.RootShard, func(st *meta.State) error {
		s.takeNodes(st)
		return nil
	})
}

func (s *Server) takeNodes(st *meta.State) {
	var v topology.View
	for _, n := range st.Root().Nodes {
		v = topology.Reduce(v, topology.Event{Seen: &topology.Seen{
			ID: n.ID, Disk: n.Disk, Boot: n.Boot, Instance: n.Instance, Address: n.Address, Rack: n.Rack,
			Labels: n.Labels, Version: n.Version, Admitted: true,
		}})
		v = topology.Reduce(v, topology.Event{Standing: &topology.StandingChange{ID: n.ID, Standing: standing(n.State)}})
	}
	s.nodes.Lock()
	defer s.nodes.Unlock()
	s.nodes.view, s.nodes.usageAt = v, time.Time{}
}

// usageAge is how old a node's view of its own disk may be. To look costs a walk over every segment.
const usageAge = time.Second

// view is the cluster as this node sees it: what the root has admitted, and this node's own disk.
func (s *Server) view() topology.View {
	s.nodes.Lock()
	defer s.nodes.Unlock()
	if now := time.Now(); now.Sub(s.nodes.usageAt) >= usageAge {
		s.nodes.usageAt = now
		st := s.store.Stats()
		s.nodes.view = topology.Reduce(s.nodes.view, topology.Event{Usage: &topology.Usage{
			ID: s.id.Node, Boot: s.id.Boot, Full: st.DiskFull, DiskFree: st.DiskFree, DiskTotal: st.DiskTotal,
			Segments: st.Segments, Leading: s.plane.Leads(),
		}})
	}
	return s.nodes.view
}

// onApply hears what a shard has applied.
func (s *Server) onApply(shard base.ShardID, events []meta.Event) {
	for _, e := range events {
		s.journal.Append(metaEvent(s.id.Node, shard, e))
	}
	if c := s.coord.Load(); c != nil {
		c.Applied(shard, events)
	}
}

func metaEvent(node base.NodeID, shard base.ShardID, e meta.Event) telemetry.Event {
	t := telemetry.Event{Node: node, Type: string(e.Type), TimeMs: e.TimeMs, Cause: e.Cause, GapMs: e.GapMs, Detail: map[string]string{"shard": shard.String()}}
	switch {
	case e.Name != "" && e.Range != 0:
		t.Subject = e.Name + "/" + e.Range.String()
	case e.Name != "":
		t.Subject = e.Name
	case e.Node != "":
		t.Subject = string(e.Node)
	}
	set := func(key, value string) {
		if value != "" {
			t.Detail[key] = value
		}
	}
	if e.Segment != 0 {
		set("segment", e.Segment.String())
		set("end", strconv.FormatInt(e.Offset, 10))
	}
	if e.Next != 0 {
		set("next", e.Next.String())
	}
	if e.Bytes != 0 {
		set("bytes", strconv.FormatInt(e.Bytes, 10))
	}
	set("detail", e.Detail)
	return t
}

// onRoll hears that a range goes on in a new segment: the gap is what producers felt.
func (s *Server) onRoll(r dataplane.Rolled) {
	s.journal.Append(telemetry.Event{
		Node: s.id.Node, Type: "SEGMENT_OPENED", Subject: r.Topic + "/" + r.Ref.Range.String(), Cause: r.Cause, GapMs: r.Gap.Milliseconds(),
		Detail: map[string]string{"segment": r.Opened.String(), "previous": r.Sealed.String(), "base": strconv.FormatInt(r.End, 10)},
	})
}

var storeEvents = map[store.EventKind]string{
	store.EventRecovered:   "STORE_RECOVERED",
	store.EventDamage:      "DATA_DAMAGED",
	store.EventQuarantined: "FILE_QUARANTINED",
	store.EventCheckpoint:  "", // too frequent to be news
	store.EventDiskFull:    "DISK_FULL",
	store.EventDiskFreed:   "DISK_FREED",
	store.EventDropped:     "FILES_DROPPED",
}

func (s *Server) onStoreEvent(e store.Event) {
	name := storeEvents[e.Kind]
	if name == "" {
		return
	}
	detail := map[string]string{"detail": e.Detail}
	if e.Path != "" {
		detail["path"] = e.Path
	}
	if e.Bytes != 0 {
		detail["bytes"] = strconv.FormatInt(e.Bytes, 10)
	}
	subject := string(s.id.Node)
	if e.Segment != 0 {
		subject = e.Ref.String() + "/" + e.Segment.String()
	}
	s.journal.Append(telemetry.Event{Node: s.id.Node, Type: name, Subject: subject, Detail: detail})
}

func nodeEvent(node base.NodeID, kind string, pairs ...string) telemetry.Event {
	e := telemetry.Event{Node: node, Type: kind, Subject: string(node), Detail: map[string]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		e.Detail[pairs[i]] = pairs[i+1]
	}
	return e
}

func standing(s meta.NodeState) topology.Standing {
	switch s {
	case meta.NodeDraining:
		return topology.Draining
	case meta.NodeOut:
		return topology.Out
	case meta.NodeNormal:
	}
	return topology.Normal
}
