package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

// kindCopy asks a node for everything about its copy of one segment.
const kindCopy = peer.Control + 30

// copyWithin bounds that question: the sum of a copy that nobody has asked for before is made by reading it.
const copyWithin = 5 * time.Second

// shardOfSegment is the shard that numbered a segment: each hands out one residue class, see base.SegmentID. There is no
// segment 0, which the shard that is asked for it will say.
func (s *Server) shardOfSegment(id base.SegmentID) *base.ShardID {
	return &base.ShardID{Root: uint16((max(uint64(id), 1) - 1) % uint64(s.host.Shards()))}
}

// segment finds a segment that a shard led here has committed.
func (s *Server) segment(ctx context.Context, op string, shard base.ShardID, id base.SegmentID) (p placed, err error) {
	err = s.host.View(ctx, shard, func(st *meta.State) error {
		for t := range st.All() {
			for _, r := range t.Ranges {
				if seg := r.Segment(id); seg != nil {
					p = placed{seg, t, r}
					return nil
				}
			}
		}
		return base.Errorf(base.CodeSegmentNotFound, op, "segment %s not found", id)
	})
	return p, err
}

// describeSegment tells what is committed of a segment, and what each of its replicas says of its copy.
func (s *Server) describeSegment(ctx context.Context, shard base.ShardID, req wire.DescribeSegmentRequest) (wire.DescribeSegmentResponse, error) {
	p, err := s.segment(ctx, "describe segment", shard, req.Segment)
	if err != nil {
		return wire.DescribeSegmentResponse{}, err
	}
	holders := s.askCopies(ctx, p.Segment)
	x := make(extents, len(holders))
	for i, c := range holders {
		if c.err == nil {
			x[copyKey{p.ID, p.Replicas[i].Node}] = c.answer.holding()
		}
	}
	resp := wire.DescribeSegmentResponse{
		Row: segmentRow(p, x, s.stuck()), Shard: shard, Prev: p.Prev, Version: p.topic.Version,
		Forced: forcedSeal(p.Forced), Settings: p.topic.Config,
	}
	if next := successor(p); next != nil {
		resp.Next = next.ID
	}
	for i, c := range holders {
		resp.Copies = append(resp.Copies, segmentCopy(p.Segment, i, resp.Row.Segment.Replicas[i], c))
	}
	var named nodeSet
	named.add(p.Replicas)
	resp.Nodes = s.addresses(named)
	return resp, nil
}

// successor is the segment with which the range went on behind p, or nil.
func successor(p placed) *meta.Segment {
	for _, seg := range p.rng.Segments {
		if seg.Base >= p.End && seg.Epoch > p.Epoch && p.State == base.StateSealed {
			return seg
		}
	}
	return nil
}

func forcedSeal(f *meta.Forced) *wire.ForcedSeal {
	if f == nil {
		return nil
	}
	w := &wire.ForcedSeal{Reason: f.Reason, TimeMs: f.TimeMs}
	for _, rep := range f.Silent {
		w.Silent = append(w.Silent, rep.Node)
	}
	return w
}

func segmentCopy(seg *meta.Segment, i int, replica wire.ReplicaDetail, c holder) wire.SegmentCopy {
	w := wire.SegmentCopy{Replica: replica}
	if seg.State == base.StateActive {
		w.Role = "follower"
		if i == 0 {
			w.Role = "leader"
		}
	}
	if c.err != nil {
		w.Error = c.err.Error()
		return w
	}
	a := c.answer
	w.Commit, w.Bytes, w.CRC, w.LastFsyncUs, w.IndexEntries, w.Fenced = a.Commit, a.Bytes, a.CRC, a.LastFsyncUs, a.IndexEntries, a.Fenced
	if a.NoSum != "" {
		w.Error = a.NoSum
	}
	return w
}

// holder is what became of the question to one replica's node.
type holder struct {
	answer copyAnswer
	err    error
}

// askCopies asks the nodes of all replicas side by side, in their order.
func (s *Server) askCopies(ctx context.Context, seg *meta.Segment) []holder {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	holders := make([]holder, len(seg.Replicas))
	view := s.connected()
	var asking sync.WaitGroup
	for i, rep := range seg.Replicas {
		asking.Go(func() {
			h, m := &holders[i], copyMessage{Segment: seg.ID, Sum: seg.State == base.StateSealed}
			switch {
			case rep.Node == s.id.Node:
				h.answer, h.err = s.takeCopy(ctx, nil, m)
			case !lives(view, rep.Node):
				h.err = base.Errorf(base.CodeUnreachable, "describe segment", "node %s does not answer", rep.Node)
			default:
				h.answer, h.err = callPeer[copyAnswer](ctx, s.peerCalls(), rep.Node, kindCopy, m)
			}
		})
	}
	asking.Wait()
	return holders
}

type copyMessage struct {
	Segment base.SegmentID `cbor:"1,keyasint"`
	Sum     bool           `cbor:"2,keyasint,omitempty"` // the checksum, too, which may have to be made
}

type copyAnswer struct {
	segmentExtent
	Disk         base.DiskID `cbor:"11,keyasint"`
	Boot         uint64      `cbor:"12,keyasint"`
	Held         bool        `cbor:"13,keyasint,omitempty"`
	CRC          uint32      `cbor:"14,keyasint,omitempty"`
	LastFsyncUs  int64       `cbor:"15,keyasint,omitempty"`
	IndexEntries int         `cbor:"16,keyasint,omitempty"`
	Fenced       bool        `cbor:"17,keyasint,omitempty"`
	NoSum        string      `cbor:"18,keyasint,omitempty"` // why there is no checksum
}

func (a copyAnswer) holding() holding {
	return holding{
		disk: a.Disk, boot: a.Boot, held: a.Held, commit: a.Commit, durable: a.Durable, bytes: a.Bytes, lastMs: a.LastAppendMs, damaged: a.Damaged,
	}
}

// takeCopy describes the copy that is here.
func (s *Server) takeCopy(ctx context.Context, _ *peer.Request, m copyMessage) (copyAnswer, error) {
	a := copyAnswer{Disk: s.id.Disk, Boot: s.id.Boot}
	info, ok := s.store.Copy(m.Segment)
	if !ok {
		return a, nil
	}
	h := s.holdingHere(m.Segment)
	a.segmentExtent = segmentExtent{
		Segment: m.Segment, Commit: h.commit, Durable: h.durable, Bytes: h.bytes, LastAppendMs: h.lastMs, Damaged: h.damaged,
	}
	a.Held, a.LastFsyncUs, a.IndexEntries, a.Fenced = true, info.LastSync.Microseconds(), info.IndexEntries, info.Fenced
	switch {
	case info.CRCKnown:
		a.CRC = info.CRC
	case m.Sum && info.Whole():
		crc, err := s.store.Checksum(ctx, m.Segment)
		if err != nil {
			a.NoSum = err.Error()
		}
		a.CRC = crc
	}
	return a, nil
}
