package dataplane

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// teamCoord is the coordinator of a team: it keeps each range's chain of segments, seals at the end that a leader froze
// at or, of a leader that is gone, at the least extent of the fenced, and tells until it is confirmed.
type teamCoord struct {
	m     *team
	tasks sync.WaitGroup
	ctx   context.Context
	stop  context.CancelFunc

	mu     sync.Mutex
	chains map[base.RangeRef][]meta.Assignment
	asked  []RollRequest
	next   base.SegmentID
	mute   bool // answers nobody
}

func newTeamCoord(m *team) *teamCoord {
	c := &teamCoord{m: m, chains: make(map[base.RangeRef][]meta.Assignment)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

func (c *teamCoord) close() {
	c.stop()
	c.tasks.Wait()
}

// create makes a range with a segment on the named nodes, leader first, and waits until it is led.
func (c *teamCoord) create(ref base.RangeRef, nodes ...base.NodeID) {
	c.mu.Lock()
	asg := c.openLocked(ref, 0, 0, nodes)
	c.mu.Unlock()
	c.tell(asg)
	require.NoError(c.m.t, c.m.members[nodes[0]].plane.Load().AwaitLead(c.ctx, ref))
}

// openLocked adds a segment to a chain.
func (c *teamCoord) openLocked(ref base.RangeRef, at int64, cause base.Cause, nodes []base.NodeID) meta.Assignment {
	c.next++
	asg := meta.Assignment{
		Ref: ref, Name: "t", Config: c.m.config, Version: base.Version(c.next), Segment: c.next, Epoch: base.Epoch(c.next),
		Base: at, End: meta.NoEnd, State: base.StateActive, OpenedMs: time.Now().UnixMilli(),
	}
	for _, node := range nodes {
		one := c.m.members[node]
		asg.Replicas = append(asg.Replicas, base.Replica{Node: node, Disk: one.disk})
		asg.Boots = append(asg.Boots, one.boot.Load())
	}
	if chain := c.chains[ref]; len(chain) > 0 {
		last := &chain[len(chain)-1]
		last.State, last.End, last.Cause, last.Version, last.Active = base.StateSealed, at, cause, asg.Version, nodes[0]
		asg.Prev = last.Segment
		if at > 0 {
			asg.From = &meta.Source{Segment: last.Segment, Replicas: last.Replicas}
		}
	}
	c.chains[ref] = append(c.chains[ref], asg)
	return asg
}

// tell tells each replica until it has confirmed, or the team closes.
func (c *teamCoord) tell(asg meta.Assignment) {
	for _, r := range asg.Replicas {
		c.tasks.Go(func() {
			for c.ctx.Err() == nil && !c.told(r.Node, asg) {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-c.ctx.Done():
				}
			}
		})
	}
}

func (c *teamCoord) told(node base.NodeID, asg meta.Assignment) bool {
	p := c.m.members[node].plane.Load()
	if p == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, time.Second)
	defer cancel()
	got, err := p.Tell(ctx, meta.Orders{Assignments: []meta.Assignment{asg}})
	alive := c.m.members[node].plane.Load() == p // what a killed process confirms nobody hears
	return alive && err == nil && len(got) == 1 && got[0].Status != meta.StatusFailed
}

// roll answers a leader.
func (c *teamCoord) roll(ctx context.Context, from base.NodeID, r RollRequest) (meta.Assignment, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r)
	chain := c.chains[r.Ref]
	last := chain[len(chain)-1]
	mute := c.mute
	c.mu.Unlock()
	switch {
	case mute:
		<-ctx.Done()
		return meta.Assignment{}, ctx.Err()
	case last.Segment != r.Segment:
		return last, nil // somebody was first
	case r.End < 0:
		c.recover(r.Ref)
		return c.last(r.Ref), nil
	}
	c.mu.Lock()
	without := slices.Concat(r.Lost, r.Late)
	sealed, opened, ok := c.sealLocked(r.Ref, r.Segment, r.End, r.Cause, c.healthyLocked(last, without))
	c.mu.Unlock()
	if !ok {
		return c.last(r.Ref), nil
	}
	c.tell(sealed)
	c.tell(opened)
	return opened, nil
}

// sealLocked ends the range's active segment, if that is the one meant, and opens its successor.
func (c *teamCoord) sealLocked(ref base.RangeRef, seg base.SegmentID, end int64, cause base.Cause, nodes []base.NodeID) (sealed, opened meta.Assignment, ok bool) {
	chain := c.chains[ref]
	if chain[len(chain)-1].Segment != seg {
		return sealed, opened, false
	}
	opened = c.openLocked(ref, end, cause, nodes)
	chain = c.chains[ref]
	return chain[len(chain)-2], opened, true
}

// healthyLocked is the successor's set: the old one without those that are out or not running, filled up with others.
func (c *teamCoord) healthyLocked(old meta.Assignment, without []base.NodeID) []base.NodeID {
	var nodes []base.NodeID
	add := func(node base.NodeID) {
		if c.m.members[node].plane.Load() != nil && !slices.Contains(without, node) && !slices.Contains(nodes, node) && len(nodes) < 3 {
			nodes = append(nodes, node)
		}
	}
	for _, r := range old.Replicas {
		add(r.Node)
	}
	for i := range len(c.m.members) {
		add(base.NodeID([]byte{'n', byte('1' + i)}))
	}
	return nodes
}

// recover replaces a leader that is gone: every replica that answers is fenced, and the least unbroken extent is the end.
func (c *teamCoord) recover(ref base.RangeRef) {
	last := c.last(ref)
	end := int64(math.MaxInt64)
	var survivors []base.NodeID
	for i, r := range last.Replicas {
		p := c.m.members[r.Node].plane.Load()
		if p == nil {
			continue
		}
		got, err := p.Fence(c.ctx, []meta.FenceRequest{{Ref: ref, Epoch: last.Epoch, Segment: last.Segment, Base: last.Base, Boot: last.Boots[i]}})
		if err != nil || len(got) != 1 || got[0].Kind != meta.Extent || !got[0].Unbroken {
			continue
		}
		end = min(end, got[0].End)
		survivors = append(survivors, r.Node)
	}
	if len(survivors) == 0 {
		return
	}
	c.mu.Lock()
	kept := last
	kept.Replicas = nil
	for _, node := range survivors {
		kept.Replicas = append(kept.Replicas, base.Replica{Node: node})
	}
	sealed, opened, ok := c.sealLocked(ref, last.Segment, end, base.CauseLeaderFailure, c.healthyLocked(kept, nil))
	c.mu.Unlock()
	if ok {
		c.tell(sealed)
		c.tell(opened)
	}
}

func (c *teamCoord) last(ref base.RangeRef) meta.Assignment {
	c.mu.Lock()
	defer c.mu.Unlock()
	chain := c.chains[ref]
	return chain[len(chain)-1]
}

func (c *teamCoord) chain(ref base.RangeRef) []meta.Assignment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.chains[ref])
}

// leader is the plane that leads a range, nil when its node is not running.
func (c *teamCoord) leader(ref base.RangeRef) *Plane {
	asg := c.last(ref)
	return c.m.members[asg.Leader().Node].plane.Load()
}

func (c *teamCoord) requests() []RollRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

func (c *teamCoord) leaderOf(ref base.RangeRef) base.NodeID {
	last := c.last(ref)
	return last.Leader().Node
}
