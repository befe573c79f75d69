package ledger

import (
	"slices"

	"github.com/eastguard/eastguard/internal/base"
)

// orderAndOnce: in what is read at the end no record lies twice, and a producer's records with one key lie in the order
// in which they were sent. Offsets are dense from where a range begins.
func (j *judge) orderAndOnce() {
	for _, pass := range j.h.Passes {
		reads := slices.Clone(pass.Reads)
		slices.SortStableFunc(reads, func(a, b Read) int {
			if c := compareRefs(a.Ref, b.Ref); c != 0 {
				return c
			}
			return int(a.Offset - b.Offset)
		})
		j.once(pass.Reader, reads)
		j.order(pass.Reader, reads)
		for i, r := range reads {
			if i > 0 && reads[i-1].Ref == r.Ref && reads[i-1].Offset+1 != r.Offset {
				j.complain("I2", "reader %s has offset %d of %v after offset %d", pass.Reader, r.Offset, r.Ref, reads[i-1].Offset)
			}
		}
	}
}

func (j *judge) once(reader string, reads []Read) {
	at := make(map[base.TopicID]map[ID]Place)
	for _, r := range reads {
		seen := at[r.Ref.Topic]
		if seen == nil {
			seen = make(map[ID]Place)
			at[r.Ref.Topic] = seen
		}
		if before, ok := seen[r.ID]; ok {
			j.complain("I4", "record %v lies at %v and at %v (reader %s)", r.ID, before, r.Place, reader)
		}
		seen[r.ID] = r.Place
	}
}

func (j *judge) order(reader string, reads []Read) {
	type line struct {
		topic    base.TopicID
		producer uint32
		key      string
	}
	last := make(map[line]Read)
	for _, r := range reads {
		at := line{r.Ref.Topic, r.Producer, r.Key}
		if before, ok := last[at]; ok && before.Number > r.Number {
			j.complain("I3", "record %v at %v comes after record %v at %v, of the same key (reader %s)", r.ID, r.Place, before.ID, before.Place, reader)
		}
		last[at] = r
	}
}

func compareRefs(a, b base.RangeRef) int {
	if c := slices.Compare(a.Topic[:], b.Topic[:]); c != 0 {
		return c
	}
	return int(a.Range) - int(b.Range)
}

// readAgain: what anybody was told or read is read again at the end, by every pass over its topic.
func (j *judge) readAgain() {
	for _, pass := range j.h.Passes {
		topics := make(map[base.TopicID]bool)
		at := make(map[Place]Record, len(pass.Reads))
		for _, r := range pass.Reads {
			topics[r.Ref.Topic] = true
			at[r.Place] = r.Record
		}
		for _, r := range j.h.Reads {
			if again, ok := at[r.Place]; topics[r.Ref.Topic] && (!ok || again.Sum != r.Sum) {
				j.complain("I5", "reader %s saw record %v at %v, and reader %s did not later", r.Reader, r.ID, r.Place, pass.Reader)
			}
		}
		for _, a := range j.h.Acks {
			if again, ok := at[a.Place]; topics[a.Ref.Topic] && (!ok || again.Sum != a.Sum) {
				j.complain("I1", "record %v was acked at %v, and reader %s does not find it there", a.ID, a.Place, pass.Reader)
			}
		}
	}
}

// readersGoOn: a reader sees each offset of a range right after the one before, whichever replicas it reads from.
func (j *judge) readersGoOn() {
	type position struct {
		reader string
		ref    base.RangeRef
	}
	last := make(map[position]int64)
	for _, r := range j.h.Reads {
		at := position{r.Reader, r.Ref}
		if before, ok := last[at]; ok && r.Offset != before+1 {
			j.complain("I5", "reader %s saw offset %d of %v after offset %d", r.Reader, r.Offset, r.Ref, before)
		}
		last[at] = r.Offset
	}
}
