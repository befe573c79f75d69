package store

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// The steps of the script.

func (c *crashTest) set(fn func()) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	fn()
}

// active returns a random segment that takes appends, nil if there is none.
func (c *crashTest) active() *story {
	var all []*story
	c.h.each(func(s *story) {
		if s.opened && s.seal < 0 && !s.drop && !s.fenced {
			all = append(all, s)
		}
	})
	if len(all) == 0 {
		return nil
	}
	return all[c.rng.IntN(len(all))]
}

func (c *crashTest) open(ref base.RangeRef, epoch base.Epoch, at int64, state []byte, sequence int32) {
	c.next++
	s := &story{
		spec: SegmentSpec{Ref: ref, Segment: c.next, Epoch: epoch, Base: at, State: state, CreatedMs: 1, LeaderHere: c.rng.IntN(2) == 0},
		seal: -1, acked: at, published: at, sequence: sequence,
	}
	c.set(func() { c.h.segs[c.next] = s })
	wait(c.t, func(done func(error)) error {
		return c.n.OpenSegment(s.spec, func(err error) {
			c.set(func() { s.opened = err == nil })
			done(err)
		})
	})
}

func (c *crashTest) append(s *story) {
	for range 1 + c.rng.IntN(4) {
		at := s.spec.Base
		if n := len(s.batches); n > 0 {
			at = s.batches[n-1].Header.End()
		}
		records := 1 + c.rng.IntN(3)
		producer, sequence := int64(header.NoProducer), int32(0)
		if c.rng.IntN(2) == 0 {
			producer, sequence = 1, s.sequence
			c.set(func() { s.sequence += int32(records) })
		}
		b := makeBatch(uint64(s.spec.Segment), s.spec.Epoch, at, records, c.rng.IntN(1500), producer, sequence)
		c.set(func() { s.batches = append(s.batches, b) })
		life := c.life
		require.NoError(c.t, c.n.Append(s.spec.Segment, b, func(end int64, err error) {
			c.set(func() {
				if err == nil && life == c.life {
					s.acked = end
				}
			})
		}))
	}
}

// drain waits until everything submitted to s is acked.
func (c *crashTest) drain(s *story) {
	require.Eventually(c.t, func() bool {
		c.h.mu.Lock()
		defer c.h.mu.Unlock()
		n := len(s.batches)
		return n == 0 || s.acked == s.batches[n-1].Header.End()
	}, patience, 100*time.Microsecond)
}

func (c *crashTest) publish(s *story) {
	c.set(func() { s.published = s.acked })
	c.n.Publish(s.spec.Segment, s.published)
}

// roll seals s, above what was published and sometimes below what was acked, and opens its successor.
func (c *crashTest) roll(s *story) {
	c.drain(s)
	end := s.acked
	if c.rng.IntN(3) == 0 {
		end = s.published
	}
	c.set(func() { s.seal = end })
	wait(c.t, func(done func(error)) error {
		return c.n.Seal(s.spec.Segment, end, base.CauseOperator, func(err error) {
			c.set(func() { s.sealed = err == nil })
			done(err)
		})
	})
	st, err := c.n.RangeState(s.spec.Segment)
	require.NoError(c.t, err)
	_, sequence, _ := st.Producer(1)
	c.open(s.spec.Ref, s.spec.Epoch+1, end, st.Encode(), sequence)
}

// beyond makes n batches that follow what was submitted to s, as other replicas have them.
func (c *crashTest) beyond(s *story, n int) (all []Batch) {
	at := s.acked
	for range n {
		records := 1 + c.rng.IntN(3)
		producer, sequence := int64(header.NoProducer), int32(0)
		if c.rng.IntN(2) == 0 {
			producer, sequence = 1, s.sequence
			c.set(func() { s.sequence += int32(records) })
		}
		b := makeBatch(uint64(s.spec.Segment), s.spec.Epoch, at, records, c.rng.IntN(1500), producer, sequence)
		all, at = append(all, b), b.Header.End()
	}
	return all
}

// rollShort seals s above what is here: this replica was away when the rest was written.
func (c *crashTest) rollShort(s *story) {
	c.drain(s)
	lacks := c.beyond(s, 1+c.rng.IntN(8))
	c.set(func() { s.seal, s.lacks = lacks[len(lacks)-1].Header.End(), lacks })
	wait(c.t, func(done func(error)) error {
		return c.n.Seal(s.spec.Segment, s.seal, base.CauseReplicaFailure, func(err error) {
			c.set(func() { s.sealed = err == nil })
			done(err)
		})
	})
	c.open(s.spec.Ref, s.spec.Epoch+1, s.seal, nil, s.sequence)
}

// hold lists a segment that has ended and of which nothing is here.
func (c *crashTest) hold(ref base.RangeRef) {
	c.next++
	s := &story{spec: SegmentSpec{Ref: ref, Segment: c.next, CreatedMs: 1}, seal: -1}
	c.set(func() { c.h.segs[c.next] = s })
	lacks := c.beyond(s, 1+c.rng.IntN(8))
	c.set(func() { s.seal, s.lacks = lacks[len(lacks)-1].Header.End(), lacks })
	wait(c.t, func(done func(error)) error {
		return c.n.HoldSealed(s.spec, s.seal, base.CauseReplicaFailure, func(err error) {
			c.set(func() { s.opened, s.sealed = err == nil, err == nil })
			done(err)
		})
	})
}

// mend gives some short copy a part of what it lacks.
func (c *crashTest) mend() {
	var short []*story
	c.h.each(func(s *story) {
		if len(s.lacks) > 0 && s.sealed && !s.drop {
			short = append(short, s)
		}
	})
	if len(short) == 0 {
		return
	}
	s := short[c.rng.IntN(len(short))]
	part := s.lacks[:1+c.rng.IntN(len(s.lacks))]
	c.set(func() { s.batches = append(s.batches, part...) })
	require.NoError(c.t, c.n.Mend(s.spec.Segment, clones(part)))
	c.set(func() { s.acked, s.lacks = part[len(part)-1].Header.End(), s.lacks[len(part):] })
}

func (c *crashTest) fence(s *story) {
	c.drain(s)
	wait(c.t, func(done func(error)) error {
		return c.n.Fence(s.spec.Ref, s.spec.Epoch, s.spec.Segment, func(a FenceAnswer, err error) {
			c.set(func() { s.fenced = err == nil })
			if err == nil && a.End != s.acked {
				err = fmt.Errorf("extent %d, acked %d", a.End, s.acked)
			}
			done(err)
		})
	})
	c.roll(s)
}

func (c *crashTest) trim() {
	var sealed []*story
	c.h.each(func(s *story) {
		if s.sealed && !s.drop {
			sealed = append(sealed, s)
		}
	})
	if len(sealed) == 0 {
		return
	}
	s := sealed[0]
	c.set(func() { s.drop = true })
	wait(c.t, func(done func(error)) error {
		return c.n.DropSegments(s.spec.Ref, []base.SegmentID{s.spec.Segment}, func(err error) {
			c.set(func() { s.dropped = err == nil })
			done(err)
		})
	})
}

// dropTopic ends the topic of s with all its segments.
func (c *crashTest) dropTopic(s *story) {
	var all []*story
	c.h.each(func(x *story) {
		if x.spec.Ref.Topic == s.spec.Ref.Topic {
			all = append(all, x)
		}
	})
	c.set(func() {
		for _, x := range all {
			x.drop, x.topicDrop = true, true
		}
	})
	wait(c.t, func(done func(error)) error {
		return c.n.DropTopic(s.spec.Ref.Topic, func(err error) {
			c.set(func() {
				for _, x := range all {
					x.dropped = err == nil
				}
			})
			done(err)
		})
	})
}

// restart ends the process, in order or by a kill, and does what a node does at start: fence what it led, seal it, go on.
func (c *crashTest) restart(kill bool) {
	mem, failed := c.mem, c.failed.Load()
	if kill {
		c.set(func() { mem = c.mem.Snapshot(); c.life++ }) // what is acked later was not acked by this process
		c.failed.Store(true)                               // what the old process goes on to do is of no interest
	}
	c.n.stop()
	c.failed.Store(failed)
	c.begin(mem)
	wait(c.t, c.n.FenceAllLed)
	var led []*story
	c.h.each(func(s *story) {
		if s.opened && !s.drop && s.seal < 0 {
			s.fenced = s.fenced || s.spec.LeaderHere // a copy that was followed here waits for its seal
			led = append(led, s)
		}
	})
	for _, s := range led {
		i, ok := c.n.Info(s.spec.Segment)
		require.True(c.t, ok)
		c.set(func() {
			s.acked = i.DurableEnd // more than was acked may have reached the disk, and is now there for good
			s.published = max(s.published, i.Commit)
			for n := len(s.batches); n > 0 && s.batches[n-1].Header.End() > i.DurableEnd; n-- {
				s.batches = s.batches[:n-1]
			}
		})
		c.roll(s)
	}
}
