package ledger

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

var (
	ref   = base.RangeRef{Topic: base.TopicID{1}, Range: 1}
	nodes = []base.Replica{{Node: "n1", Disk: base.DiskID{1}}, {Node: "n2", Disk: base.DiskID{2}}, {Node: "n3", Disk: base.DiskID{3}}, {Node: "n4", Disk: base.DiskID{4}}}
)

// record is the n-th of all: two producers take turns, with two keys each.
func record(n int64) Record {
	return Record{ID: ID{Producer: uint32(n % 2), Number: n / 2}, Key: fmt.Sprint(n / 2 % 2), Sum: uint64(1000 + n)}
}

// sound is a history in which nothing is wrong: one range of two sealed segments and an active one, ten records each, of
// which the last of the sealed ones and of the active one was not acked. The second segment has a short copy on n4.
func sound() *History {
	h := &History{}
	for i, replicas := range [][]base.Replica{{nodes[0], nodes[1], nodes[2]}, {nodes[0], nodes[1], nodes[3]}, {nodes[1], nodes[0], nodes[2]}} {
		s := Segment{Ref: ref, ID: base.SegmentID(10 + i), Epoch: base.Epoch(1 + i), Base: int64(10 * i), End: int64(10 * (i + 1)), Replicas: replicas, SealedFrom: int64(100*i + 50), SealedBy: int64(100 * (i + 1))}
		if i == 2 {
			s.End, s.SealedFrom, s.SealedBy = -1, 0, 0
		}
		h.Segments = append(h.Segments, s)
		for n := s.Base; n < s.Base+9; n++ {
			h.Acks = append(h.Acks, Ack{Record: record(n), Place: Place{ref, n}, Segment: s.ID, Call: int64(100*i) + n%10, Return: int64(100*i) + n%10 + 5})
		}
		for _, r := range replicas {
			durable := s.Base + 10
			if r == nodes[3] {
				durable--
			}
			h.Copies = append(h.Copies, stored(s, r, durable))
			h.Sightings = append(h.Sightings, Sighting{Replica: r, Segment: s.ID, Durable: durable, At: 50})
			h.Recoveries = append(h.Recoveries, Recovery{Replica: r, Once: "same", Again: "same"})
		}
	}
	for n := range int64(29) {
		h.Reads = append(h.Reads, Read{Reader: "r", Record: record(n), Place: Place{ref, n}, Epoch: base.Epoch(1 + n/10), At: n})
	}
	h.Passes = []Pass{{Reader: "at n1", Reads: slices.Clone(h.Reads)}, {Reader: "at n2", Reads: slices.Clone(h.Reads)}}
	return h
}

func stored(s Segment, r base.Replica, durable int64) Copy {
	c := Copy{Replica: r, Segment: s.ID, Durable: durable, Commit: s.Base + 9}
	for n := s.Base; n < durable; n++ {
		c.Records = append(c.Records, Stored{Record: record(n), Offset: n, Epoch: s.Epoch})
	}
	c.Sum = crc32.ChecksumIEEE(fmt.Append(nil, c.Records))
	return c
}

// copyOf finds a node's copy of the i-th segment.
func (h *History) copyOf(node base.NodeID, i int) *Copy {
	for k := range h.Copies {
		if c := &h.Copies[k]; c.Replica.Node == node && c.Segment == h.Segments[i].ID {
			return c
		}
	}
	panic("no such copy")
}

// cut shortens a copy.
func (c *Copy) cut(durable int64) {
	c.Records = slices.DeleteFunc(c.Records, func(r Stored) bool { return r.Offset >= durable })
	c.Durable = durable
}

// remove takes a copy away.
func (h *History) remove(node base.NodeID, i int) {
	h.Copies = slices.DeleteFunc(h.Copies, func(c Copy) bool { return c.Replica.Node == node && c.Segment == h.Segments[i].ID })
}

func TestNothingIsWrong(t *testing.T) {
	require.Empty(t, Report(Judge(sound())))
}

// Each bug is planted in a sound history and is found, under its own name. The first word of what is wanted is the
// invariant that the bug breaks; others may be broken by it too.
func TestPlantedBugs(t *testing.T) {
	for _, tc := range []struct {
		bug   string
		plant func(h *History)
		want  string
	}{
		{"a follower acked before its fsync and lost its power", func(h *History) {
			h.copyOf("n2", 1).cut(15)
		}, "I1: record 1/7 was acked at"},
		{"a short copy lacks what was acked", func(h *History) {
			h.copyOf("n4", 1).cut(18)
		}, "I1: record 0/9 was acked at"},
		{"a whole copy lacks what was acked after the seal", func(h *History) {
			h.Acks[8].Return = 90
			h.copyOf("n2", 0).Records[8].Sum = 7
		}, "I1: record 0/4 was acked at"},
		{"no replica has the whole segment", func(h *History) {
			for _, n := range []base.NodeID{"n1", "n2", "n3"} {
				h.copyOf(n, 0).cut(9)
			}
		}, "I1: segment s10 holds 9 acked records, and no replica"},
		{"every disk was lost and nobody says so", func(h *History) {
			h.Lost = map[base.DiskID]bool{nodes[0].Disk: true, nodes[1].Disk: true, nodes[2].Disk: true}
			h.Copies = slices.DeleteFunc(h.Copies, func(c Copy) bool { return c.Segment == 10 })
		}, "I1: segment s10 holds 9 acked records, and no replica"},
		{"the extent was taken without a fence", func(h *History) {
			h.Segments[0].End, h.Segments[1].Base = 7, 7
		}, "END: record 1/3 was acked at"},
		{"the segment was dropped as empty", func(h *History) {
			h.Segments = h.Segments[:2]
		}, "END: record 0/10 was acked at"},
		{"an offset was given twice, after a restart", func(h *History) {
			c := h.copyOf("n2", 1)
			c.Records[4].Record = Record{ID: ID{7, 7}, Sum: 7}
		}, "I2: 01000000-0000-0000-0000-000000000000/r1@14 is record"},
		{"a zombie's record is read", func(h *History) {
			h.Reads[12].Record = Record{ID: ID{7, 7}, Sum: 7}
		}, "I2: 01000000-0000-0000-0000-000000000000/r1@12 is record"},
		{"a follower took an append with a hole before it", func(h *History) {
			c := h.copyOf("n1", 0)
			c.Records = slices.Delete(c.Records, 9, 10)
			c.Records = append(c.Records, Stored{Record: record(9), Offset: 10, Epoch: 1})
			c.Durable = 11
		}, "I2: n1 says that it has segment s10 to 10, and what is there ends at 9"},
		{"the successor began at the leader's own end", func(h *History) {
			h.Segments[2].Base = 21
		}, "I2: segment s12 of 01000000-0000-0000-0000-000000000000/r1 begins at 21 where 20 follows"},
		{"a retry overtook the batch before it", func(h *History) {
			for i := range h.Passes {
				h.Passes[i].Reads[4].Record, h.Passes[i].Reads[8].Record = record(8), record(4)
			}
		}, "I3: record 0/2 at"},
		{"a retry was taken for a new batch", func(h *History) {
			for i := range h.Passes {
				h.Passes[i].Reads = append(h.Passes[i].Reads, Read{Record: record(28), Place: Place{ref, 29}})
			}
		}, "I4: record 0/14 lies at"},
		{"a tail was read that was never committed", func(h *History) {
			h.Reads = append(h.Reads, Read{Reader: "r", Record: record(29), Place: Place{ref, 29}})
		}, "I5: reader r saw record 1/14 at"},
		{"a reader went back when it changed replica", func(h *History) {
			h.Reads = slices.Insert(h.Reads, 20, h.Reads[18])
		}, "I5: reader r saw offset 18 of"},
		{"a reader left out what lay between two segments", func(h *History) {
			h.Reads = slices.Delete(h.Reads, 9, 10)
		}, "I5: reader r saw offset 10 of"},
		{"an ack that nobody finds again", func(h *History) {
			for i := range h.Passes {
				h.Passes[i].Reads = h.Passes[i].Reads[:28]
			}
			h.Reads = h.Reads[:28]
		}, "I1: record 0/14 was acked at"},
		{"two whole copies differ in a byte", func(h *History) {
			h.copyOf("n3", 0).Sum++
		}, "I6: segment s10 has sum"},
		{"a zombie leader acked after the seal", func(h *History) {
			h.Acks[8].Call = 101
		}, "I7: record 0/4 was sent after the seal of segment s10"},
		{"a successor opened before the seal", func(h *History) {
			h.Segments[1].End, h.Segments[1].SealedBy = -1, 0
		}, "I7: segment s11 of 01000000-0000-0000-0000-000000000000/r1 is active, and segment s12 follows it"},
		{"a tail was replayed under the old epoch", func(h *History) {
			h.copyOf("n1", 1).Records[0].Epoch = 1
		}, "I7: n1 has record 0/5 at offset 10 of segment s11 under epoch 1"},
		{"a copy was deleted because nobody knew it", func(h *History) {
			h.remove("n4", 1)
		}, "I11: n4 had segment s11 up to 19, and has it no more"},
		{"what was durable is gone after a restart", func(h *History) {
			h.Acks = nil
			h.copyOf("n1", 0).cut(8)
		}, "I11: n1 had segment s10 up to 10, and has it up to 8 now"},
		{"a second recovery finds something else", func(h *History) {
			h.Recoveries[3].Again = "other"
		}, "I12: the disk of n1 recovered once"},
		{"a recovery finds what it does not know", func(h *History) {
			h.Recoveries[3].Unrecognised = "a file in quarantine"
		}, "I12: the disk of n1: a file in quarantine"},
	} {
		t.Run(tc.bug, func(t *testing.T) {
			h := sound()
			tc.plant(h)
			problems := Judge(h)
			found := slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.String(), tc.want) })
			require.True(t, found, "wanted %q, found:\n%s", tc.want, Report(problems))
		})
	}
}

// Disks that are taken away on purpose are asked for nothing, as long as one copy is left.
func TestALostDisk(t *testing.T) {
	h := sound()
	h.Lost = map[base.DiskID]bool{nodes[0].Disk: true}
	h.Copies = slices.DeleteFunc(h.Copies, func(c Copy) bool { return c.Replica == nodes[0] })
	require.Empty(t, Report(Judge(h)))
}

// A copy that says of itself that it is damaged counts for nothing, as long as another is whole.
func TestADamagedCopy(t *testing.T) {
	h := sound()
	c := h.copyOf("n1", 0)
	c.cut(3)
	c.Damaged = true
	require.Empty(t, Report(Judge(h)))
	for _, n := range []base.NodeID{"n2", "n3"} {
		h.copyOf(n, 0).Damaged = true
	}
	require.Contains(t, Report(Judge(h)), "no replica")
}

// A short copy need not have what was acked once the seal was committed.
func TestAnAckAfterTheSeal(t *testing.T) {
	h := sound()
	h.Acks[17].Return = 170
	h.copyOf("n4", 1).cut(18)
	h.Sightings = nil
	require.Empty(t, Report(Judge(h)))
}

// Problems are told a few of each kind.
func TestManyProblems(t *testing.T) {
	h := sound()
	for i := range h.Acks {
		h.Acks[i].Sum = 1
	}
	require.Less(t, len(Judge(h)), 3*perInvariant+1)
}
