package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/shard"
	"github.com/eastguard/eastguard/internal/wire"
)

// shardSum is a shard in figures, as its leader has it: what status and health of the cluster are made of, so that
// neither carries topics from node to node.
type shardSum struct {
	Status   wire.ShardStatus `cbor:"1,keyasint"`
	Topics   int              `cbor:"2,keyasint,omitempty"`
	Ranges   int              `cbor:"3,keyasint,omitempty"` // active ones
	Segments int              `cbor:"4,keyasint,omitempty"`
	Records  int64            `cbor:"5,keyasint,omitempty"`
	Bytes    int64            `cbor:"6,keyasint,omitempty"`
	Short    shortCopies      `cbor:"7,keyasint,omitzero"`
	Gaps     sealGaps         `cbor:"8,keyasint,omitzero"`
	Stuck    stuckSegments    `cbor:"13,keyasint,omitzero"`  // whose ends nobody can tell
	Unplaced stuckSegments    `cbor:"14,keyasint,omitzero"`  // for whose successors there are not nodes enough
	Holes    int              `cbor:"9,keyasint,omitempty"`  // topics whose active ranges do not tile the key space
	Hole     string           `cbor:"10,keyasint,omitempty"` // one of them, and what is wrong with it
	Behind   int              `cbor:"11,keyasint,omitempty"` // voters that do not follow, or lack more than what is under way
	Astray   bool             `cbor:"12,keyasint,omitempty"` // the voters are others than the ring wants
}

// sumShard adds up a shard that this node leads. The sums are made outside the view: topics are immutable.
// With data, the leaders of its segments are asked how much is in them.
func (s *Server) sumShard(ctx context.Context, id base.ShardID, data bool) (shardSum, error) {
	var topics []*meta.Topic
	var sum shardSum
	stuck := s.stuck()
	err := s.host.View(ctx, id, func(st *meta.State) error {
		for _, w := range stuck {
			t := st.Topic(w.Ref.Topic)
			switch {
			case t == nil:
			case w.Nodes:
				sum.Unplaced.add(t.Name+"/"+w.Ref.Range.String(), w)
			default:
				sum.Stuck.add(t.Name+"/"+w.Ref.Range.String(), w)
			}
		}
		topics = make([]*meta.Topic, 0, st.Len())
		for t := range st.All() {
			topics = append(topics, t)
		}
		return nil
	})
	if err != nil {
		return shardSum{}, err
	}
	d, err := s.host.Detail(id)
	if err != nil {
		return shardSum{}, err
	}
	sum.Status, sum.Topics = s.detailStatus(d), len(topics)
	sum.addVoters(d)
	alive := livingDisks(s.view())
	var x extents
	if data {
		x = s.extents(ctx, topics...)
	}
	since := time.Now().Add(-gapsWithin).UnixMilli()
	for _, t := range topics {
		sum.addTopic(t, alive, x, since)
	}
	return sum, nil
}

// mostTrail is how many entries a voter may lack and still count as caught up: those under way.
const mostTrail = 1024

// addVoters judges a shard's voters, as its leader sees them.
func (sum *shardSum) addVoters(d shard.Detail) {
	for _, m := range d.Members {
		if m.Voter && (!m.Heard || m.Match+mostTrail < d.LastIndex) {
			sum.Behind++
		}
		sum.Astray = sum.Astray || m.Voter && !m.Intended
	}
}

func (sum *shardSum) addTopic(t *meta.Topic, alive living, x extents, since int64) {
	var spans []keyspace.Span
	for _, r := range t.Ranges {
		if r.State == base.StateActive {
			sum.Ranges++
			spans = append(spans, r.Span)
		}
		for _, seg := range r.Segments {
			e := x.of(seg)
			sum.Segments++
			sum.Records += e.records(seg)
			sum.Bytes += e.bytes
			sum.Short.add(placed{seg, t, r}, alive.lacks(t, seg))
			if seg.SealedMs >= since {
				sum.Gaps.add(placed{seg, t, r})
			}
		}
	}
	if err := keyspace.CheckCover(spans); err != nil {
		sum.Holes++
		sum.Hole = t.Name + ": " + err.Error()
	}
}
