package coord

import (
	"context"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/task"
)

const (
	censusPage  = 4096                  // ranges a message
	censusDelay = time.Second           // so that the loops of one election, and the marks of one restart, share a count
	censusPause = 50 * time.Millisecond // between two pages
	censusTries = 5                     // of one page
)

// census asks nodes what they hold. A node that was away may have missed a trim whose segments metadata has forgotten
// by now; so may any node, if the coordinator that was telling it is gone. What a node holds is compared with what is
// committed: whatever is known to have been trimmed is told again, and so are the ends of copies that are short of them.
// What is not known is nobody's to delete.
//
// One node at a time is counted, for all shards led here together; the goroutine lives while there is one to count.
// Guarded by Coord.mu.
type census struct {
	wanted  map[base.NodeID]bool
	running bool
}

// count asks for a census of nodes.
func (c *Coord) count(nodes []base.NodeID) {
	if len(nodes) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		put(&c.census.wanted, n, true)
	}
	if c.census.running || c.closed {
		return
	}
	c.census.running = true
	c.running.Go(c.takeCensus)
}

func (c *Coord) takeCensus() {
	for task.Pause(c.ctx, censusDelay) {
		node, ok := c.nextToCount()
		if !ok {
			return
		}
		if err := c.countNode(node); err != nil && c.ctx.Err() == nil {
			// Where it comes back from, there is a mark that asks for it again.
			c.o.Logger.Debug("node's segments not counted", "node", string(node), "error", err)
		}
	}
}

func (c *Coord) nextToCount() (base.NodeID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.census.wanted {
		delete(c.census.wanted, n)
		return n, true
	}
	c.census.running = false
	return "", false
}

// countNode goes through a node's pages.
func (c *Coord) countNode(node base.NodeID) error {
	var from base.RangeRef
	for {
		page, err := c.countPage(node, from)
		if err != nil {
			return err
		}
		c.hand(base.Replica{Node: node, Disk: page.Disk}, page.Ranges)
		if !page.More || !task.Pause(c.ctx, censusPause) {
			return nil
		}
		from = page.Next
	}
}

func (c *Coord) countPage(node base.NodeID, from base.RangeRef) (page meta.Inventory, err error) {
	for try := 0; try < censusTries; try++ {
		ctx, cancel := context.WithTimeout(c.ctx, c.o.TellTimeout)
		page, err = c.o.Nodes.Inventory(ctx, node, from, censusPage)
		cancel()
		if err == nil || !task.Pause(c.ctx, time.Second) {
			return page, err
		}
	}
	return page, err
}

// hand gives each loop what the page says of its topics.
func (c *Coord) hand(by base.Replica, ranges []meta.Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lots := make(map[*loop][]held)
	for _, h := range ranges {
		if shard, known := c.homes[h.Ref.Topic]; known {
			if l := c.loops[shard]; l != nil {
				lots[l] = append(lots[l], held{by: by, Held: h})
			}
		}
	}
	for l, lot := range lots {
		l.inbox.deliver(func(in *letters) { in.held = append(in.held, lot...) })
	}
}

// held is what one disk has of one range.
type held struct {
	by base.Replica
	meta.Held
}

// compare files a trim for every range of which a disk holds what has been trimmed, and tells it again of sealed
// segments whose ends its copy does not have: a process that is told of one seals it, or mends it.
func (l *loop) compare(s *meta.State, all []held) {
	strangers := 0
	for i := range all {
		h := &all[i]
		t := s.Topic(h.Ref.Topic)
		if t == nil || t.Range(h.Ref.Range) == nil {
			continue // deleted meanwhile: the tombstone names who is told
		}
		r := t.Range(h.Ref.Range)
		trimmed := false
		for _, seg := range h.Segments {
			known := r.Segment(seg.Segment)
			switch {
			case known != nil && known.State == base.StateSealed && seg.End != known.End && slices.Contains(known.Replicas, h.by):
				put(&l.outbox(h.by).lanes[background].waiting.segments, known.ID, h.Ref)
			case known != nil:
			case seg.End <= r.TrimmedTo && seg.Base < r.TrimmedTo:
				trimmed = true
			case seg.Base < seg.End:
				strangers++
			}
		}
		if trimmed {
			l.fileTrim(h.Ref, []base.Replica{h.by})
		}
	}
	if strangers > 0 {
		l.coord.o.Logger.Warn("node holds segments that metadata does not know; they are kept", "shard", l.shard.String(), "segments", strangers)
	}
}
