package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// Problem is one way in which a history breaks an invariant.
type Problem struct {
	Invariant string
	Text      string
}

// String prints the problem on one line.
func (p Problem) String() string { return p.Invariant + ": " + p.Text }

// perInvariant bounds how many problems of one kind are told: the first ones say enough.
const perInvariant = 5

// Judge holds every invariant against a history.
func Judge(h *History) []Problem {
	j := &judge{h: h, segments: make(map[base.SegmentID]*Segment), chain: make(map[base.RangeRef][]*Segment), copies: make(map[holding]*Copy), told: make(map[string]int)}
	for i := range h.Segments {
		s := &h.Segments[i]
		j.segments[s.ID] = s
		j.chain[s.Ref] = append(j.chain[s.Ref], s)
	}
	for _, chain := range j.chain {
		slices.SortFunc(chain, func(a, b *Segment) int { return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.Epoch, b.Epoch)) })
	}
	for i := range h.Copies {
		c := &h.Copies[i]
		j.copies[holding{c.Replica, c.Segment}] = c
	}
	for _, check := range []func(){
		j.ends, j.acked, j.onePayload, j.denseCopies, j.chains, j.orderAndOnce, j.readAgain, j.readersGoOn, j.equalCopies, j.fenced, j.kept, j.recovered,
	} {
		check()
	}
	return j.problems
}

// Report is the problems, one a line; empty when there are none.
func Report(problems []Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// holding is one disk's copy of one segment.
type holding struct {
	replica base.Replica
	segment base.SegmentID
}

type judge struct {
	h        *History
	segments map[base.SegmentID]*Segment
	chain    map[base.RangeRef][]*Segment // by base
	copies   map[holding]*Copy
	problems []Problem
	told     map[string]int
}

func (j *judge) complain(invariant, format string, args ...any) {
	if j.told[invariant]++; j.told[invariant] <= perInvariant {
		j.problems = append(j.problems, Problem{invariant, fmt.Sprintf(format, args...)})
	}
}

// whole reports whether a copy holds its segment to its end, or to the commit while it is active.
func (j *judge) whole(s *Segment, c *Copy) bool {
	return c != nil && !c.Damaged && (s.Sealed() && c.Durable >= s.End || !s.Sealed() && c.Durable >= c.Commit)
}

// clip is where the part of a copy ends that counts: what lies above a sealed end is void, what lies above the commit
// of an active segment may become so.
func clip(s *Segment, c *Copy) int64 {
	if s.Sealed() {
		return min(c.Durable, s.End)
	}
	return min(c.Durable, c.Commit)
}

// ends: a sealed segment ends behind everything that was acked in it, and everything acked lies in some segment.
//
// An ack may name a later segment than the one that holds the record: that of the leader which knew the retry again.
func (j *judge) ends() {
	for _, a := range j.h.Acks {
		switch s := j.segments[a.Segment]; {
		case j.segmentAt(a.Place) == nil:
			j.complain("END", "record %v was acked at %v (segment %v), where metadata has no segment", a.ID, a.Place, a.Segment)
		case s == nil: // it ended without a record of its own
		case s.Ref != a.Ref:
			j.complain("END", "record %v was acked at %v in segment %v, which is of %v", a.ID, a.Place, s.ID, s.Ref)
		case s.Sealed() && a.Offset >= s.End:
			j.complain("END", "record %v was acked at %v in segment %v, which ends at %d", a.ID, a.Place, s.ID, s.End)
		}
	}
}

// segmentAt is the segment that holds a place, or nil.
func (j *judge) segmentAt(p Place) *Segment {
	for _, s := range j.chain[p.Ref] {
		if p.Offset >= s.Base && (!s.Sealed() || p.Offset < s.End) {
			return s
		}
	}
	return nil
}

// acked: whatever was acked is on every whole copy, and there is one. While its segment was active an ack needed all
// replicas, so then each that was not taken away on purpose has the record, also one that is short of what the seal took
// in on top. Once the seal is committed, who knows the end acks what lies below it.
func (j *judge) acked() {
	inSegment := make(map[*Segment][]Ack)
	for _, a := range j.h.Acks {
		if s := j.segmentAt(a.Place); s != nil { // else ends tells
			inSegment[s] = append(inSegment[s], a)
		}
	}
	for s, acks := range inSegment {
		id, wholes := s.ID, 0
		for _, r := range s.Replicas {
			c := j.copies[holding{r, id}]
			if j.whole(s, c) {
				wholes++
			}
			if !j.h.Lost[r.Disk] && (c == nil || !c.Damaged) {
				j.ackedOn(s, r, c, slices.DeleteFunc(slices.Clone(acks), func(a Ack) bool {
					return s.Sealed() && a.Return >= s.SealedFrom && !j.whole(s, c)
				}))
			}
		}
		if wholes == 0 {
			j.complain("I1", "segment %v holds %d acked records, and no replica of %v has it to its end %d", id, len(acks), s.Replicas, s.End)
		}
	}
}

func (j *judge) ackedOn(s *Segment, r base.Replica, c *Copy, acks []Ack) {
	if len(acks) == 0 {
		return
	}
	if c == nil {
		j.complain("I1", "%s has no copy of segment %v, in which %d records were acked, %v at %v among them", r.Node, s.ID, len(acks), acks[0].ID, acks[0].Place)
		return
	}
	at := make(map[int64]Stored, len(c.Records))
	for _, rec := range c.Records {
		at[rec.Offset] = rec
	}
	for _, a := range acks {
		if found, ok := at[a.Offset]; !ok {
			j.complain("I1", "record %v was acked at %v in segment %v (base %d, end %d), and %s has it up to %d only", a.ID, a.Place, s.ID, s.Base, s.End, r.Node, c.Durable)
		} else if found.Sum != a.Sum {
			j.complain("I1", "record %v was acked at %v, and %s has record %v there", a.ID, a.Place, r.Node, found.ID)
		}
	}
}

// onePayload: over everything that anybody was told, read or holds, a place has one payload.
func (j *judge) onePayload() {
	type found struct {
		Record
		where string
	}
	at := make(map[Place]found)
	see := func(p Place, r Record, where func() string) {
		before, ok := at[p]
		if !ok {
			at[p] = found{r, where()}
		} else if before.Sum != r.Sum {
			j.complain("I2", "%v is record %v for %s, and record %v for %s", p, before.ID, before.where, r.ID, where())
		}
	}
	for _, a := range j.h.Acks {
		see(a.Place, a.Record, func() string { return "its producer" })
	}
	for _, r := range j.h.Reads {
		see(r.Place, r.Record, func() string { return "reader " + r.Reader })
	}
	for _, pass := range j.h.Passes {
		for _, r := range pass.Reads {
			see(r.Place, r.Record, func() string { return "reader " + pass.Reader })
		}
	}
	for i := range j.h.Copies {
		c := &j.h.Copies[i]
		s := j.segments[c.Segment]
		if s == nil {
			continue
		}
		for _, rec := range c.Records {
			if rec.Offset < clip(s, c) {
				see(Place{s.Ref, rec.Offset}, rec.Record, func() string { return fmt.Sprintf("the disk of %s, segment %v", c.Replica.Node, c.Segment) })
			}
		}
	}
}

// denseCopies: a copy has every offset from its segment's base to where it ends, in order, under the segment's epoch.
func (j *judge) denseCopies() {
	for i := range j.h.Copies {
		c := &j.h.Copies[i]
		s := j.segments[c.Segment]
		if s == nil || c.Damaged {
			continue
		}
		next := s.Base
		for _, rec := range c.Records {
			if rec.Offset >= clip(s, c) {
				break
			}
			if rec.Offset != next {
				j.complain("I2", "%s has offset %d of segment %v where %d follows", c.Replica.Node, rec.Offset, s.ID, next)
			}
			if rec.Epoch != s.Epoch {
				j.complain("I7", "%s has record %v at offset %d of segment %v under epoch %d, the segment has %d", c.Replica.Node, rec.ID, rec.Offset, s.ID, rec.Epoch, s.Epoch)
			}
			next = rec.Offset + 1
		}
		if next < clip(s, c) {
			j.complain("I2", "%s says that it has segment %v to %d, and what is there ends at %d", c.Replica.Node, s.ID, clip(s, c), next)
		}
	}
}

// chains: a range's segments follow each other without a gap, the first begins at 0, and only the last may be active.
func (j *judge) chains() {
	for ref, chain := range j.chain {
		next := int64(0)
		for i, s := range chain {
			if s.Base != next {
				j.complain("I2", "segment %v of %v begins at %d where %d follows", s.ID, ref, s.Base, next)
			}
			if !s.Sealed() && i < len(chain)-1 {
				j.complain("I7", "segment %v of %v is active, and segment %v follows it", s.ID, ref, chain[i+1].ID)
			}
			next = s.End
		}
	}
}
