package sim

import (
	"math"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/vfs"
)

// Audit compares what clients were told of the streams' records with what metadata has committed and with what lies on
// the disk of each node, as a loss of power at this moment would leave it: what was acked is there even then.
func (c *Cluster) Audit() {
	c.T.Helper()
	if problems := c.problems(); len(problems) > 0 {
		c.Fatalf("%s", ledger.Report(problems))
	}
	acks, reads := c.Book.Counts()
	c.Trace.Logf("script", "audited: %d acks, %d reads", acks, reads)
}

// problems judges what is known by now.
func (c *Cluster) problems() []ledger.Problem {
	c.T.Helper()
	c.Check() // which sees the seals
	commits := make(map[copyOf]int64)
	for _, n := range c.Running() {
		in := n.Inspect()
		for _, s := range in.Segments {
			commits[copyOf{base.Replica{Node: in.Node, Disk: in.Disk}, s.Segment}] = s.Commit
		}
	}
	topics := c.streamed()
	segments := c.committed(topics)
	var copies []ledger.Copy
	for _, n := range c.nodes {
		h := n.checkDisk(n.disk.CrashClone(rand.New(rand.NewSource(0)), 0), topics)
		for _, held := range h.copies {
			held.Commit = commits[copyOf{held.Replica, held.Segment}]
			copies = append(copies, held)
		}
	}
	c.Book.Change(func(h *ledger.History) { h.Segments, h.Copies = segments, copies })
	return ledger.Judge(c.Book.History())
}

// copyOf is one replica's copy of one segment.
type copyOf struct {
	replica base.Replica
	segment base.SegmentID
}

// committed are the segments of some topics, as the shards' leaders have them.
func (c *Cluster) committed(topics []base.TopicID) (list []ledger.Segment) {
	for _, n := range c.Running() {
		for _, r := range n.Inspect().Replicas {
			if !r.Ready {
				continue
			}
			for _, t := range r.Topics {
				if slices.Contains(topics, t.ID) {
					list = append(list, c.segmentsOf(t)...)
				}
			}
		}
	}
	return list
}

func (c *Cluster) segmentsOf(t *meta.Topic) (list []ledger.Segment) {
	for _, r := range t.Ranges {
		for _, s := range r.Segments {
			g := ledger.Segment{Ref: base.RangeRef{Topic: t.ID, Range: r.ID}, ID: s.ID, Epoch: s.Epoch, Base: s.Base, End: s.End, Replicas: s.Replicas}
			if g.Sealed() {
				g.SealedFrom, g.SealedBy = int64(time.UnixMilli(s.SealedMs).Sub(c.began)), c.facts.seals[s.ID].at
			}
			list = append(list, g)
		}
	}
	return list
}

// checkDisk opens what a node has on its disk, as its next start would, and once more as the start after that: nothing
// there may be damaged or unknown, and the second start finds what the first found. It notes what lies there.
func (n *Node) checkDisk(image *vfs.Mem, topics []base.TopicID) holdings {
	n.c.T.Helper()
	image.SetCapacity(math.MaxInt64)
	once, killed, err := n.open(image, topics)
	if err != nil {
		n.c.Fatalf("the disk of %s: %v", n.Name, err)
	}
	if once.replica.Disk.IsZero() {
		return once
	}
	for _, again := range []*vfs.Mem{killed, image} { // as the first start left it by its end, and by a kill before
		second, _, err := n.open(again, nil)
		if err != nil {
			n.c.Fatalf("the disk of %s, recovered again: %v", n.Name, err)
		}
		if n.harmed { // damage is found as it is read: the second start may know of more than the first
			continue
		}
		strange := slices.Concat(once.strange, second.strange)
		n.c.Book.Change(func(h *ledger.History) {
			h.Recoveries = append(h.Recoveries, ledger.Recovery{Replica: once.replica, Once: once.digest, Again: second.digest, Unrecognised: strings.Join(strange, "; ")})
		})
	}
	return once
}
