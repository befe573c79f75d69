package dataplane

import "github.com/eastguard/eastguard/internal/base"

// Followed is who leads the segment of a range that is followed here, once that node has been heard; "" of a range that
// is not followed.
func (p *Plane) Followed(ref base.RangeRef) base.NodeID {
	a := p.find(ref)
	if a == nil {
		return ""
	}
	if source := a.source.Load(); source != nil {
		return source.Node
	}
	return ""
}

// Follows counts the segments that this node follows.
func (p *Plane) Follows() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := 0
	for _, a := range p.mu.actors {
		if a.follows.Load() != 0 {
			n++
		}
	}
	return n
}

// Short counts the copies here that lack a part of their sealed segments, as far as this process has found them.
func (p *Plane) Short() int {
	p.mends.mu.Lock()
	defer p.mends.mu.Unlock()
	return len(p.mends.copies)
}
