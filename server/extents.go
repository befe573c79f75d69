package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/topology"
)

const (
	extentWithin  = 500 * time.Millisecond // for all nodes together; who has not answered by then is left out
	extentBatch   = 4096                   // segments a message
	extentFresh   = time.Second            // an answer is used again for so long
	extentsCached = 1 << 16
)

// holding is what one node says of its copy of a segment.
type holding struct {
	disk    base.DiskID // of the node
	boot    uint64      // its start
	held    bool        // it has the segment
	commit  int64       // readers may see below, there
	durable int64
	bytes   int64
	lastMs  int64 // of the last append; 0 = unknown, or none
	inflow  inflow
	damaged bool // intact up to durable alone
}

// inflow is what a range took lately, a second.
type inflow struct {
	Bytes   int64 `cbor:"1,keyasint,omitempty"`
	Records int64 `cbor:"2,keyasint,omitempty"`
}

// copyKey names one node's copy of a segment.
type copyKey struct {
	segment base.SegmentID
	node    base.NodeID
}

// extents are what nodes have said of some segments at one moment. Who is missing did not answer, or was not asked.
type extents map[copyKey]holding

// extent is how far a segment goes: as committed once it is sealed, as its replicas say while it is active.
type extent struct {
	end, bytes int64
	lastMs     int64  // of the last append; 0 = unknown, or none
	inflow     inflow // of an active segment
	known      bool   // false: nobody said, and it counts as empty
}

func (e extent) records(seg *meta.Segment) int64 { return e.end - seg.Base }

// of is a segment's extent: of an active one its leader's word, else that of the follower that can prove the most.
func (x extents) of(seg *meta.Segment) extent {
	if seg.State == base.StateSealed {
		return extent{end: seg.End, bytes: seg.Bytes, lastMs: seg.LastAppendMs, known: true}
	}
	best := extent{end: seg.Base}
	for i, rep := range seg.Replicas {
		h, answered := x[copyKey{seg.ID, rep.Node}]
		if !answered || h.disk != rep.Disk || !h.held && i > 0 {
			continue
		}
		if !best.known || h.commit > best.end {
			best = extent{end: max(h.commit, seg.Base), bytes: h.bytes, lastMs: h.lastMs, inflow: h.inflow, known: true}
		}
		if i == 0 && h.held {
			break
		}
	}
	return best
}

// extents asks how far the topics' active segments go: one replica of each, its leader unless that is away; one message
// a node, at once, within a short time.
func (s *Server) extents(ctx context.Context, topics ...*meta.Topic) extents {
	q := s.newExtentQuestion()
	for _, t := range topics {
		for _, r := range t.Ranges {
			if seg := r.Active(); seg != nil {
				q.addSpokesman(seg)
			}
		}
	}
	return q.ask(ctx)
}

// copies asks every node that holds a segment of a topic for its word on it.
func (s *Server) copies(ctx context.Context, t *meta.Topic) extents {
	var all []*meta.Segment
	for _, r := range t.Ranges {
		all = append(all, r.Segments...)
	}
	return s.copiesOfSegments(ctx, all)
}

func (s *Server) copiesOfSegments(ctx context.Context, segments []*meta.Segment) extents {
	q := s.newExtentQuestion()
	for _, seg := range segments {
		for _, rep := range seg.Replicas {
			q.add(seg.ID, rep.Node)
		}
	}
	return q.ask(ctx)
}

// extentQuestion collects what to ask of whom. What this node holds and what was answered a moment ago is found at once.
type extentQuestion struct {
	s     *Server
	now   time.Time
	view  topology.View
	found extents
	asked map[base.NodeID][]base.SegmentID
}

func (s *Server) newExtentQuestion() *extentQuestion {
	return &extentQuestion{s: s, now: time.Now(), view: s.connected(), found: make(extents), asked: make(map[base.NodeID][]base.SegmentID)}
}

// addSpokesman asks the first replica of a segment that is there.
func (q *extentQuestion) addSpokesman(seg *meta.Segment) {
	for _, rep := range seg.Replicas {
		if rep.Node == q.s.id.Node || lives(q.view, rep.Node) {
			q.add(seg.ID, rep.Node)
			return
		}
	}
}

// add asks a node about a segment, unless the node is known to be away.
func (q *extentQuestion) add(seg base.SegmentID, node base.NodeID) {
	key := copyKey{seg, node}
	if node == q.s.id.Node {
		q.found[key] = q.s.holdingHere(seg)
		return
	}
	if h, ok := q.s.orders.extents.get(key, q.now); ok {
		q.found[key] = h
		return
	}
	if lives(q.view, node) {
		q.asked[node] = append(q.asked[node], seg)
	}
}

// ask puts the question to all nodes side by side.
func (q *extentQuestion) ask(ctx context.Context) extents {
	if len(q.asked) == 0 {
		return q.found
	}
	ctx, cancel := context.WithTimeout(ctx, extentWithin)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for node, ids := range q.asked {
		asking.Go(func() {
			for len(ids) > 0 {
				n := min(len(ids), extentBatch)
				answer, err := callPeer[extentsAnswer](ctx, q.s.peerCalls(), node, kindExtents, extentsMessage{Segments: ids[:n]})
				if err != nil {
					return
				}
				mu.Lock()
				q.take(node, ids[:n], answer)
				mu.Unlock()
				ids = ids[n:]
			}
		})
	}
	asking.Wait()
	return q.found
}

// take notes a node's answer: what it does not list it does not have.
func (q *extentQuestion) take(node base.NodeID, ids []base.SegmentID, a extentsAnswer) {
	none := holding{disk: a.Disk, boot: a.Boot}
	for _, id := range ids {
		q.found[copyKey{id, node}] = none
	}
	for _, e := range a.Extents {
		q.found[copyKey{e.Segment, node}] = holding{
			disk: a.Disk, boot: a.Boot, held: true,
			commit: e.Commit, durable: e.Durable, bytes: e.Bytes, lastMs: e.LastAppendMs, damaged: e.Damaged, inflow: e.Inflow,
		}
	}
	for _, id := range ids {
		key := copyKey{id, node}
		q.s.orders.extents.put(key, q.found[key], q.now)
	}
}

// holdingHere is what this node's store says of a segment.
func (s *Server) holdingHere(id base.SegmentID) holding {
	h := holding{disk: s.id.Disk, boot: s.id.Boot}
	info, ok := s.store.Info(id)
	if !ok {
		return h
	}
	h.held, h.commit, h.durable, h.bytes, h.lastMs = true, info.Commit, info.DurableEnd, info.Bytes, info.LastAppendMs
	h.inflow = inflow{info.BytesPerSec, info.RecordsPerSec}
	if info.Damaged {
		h.damaged, h.durable = true, min(info.DurableEnd, info.DamagedAbove)
	}
	return h
}

type extentsMessage struct {
	Segments []base.SegmentID `cbor:"1,keyasint"`
}

type extentsAnswer struct {
	Extents []segmentExtent `cbor:"1,keyasint"` // of the segments that are there
	Disk    base.DiskID     `cbor:"2,keyasint"`
	Boot    uint64          `cbor:"3,keyasint"`
}

type segmentExtent struct {
	Segment      base.SegmentID `cbor:"1,keyasint"`
	Commit       int64          `cbor:"2,keyasint"`
	Durable      int64          `cbor:"3,keyasint"`
	Bytes        int64          `cbor:"4,keyasint"`
	LastAppendMs int64          `cbor:"5,keyasint,omitempty"`
	Damaged      bool           `cbor:"6,keyasint,omitempty"`
	Inflow       inflow         `cbor:"7,keyasint,omitzero"`
}

// takeExtents answers for the segments that are here.
func (s *Server) takeExtents(_ context.Context, _ *peer.Request, m extentsMessage) (extentsAnswer, error) {
	if len(m.Segments) > extentBatch {
		return extentsAnswer{}, base.Errorf(base.CodeInvalidArgument, "extents", "%d segments, at most %d are answered", len(m.Segments), extentBatch)
	}
	a := extentsAnswer{Disk: s.id.Disk, Boot: s.id.Boot, Extents: make([]segmentExtent, 0, len(m.Segments))}
	for _, id := range m.Segments {
		if h := s.holdingHere(id); h.held {
			a.Extents = append(a.Extents, segmentExtent{
				Segment: id, Commit: h.commit, Durable: h.durable, Bytes: h.bytes, LastAppendMs: h.lastMs, Damaged: h.damaged, Inflow: h.inflow,
			})
		}
	}
	return a, nil
}

// extentCache keeps what nodes said for a second, so that many who watch the same topics cost no more than one.
type extentCache struct {
	mu  sync.Mutex
	all map[copyKey]cachedHolding
}

type cachedHolding struct {
	holding
	at time.Time
}

func (c *extentCache) get(key copyKey, now time.Time) (holding, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.all[key]
	return h.holding, ok && now.Sub(h.at) < extentFresh
}

func (c *extentCache) put(key copyKey, h holding, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= extentsCached {
		clear(c.all)
	}
	if c.all == nil {
		c.all = make(map[copyKey]cachedHolding)
	}
	c.all[key] = cachedHolding{h, now}
}

// extentsOfNew are those of a topic that has just been made, or would be: nobody needs to be asked.
func (s *Server) extentsOfNew(t *meta.Topic) extents {
	x := make(extents, len(t.Ranges))
	for _, r := range t.Ranges {
		seg := r.Active()
		if seg == nil {
			continue
		}
		for _, rep := range seg.Replicas {
			x[copyKey{seg.ID, rep.Node}] = holding{disk: rep.Disk, held: true, commit: seg.Base, durable: seg.Base}
		}
	}
	return x
}
