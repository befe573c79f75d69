package dataplane

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
)

// LedRange is one range whose appends are taken here.
type LedRange struct {
	Ref     base.RangeRef
	Topic   string
	Span    keyspace.Span
	Segment base.SegmentID
	Bytes   int64 // appended to the segment
	Commit  int64
}

// Led describes the ranges that this node leads, in no order. Those that do not get a turn before ctx ends are left out.
func (p *Plane) Led(ctx context.Context) []LedRange {
	p.mu.RLock()
	var actors []*actor
	for _, a := range p.mu.actors {
		if a.leads.Load() {
			actors = append(actors, a)
		}
	}
	p.mu.RUnlock()
	answers := make(chan LedRange, len(actors))
	for _, a := range actors {
		a.do(func(time.Time) {
			r := LedRange{Ref: a.current.Ref, Topic: a.current.Name, Span: a.current.Span, Segment: a.current.Segment}
			if a.lead != nil {
				r.Bytes, r.Commit = a.lead.bytes, a.lead.replica.Commit()
			}
			answers <- r
		})
	}
	list := make([]LedRange, 0, len(actors))
	for range actors {
		select {
		case r := <-answers:
			if r.Segment != 0 {
				list = append(list, r)
			}
		case <-ctx.Done():
			return list
		}
	}
	return list
}
