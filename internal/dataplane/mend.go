package dataplane

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
)

// A replica that was not asked for the end of a segment, because it was away or behind, finds its copy short when it hears
// of the end. A short tail is copied at once from a replica that has it, batch by batch through the log, as if it had come
// from the leader; so a crash on the way leaves a longer copy, or the same. Longer ones are left to repair.

const (
	opMend = "mend copy"

	maxMends     = 4        // copies that are mended at once
	maxMendBytes = 32 << 20 // a longer tail is not copied from here
	mendPiece    = 1 << 20  // bytes asked for at once, about
	mendRate     = 64 << 20 // bytes a second, over the whole node
	mendOnce     = 5 * time.Second
	mendAgain    = time.Second // the first pause after nobody could give the tail; it doubles
	mendAtMost   = time.Minute // ... up to this; also how often those that are left to others are looked at
	maxShort     = 10_000      // copies known to be short, so that each is told of once
)

// TailRequest asks a replica for what another one's copy of a sealed segment is short of.
type TailRequest struct {
	Ref       base.RangeRef
	Segment   base.SegmentID
	From, End int64
	MaxBytes  int
}

// CopyChange reports that this node's copy of a sealed segment was found short, or has been mended.
type CopyChange struct {
	Ref      base.RangeRef
	Topic    string
	Segment  base.SegmentID
	Has, End int64 // offsets: of the copy, and of the segment
	Mended   bool
}

// mender knows the short copies of a node.
type mender struct {
	tokens chan struct{} // one for each copy that is being mended

	mu     sync.Mutex
	copies map[base.SegmentID]*shortCopy
	pace   time.Time // until when what has been copied is paid for
}

// shortCopy is one of them.
type shortCopy struct {
	asg     meta.Assignment
	left    bool // to repair, or whoever else: not mended from here
	running bool
	due     time.Time // not before
	pause   time.Duration
}

func (m *mender) init() {
	m.tokens, m.copies = make(chan struct{}, maxMends), make(map[base.SegmentID]*shortCopy)
}

// foundShort notes a copy that does not reach its committed end, and begins to mend it. Beyond maxShort it is left until it
// is told of again.
func (p *Plane) foundShort(asg meta.Assignment, info store.SegmentInfo) {
	m := &p.mends
	m.mu.Lock()
	_, known := m.copies[asg.Segment]
	noted := !known && len(m.copies) < maxShort
	if noted {
		m.copies[asg.Segment] = &shortCopy{asg: asg, left: info.Damaged, pause: mendAgain}
	}
	m.mu.Unlock()
	if !noted {
		return
	}
	p.o.Logger.Warn("copy is short of its segment's end", "range", asg.Ref.String(), "segment", asg.Segment.String(),
		"has", info.DurableEnd, "end", asg.End, "damaged", info.Damaged)
	p.o.OnCopy(CopyChange{Ref: asg.Ref, Topic: asg.Name, Segment: asg.Segment, Has: info.DurableEnd, End: asg.End})
	p.mendDue(time.Now())
}

// mendDue begins to mend what is due, as far as there are tokens. Whoever has one goes on with it from copy to copy.
func (p *Plane) mendDue(now time.Time) {
	p.forgetRepaired(now)
	m := &p.mends
	for c := m.next(now); c != nil; c = m.next(now) {
		started := p.spawn(m.tokens, func(ctx context.Context) {
			for c := c; c != nil && ctx.Err() == nil; c = m.next(time.Now()) {
				p.mend(ctx, c)
			}
		})
		if !started {
			m.putBack(c)
			return
		}
	}
}

// next takes a copy that is due; nil when none is.
func (m *mender) next(now time.Time) *shortCopy {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.copies {
		if !c.running && !c.left && !now.Before(c.due) {
			c.running = true
			return c
		}
	}
	return nil
}

func (m *mender) putBack(c *shortCopy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.running = false
}

// forgetRepaired looks, now and then, at copies that are left to others: whoever repairs one, or drops it, does not tell.
func (p *Plane) forgetRepaired(now time.Time) {
	m := &p.mends
	m.mu.Lock()
	defer m.mu.Unlock()
	for seg, c := range m.copies {
		if !c.left || now.Before(c.due) {
			continue
		}
		c.due = now.Add(mendAtMost)
		if info, held := p.log.Info(seg); !held || info.Whole() {
			delete(m.copies, seg)
		}
	}
}

// mend copies a tail, or as much of it as can be had now.
func (p *Plane) mend(ctx context.Context, c *shortCopy) {
	err := p.copyTail(ctx, &c.asg)
	info, held := p.log.Info(c.asg.Segment)
	m := &p.mends
	m.mu.Lock()
	c.running = false
	switch {
	case !held || info.Whole():
		delete(m.copies, c.asg.Segment)
	case errors.Is(err, errLeftToRepair):
		c.left = true
	default:
		c.due = time.Now().Add(c.pause)
		c.pause = min(2*c.pause, mendAtMost)
	}
	m.mu.Unlock()
	switch {
	case held && info.Whole():
		p.o.Logger.Info("copy mended", "range", c.asg.Ref.String(), "segment", c.asg.Segment.String(), "end", c.asg.End)
		p.o.OnCopy(CopyChange{
			Ref: c.asg.Ref, Topic: c.asg.Name, Segment: c.asg.Segment, Has: info.DurableEnd, End: c.asg.End, Mended: true,
		})
	case held && ctx.Err() == nil:
		p.o.Logger.Debug("copy not mended", "range", c.asg.Ref.String(), "segment", c.asg.Segment.String(), "left", c.left, "error", err)
	}
}

var errLeftToRepair = base.Errorf(base.CodeBatchTooLarge, opMend, "more is missing than is copied at once")

// copyTail goes on until the copy is whole, or no replica has a next piece for it.
func (p *Plane) copyTail(ctx context.Context, asg *meta.Assignment) error {
	for ctx.Err() == nil {
		info, held := p.log.Info(asg.Segment)
		switch {
		case !held || info.Whole():
			return nil
		case info.Damaged:
			return errLeftToRepair
		}
		tail, err := p.askTail(ctx, asg, info.DurableEnd)
		if err != nil {
			return err
		}
		if err := p.payFor(ctx, tail); err != nil {
			return err
		}
		if err := p.log.Mend(asg.Segment, tail.Batches); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// askTail asks one replica after the other for the next piece.
func (p *Plane) askTail(ctx context.Context, asg *meta.Assignment, from int64) (tail store.Tail, err error) {
	err = base.Errorf(base.CodeUnreachable, opMend, "segment %s has no other replica", asg.Segment)
	q := TailRequest{Ref: asg.Ref, Segment: asg.Segment, From: from, End: asg.End, MaxBytes: mendPiece}
	for _, r := range asg.Replicas {
		if r.Node == p.o.Node {
			continue
		}
		once, cancel := context.WithTimeout(ctx, mendOnce)
		tail, err = p.o.FetchTail(once, r, q)
		cancel()
		if err == nil {
			err = checkTail(&tail, asg, from)
		}
		if err == nil && tail.Left > maxMendBytes {
			err = errLeftToRepair
		}
		if err == nil || errors.Is(err, errLeftToRepair) {
			return tail, err
		}
	}
	return tail, err
}

// checkTail believes nothing that another node says of batches but what they say themselves.
func checkTail(t *store.Tail, asg *meta.Assignment, from int64) error {
	if len(t.Batches) == 0 {
		return base.Errorf(base.CodeBehind, opMend, "nothing came of segment %s from %d", asg.Segment, from)
	}
	for i := range t.Batches {
		b := &t.Batches[i]
		h, err := header.Check(b.Bytes, 0)
		switch {
		case err != nil:
			return err
		case h.BaseOffset != from || h.Epoch != int32(asg.Epoch) || h.End() > asg.End:
			return base.Errorf(base.CodeCorruptBatch, opMend, "a batch [%d, %d) of epoch %d came for segment %s at %d",
				h.BaseOffset, h.End(), h.Epoch, asg.Segment, from)
		}
		b.Header, from = h, h.End()
	}
	return nil
}

// payFor waits until the pace of all copies allows so much.
func (p *Plane) payFor(ctx context.Context, t store.Tail) error {
	var bytes int
	for i := range t.Batches {
		bytes += len(t.Batches[i].Bytes)
	}
	m := &p.mends
	m.mu.Lock()
	now := time.Now()
	if m.pace.Before(now) {
		m.pace = now
	}
	wait := m.pace.Sub(now)
	m.pace = m.pace.Add(time.Duration(bytes) * time.Second / mendRate)
	m.mu.Unlock()
	pause := time.NewTimer(wait)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
