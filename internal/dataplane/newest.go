package dataplane

import "github.com/eastguard/eastguard/internal/base"

// Newest is the base of the newest segment of a range that this node was told of; 0 when it was told of none.
func (p *Plane) Newest(ref base.RangeRef) int64 {
	a := p.find(ref)
	if a == nil {
		return 0
	}
	return a.base.Load()
}
