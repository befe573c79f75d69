package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
)

const (
	extentWithin  = 500 * time.Millisecond // for all leaders together; who has not answered by then is left out
	extentBatch   = 4096                   // segments a message
	extentFresh   = time.Second            // an answer is used again for so long
	extentsCached = 1 << 14
)

// extent is how far a segment goes: as committed once it is sealed, as its leader says while it is active.
type extent struct {
	end, bytes int64
	durable    int64
	lastMs     int64 // of the last append; 0 = unknown, or none
	known      bool  // false: its leader did not say, and it counts as empty
}

func (e extent) records(seg *meta.Segment) int64 { return e.end - seg.Base }

// extents are those of some topics' segments, at one moment.
type extents map[base.SegmentID]extent

// of is a segment's extent.
func (x extents) of(seg *meta.Segment) extent {
	if seg.State == base.StateSealed {
		return extent{end: seg.End, durable: seg.End, bytes: seg.Bytes, lastMs: seg.LastAppendMs, known: true}
	}
	if e, ok := x[seg.ID]; ok {
		return e
	}
	return extent{end: seg.Base, durable: seg.Base}
}

// extents asks the leaders of the topics' active segments how far those go: one message a node, at once, within a short
// time.
func (s *Server) extents(ctx context.Context, topics ...*meta.Topic) extents {
	found := make(extents)
	asked := make(map[base.NodeID][]base.SegmentID)
	now := time.Now()
	for _, t := range topics {
		for _, r := range t.Ranges {
			seg := r.Active()
			if seg == nil {
				continue
			}
			if node := seg.Leader().Node; node != s.id.Node {
				if e, ok := s.orders.extents.get(seg.ID, now); ok {
					found[seg.ID] = e
				} else {
					asked[node] = append(asked[node], seg.ID)
				}
			} else if e, ok := s.extentHere(seg.ID); ok {
				found[seg.ID] = e
			}
		}
	}
	if len(asked) == 0 {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, extentWithin)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for node, ids := range asked {
		asking.Go(func() {
			for len(ids) > 0 {
				n := min(len(ids), extentBatch)
				answer, err := callPeer[extentsAnswer](ctx, s.peerCalls(), node, kindExtents, extentsMessage{Segments: ids[:n]})
				if err != nil {
					return
				}
				mu.Lock()
				for _, a := range answer.Extents {
					e := extent{end: a.End, durable: a.Durable, bytes: a.Bytes, lastMs: a.LastAppendMs, known: true}
					found[a.Segment] = e
					s.orders.extents.put(a.Segment, e, now)
				}
				mu.Unlock()
				ids = ids[n:]
			}
		})
	}
	asking.Wait()
	return found
}

// extentHere is what this node's store says of a segment.
func (s *Server) extentHere(id base.SegmentID) (extent, bool) {
	info, ok := s.store.Info(id)
	if !ok {
		return extent{}, false
	}
	return extent{end: info.Commit, durable: info.DurableEnd, bytes: info.Bytes, lastMs: info.LastAppendMs, known: true}, true
}

type extentsMessage struct {
	Segments []base.SegmentID `cbor:"1,keyasint"`
}

type extentsAnswer struct {
	Extents []segmentExtent `cbor:"1,keyasint"` // of the segments that are there
}

type segmentExtent struct {
	Segment      base.SegmentID `cbor:"1,keyasint"`
	End          int64          `cbor:"2,keyasint"`
	Durable      int64          `cbor:"3,keyasint"`
	Bytes        int64          `cbor:"4,keyasint"`
	LastAppendMs int64          `cbor:"5,keyasint,omitempty"`
}

// takeExtents answers for the segments that are here.
func (s *Server) takeExtents(_ context.Context, _ *peer.Request, m extentsMessage) (extentsAnswer, error) {
	if len(m.Segments) > extentBatch {
		return extentsAnswer{}, base.Errorf(base.CodeInvalidArgument, "extents", "%d segments, at most %d are answered", len(m.Segments), extentBatch)
	}
	a := extentsAnswer{Extents: make([]segmentExtent, 0, len(m.Segments))}
	for _, id := range m.Segments {
		if e, ok := s.extentHere(id); ok {
			a.Extents = append(a.Extents, segmentExtent{Segment: id, End: e.end, Durable: e.durable, Bytes: e.bytes, LastAppendMs: e.lastMs})
		}
	}
	return a, nil
}

// extentCache keeps what leaders said for a second, so that many who watch the same topics cost no more than one.
type extentCache struct {
	mu  sync.Mutex
	all map[base.SegmentID]cachedExtent
}

type cachedExtent struct {
	extent
	at time.Time
}

func (c *extentCache) get(id base.SegmentID, now time.Time) (extent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.all[id]
	return e.extent, ok && now.Sub(e.at) < extentFresh
}

func (c *extentCache) put(id base.SegmentID, e extent, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= extentsCached {
		clear(c.all)
	}
	if c.all == nil {
		c.all = make(map[base.SegmentID]cachedExtent)
	}
	c.all[id] = cachedExtent{e, now}
}

// extentsOfNew are those of a topic that has just been made, or would be: nobody needs to be asked.
func (s *Server) extentsOfNew(t *meta.Topic) extents {
	x := make(extents, len(t.Ranges))
	for _, r := range t.Ranges {
		if seg := r.Active(); seg != nil {
			x[seg.ID] = extent{end: seg.Base, durable: seg.Base, known: true}
		}
	}
	return x
}
