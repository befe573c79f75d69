package sdk

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	// reviewEvery is how often a reader looks whether another replica has become the better one.
	reviewEvery = 5 * time.Second
	// shunFor is how long a replica that was of no use to a range comes last.
	shunFor = 15 * time.Second
)

// replicas is what a cursor knows of those who hold the segment that it reads.
//
// Each of them is asked once: one that lags, or is away, or holds no such segment, is left for the next, at once. When none
// is left the round is over: the cursor waits, and the next round begins with what the coordinator says then.
type replicas struct {
	segment wire.SegmentRoute // of the offset to fetch next; zero when that has to be looked up
	fresh   bool              // what the route says has proved to be of no use: the coordinator is to be asked
	tried   []base.NodeID     // in this round
	rounds  int               // that ended without an answer of use
	reading base.SegmentID    // that the last answer came from
	shunned map[base.NodeID]time.Time
	without map[base.NodeID]time.Time // who said that it holds no copy, and until when that is believed
	review  time.Time                 // when to look for a better one
}

// errNoneLeft ends a round.
var errNoneLeft = errors.New("every replica was asked")

// useless notes that a replica could not serve the range.
func (p *replicas) useless(n base.NodeID, now time.Time) {
	if n == "" {
		return
	}
	if !slices.Contains(p.tried, n) {
		p.tried = append(p.tried, n)
	}
	if p.shunned == nil {
		p.shunned = make(map[base.NodeID]time.Time)
	}
	p.shunned[n] = now.Add(shunFor)
}

// holdsNone notes that a replica says that it holds no copy, though metadata lists it: it has been given another disk.
func (p *replicas) holdsNone(n base.NodeID, now time.Time) {
	if p.without == nil {
		p.without = make(map[base.NodeID]time.Time)
	}
	p.without[n] = now.Add(shunFor)
}

// readFrom is where the range is to be read: what a node holds no copy of comes from the others.
func (cur *cursor) readFrom(now time.Time) ReadFrom {
	from := cur.k.cfg.readFrom
	if from.kind == readNode && cur.replicas.without[from.node].After(now) {
		return ReadNearest()
	}
	return from
}

// served notes an answer of use, from a segment.
func (p *replicas) served(n base.NodeID, from base.SegmentID) {
	p.tried, p.rounds = p.tried[:0], 0
	delete(p.shunned, n)
	if from != 0 {
		p.reading = from
		if p.segment.ID != from {
			p.segment = wire.SegmentRoute{} // the broker went on to the next one, which it holds as well
		}
	}
}

// roundOver makes the next look-up begin anew.
func (p *replicas) roundOver() {
	p.tried, p.segment, p.fresh = p.tried[:0], wire.SegmentRoute{}, true
	p.rounds++
}

// goesOn says that the range goes on in another segment, elsewhere.
func (p *replicas) goesOn() {
	p.tried, p.segment, p.fresh = p.tried[:0], wire.SegmentRoute{}, true
}

func (p *replicas) isShunned(n base.NodeID, now time.Time) bool { return p.shunned[n].After(now) }

// locate finds the broker to read from and connects to it, on a goroutine of its own.
func (s *stepping) locate(cur *cursor) {
	k, gen := s.k, cur.gen
	l := locating{
		c: k.c, from: cur.readFrom(s.now), route: cur.t.route, ref: cur.ref, offset: cur.next, known: cur.replicas.segment,
		fresh: cur.replicas.fresh, tried: slices.Clone(cur.replicas.tried), cause: cur.lastErr,
	}
	for n, until := range cur.replicas.shunned {
		if until.After(s.now) {
			l.shunned = append(l.shunned, n)
		}
	}
	cur.locating = k.c.group.Go("locate", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, k.c.cfg.requestTimeout)
		defer cancel()
		b, err := l.run(ctx)
		var left wire.FetchRangeResult
		if base.CodeOf(err) == base.CodeOffsetOutOfRange {
			left, err = k.c.whatIsLeft(ctx, l.route, l.ref, l.offset, k.cfg.reset)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		cur.locating = false
		if gen == cur.gen {
			cur.locatedLocked(&l, b, &left, err, time.Now())
		}
		k.nudge()
		return nil
	})
}

// locatedLocked takes what locating has found.
func (cur *cursor) locatedLocked(l *locating, b *broker, left *wire.FetchRangeResult, err error, now time.Time) {
	p := &cur.replicas
	for _, n := range l.failed {
		p.useless(n, now)
	}
	switch {
	case left.Code == base.CodeOffsetOutOfRange:
		cur.broker = nil
		cur.outOfRangeLocked(left, now)
	case errors.Is(err, errNoneLeft) && cur.damage.hereLocked(cur):
		cur.damage.roundOverLocked(cur, l, now)
	case errors.Is(err, errNoneLeft):
		cur.roundOverLocked(l.cause, now)
	case err != nil:
		cur.failedLocked(err, now)
		cur.broker = nil
	default:
		cur.damage.relisted = cur.damage.relisted || l.fresh
		p.segment, p.fresh = l.known, false
		p.review = now.Add(reviewEvery)
		cur.broker = b
	}
}

// locating is one look-up: what it begins with, and what it learns.
type locating struct {
	c       *Client
	from    ReadFrom
	route   *route
	ref     base.RangeRef
	offset  int64
	known   wire.SegmentRoute
	fresh   bool
	tried   []base.NodeID
	shunned []base.NodeID

	among  []base.NodeID // whom it may be read from
	failed []base.NodeID // that could not be connected to
	cause  error         // why the last one was of no use
}

func (l *locating) run(ctx context.Context) (*broker, error) {
	if l.known.ID == 0 {
		var err error
		if l.known, err = l.c.segmentAt(ctx, l.route, l.ref, l.offset, l.fresh); err != nil {
			return nil, err
		}
	}
	sorted := l.c.order(l.from, l.ref, l.known.Replicas, func(n base.NodeID) bool { return slices.Contains(l.shunned, n) })
	l.among = sorted
	for _, n := range sorted {
		addr := l.c.brokers.address(n)
		if addr == "" || slices.Contains(l.tried, n) {
			continue
		}
		b := l.c.brokers.at(addr)
		if _, err := b.connectWithin(ctx, dialPatience); err != nil {
			l.failed, l.cause = append(l.failed, n), err
			continue
		}
		l.c.approach(l.known.Replicas)
		return b, nil
	}
	if l.cause == nil {
		l.cause = base.Errorf(base.CodeNoLeader, "find replica", "no replica of range %s of topic %s can be reached", l.ref.Range, l.route.Name)
	}
	return nil, errNoneLeft
}

// approach connects to replicas and measures how far they are, for the next look at which is the nearest.
func (c *Client) approach(replicas []base.NodeID) {
	if len(replicas) < 2 {
		return
	}
	for _, n := range replicas {
		addr := c.brokers.address(n)
		if addr == "" {
			continue
		}
		b := c.brokers.at(addr)
		if b.live() != nil {
			b.measure()
		} else if !b.resting() {
			b.connectSoon()
		}
	}
}

// reconsider moves a range to a better replica, when there is one and it is connected. It looks every few seconds.
func (s *stepping) reconsider(cur *cursor) {
	p := &cur.replicas
	if s.now.Before(p.review) {
		return
	}
	p.review = s.now.Add(reviewEvery)
	seg := p.segment
	if rr := cur.t.route.byRange[cur.ref.Range]; seg.ID == 0 && rr != nil && rr.Active != nil {
		if seg = *rr.Active; seg.ID != p.reading {
			cur.t.wanted = true // the range has rolled: the next look will know who holds the segment
			return
		}
	}
	if len(seg.Replicas) < 2 {
		return
	}
	c, here, how := s.k.c, cur.broker.node(), cur.readFrom(s.now)
	shunned := func(n base.NodeID) bool { return p.isShunned(n, s.now) }
	best := c.order(how, cur.ref, seg.Replicas, shunned)[0]
	c.approach(seg.Replicas)
	if best == here || shunned(best) {
		return
	}
	to, from := c.distance(how, cur.ref, best, best == seg.Replicas[0], false),
		c.distance(how, cur.ref, here, here == seg.Replicas[0], false)
	if b := c.brokers.at(c.brokers.address(best)); b.live() != nil && to.nearer(from) {
		cur.broker = b
	}
}
