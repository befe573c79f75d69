package sim

import (
	"fmt"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/store"
)

// checkCopies looks at all copies of the streams' segments at one moment. It holds that
//   - a sealed segment has one end, in metadata and on every replica;
//   - nothing is committed that a replica which runs does not have on stable storage.
//
// It notes what each replica says that it has, which must be there at the end.
func (c *Cluster) checkCopies() {
	c.T.Helper()
	topics := c.streamed()
	if len(topics) == 0 {
		return
	}
	placed := make(map[base.SegmentID]*meta.Segment)
	held := make(map[copyOf]store.SegmentInfo)
	for _, n := range c.Running() {
		if n.Ended() != nil {
			continue
		}
		in := n.Inspect()
		for _, r := range in.Replicas {
			for _, t := range r.Topics {
				if slices.Contains(topics, t.ID) {
					c.facts.place(t, placed, c.now(), c.complain)
				}
			}
		}
		for _, s := range in.Segments {
			if slices.Contains(topics, s.Ref.Topic) {
				held[copyOf{base.Replica{Node: in.Node, Disk: in.Disk}, s.Segment}] = s
			}
		}
	}
	for at, info := range held {
		c.checkCopy(at, info, placed[at.segment], held)
	}
	c.Book.Change(func(h *ledger.History) {
		for at, info := range held {
			h.Sightings = append(h.Sightings, ledger.Sighting{Replica: at.replica, Segment: at.segment, Durable: info.DurableEnd, At: c.now()})
		}
	})
}

func (c *Cluster) complain(format string, args ...any) {
	c.T.Helper()
	c.Fatalf(format, args...)
}

// place notes a topic's segments as one replica of its shard has them, which may be an older state than another's.
func (f *facts) place(t *meta.Topic, placed map[base.SegmentID]*meta.Segment, now int64, complain func(string, ...any)) {
	for _, r := range t.Ranges {
		for _, s := range r.Segments {
			if known := placed[s.ID]; known == nil || known.End == meta.NoEnd {
				placed[s.ID] = s
			}
			if s.End == meta.NoEnd {
				continue
			}
			if known, ok := f.seals[s.ID]; ok && known.end != s.End {
				complain("segment %v of %s was sealed at %d, and is sealed at %d now", s.ID, t.Name, known.end, s.End)
			} else if !ok {
				f.seals[s.ID] = seal{s.End, now}
			}
		}
	}
}

func (c *Cluster) checkCopy(at copyOf, info store.SegmentInfo, s *meta.Segment, held map[copyOf]store.SegmentInfo) {
	c.T.Helper()
	sealed, isSealed := c.facts.seals[at.segment]
	if info.SealedEnd >= 0 && isSealed && info.SealedEnd != sealed.end {
		c.Fatalf("%s has segment %v sealed at %d, metadata at %d", at.replica.Node, at.segment, info.SealedEnd, sealed.end)
	}
	if s == nil || isSealed {
		return // sealed: the commit is the end, which a copy may be short of
	}
	for _, r := range s.Replicas {
		other, ok := held[copyOf{r, at.segment}]
		harmed := slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.Name == string(r.Node) && n.harmed })
		if ok && other.DurableEnd < info.Commit && !harmed {
			c.Fatalf("%s says that segment %v is committed up to %d, and %s has it up to %d", at.replica.Node, at.segment, info.Commit, r.Node, other.DurableEnd)
		}
	}
}

// describeCopies is who holds what of the streams' segments, for traces.
func (n *Node) describeCopies(topics []base.TopicID) (lines []string) {
	for _, s := range n.Inspect().Segments {
		if slices.Contains(topics, s.Ref.Topic) {
			lines = append(lines, fmt.Sprintf("%v %v epoch %d base %d durable %d commit %d sealed %d fenced %t leads %t boot %d", s.Ref, s.Segment, s.Epoch, s.Base, s.DurableEnd, s.Commit, s.SealedEnd, s.Fenced, s.LeaderHere, s.Boot))
		}
	}
	return lines
}
