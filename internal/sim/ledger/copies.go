package ledger

import (
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// equalCopies: whole copies of a sealed segment have the same bytes.
func (j *judge) equalCopies() {
	for i := range j.h.Segments {
		s := &j.h.Segments[i]
		if !s.Sealed() {
			continue
		}
		var first *Copy
		for _, r := range s.Replicas {
			c := j.copies[holding{r, s.ID}]
			switch {
			case !j.whole(s, c):
			case first == nil:
				first = c
			case c.Sum != first.Sum:
				j.complain("I6", "segment %v has sum %08x on %s and %08x on %s", s.ID, first.Sum, first.Replica.Node, c.Sum, r.Node)
			}
		}
	}
}

// fenced: a record that was sent when the seal of a segment was known to be committed is not acked in that segment.
func (j *judge) fenced() {
	for _, a := range j.h.Acks {
		if s := j.segments[a.Segment]; s != nil && s.Sealed() && a.Call > s.SealedBy {
			j.complain("I7", "record %v was sent after the seal of segment %v was committed, and acked in it at %v", a.ID, s.ID, a.Place)
		}
	}
}

// kept: what a replica once said to have on stable storage is there at the end, unless its segment was sealed below or
// metadata has let go of it.
func (j *judge) kept() {
	most := make(map[holding]Sighting)
	for _, seen := range j.h.Sightings {
		at := holding{seen.Replica, seen.Segment}
		if before, ok := most[at]; !ok || before.Durable < seen.Durable {
			most[at] = seen
		}
	}
	for at, seen := range most {
		s := j.segments[at.segment]
		if s == nil || j.h.Lost[at.replica.Disk] || !s.heldBy(at.replica) {
			continue
		}
		want := seen.Durable
		if s.Sealed() {
			want = min(want, s.End)
		}
		if want <= s.Base {
			continue // an empty segment has no file
		}
		switch c := j.copies[at]; {
		case c == nil:
			j.complain("I11", "%s had segment %v up to %d, and has it no more", at.replica.Node, at.segment, seen.Durable)
		case !c.Damaged && c.Durable < want:
			j.complain("I11", "%s had segment %v up to %d, and has it up to %d now", at.replica.Node, at.segment, seen.Durable, c.Durable)
		}
	}
}

func (s *Segment) heldBy(r base.Replica) bool {
	for _, mine := range s.Replicas {
		if mine == r {
			return true
		}
	}
	return false
}

// recovered: a disk that was recovered is the same when it is recovered again, and nothing on it is unknown.
func (j *judge) recovered() {
	for _, r := range j.h.Recoveries {
		if r.Unrecognised != "" {
			j.complain("I12", "the disk of %s: %s", r.Replica.Node, r.Unrecognised)
		}
		if r.Once != r.Again {
			once, again := differing(r.Once, r.Again)
			j.complain("I12", "the disk of %s recovered once:\n%s\nand again:\n%s", r.Replica.Node, once, again)
		}
	}
}

// differing is the lines that only one of two texts has.
func differing(a, b string) (onlyA, onlyB string) {
	without := func(text, other string) string {
		known := make(map[string]bool)
		for line := range strings.Lines(other) {
			known[line] = true
		}
		var left strings.Builder
		for line := range strings.Lines(text) {
			if !known[line] {
				left.WriteString(line)
			}
		}
		return left.String()
	}
	return without(a, b), without(b, a)
}
