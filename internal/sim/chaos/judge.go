package chaos

import (
	"fmt"
	"maps"
	"slices"

	"github.com/eastguard/eastguard/sdk"
)

// Verdict is what became of the records of a run, or of one topic.
type Verdict struct {
	Acked      int
	Failed     int // not acked; they may be stored, once
	Read       int
	Lost       int // acked, and not where the ack said
	Duplicated int
	Reordered  int      // after a later one of the same writer and key
	Unread     int      // seen by a reader during the run, and not there at the end
	Examples   []string // the first of each kind
}

// Sound reports whether nothing is wrong.
func (v *Verdict) Sound() bool { return v.Lost+v.Duplicated+v.Reordered+v.Unread == 0 }

// maxExamples bounds what is told of one topic.
const maxExamples = 20

func (v *Verdict) complain(count *int, format string, args ...any) {
	if *count++; len(v.Examples) < maxExamples {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}

// add joins the verdicts of two topics.
func (v *Verdict) add(other Verdict) {
	v.Acked, v.Failed, v.Read = v.Acked+other.Acked, v.Failed+other.Failed, v.Read+other.Read
	v.Lost, v.Duplicated = v.Lost+other.Lost, v.Duplicated+other.Duplicated
	v.Reordered, v.Unread = v.Reordered+other.Reordered, v.Unread+other.Unread
	v.Examples = append(v.Examples, other.Examples...)
}

// judge compares what is in a topic with what its writers were told and its readers saw.
func judge(topic string, there map[sdk.RangeID][]id, writers []*writer, readers []*reader) (v Verdict) {
	v.order(topic, there)
	for _, w := range writers {
		v.Failed += w.failed
		for n, at := range w.acked {
			if at.offset < 0 {
				continue
			}
			v.Acked++
			here := there[at.rang]
			if want := (id{w.number, int64(n)}); at.offset >= int64(len(here)) {
				v.complain(&v.Lost, "%s: record %v was acked at offset %d of range %d, which ends at %d", topic, want, at.offset, at.rang, len(here))
			} else if here[at.offset] != want {
				v.complain(&v.Lost, "%s: record %v was acked at offset %d of range %d, where record %v lies", topic, want, at.offset, at.rang, here[at.offset])
			}
		}
	}
	for _, r := range readers {
		for rang, seen := range r.seen {
			for offset, found := range seen {
				if here := there[rang]; offset >= len(here) || here[offset] != found {
					v.complain(&v.Unread, "%s: a reader saw record %v at offset %d of range %d, and it is not there at the end", topic, found, offset, rang)
				}
			}
		}
	}
	return v
}

// order counts records that lie twice, and those that come after a later one of their key. All records of a key lie in
// one range.
func (v *Verdict) order(topic string, there map[sdk.RangeID][]id) {
	type line struct {
		writer int
		key    int64
	}
	seen := make(map[id]bool)
	for _, rang := range slices.Sorted(maps.Keys(there)) {
		last := make(map[line]int64)
		for offset, found := range there[rang] {
			v.Read++
			at := line{found.writer, found.number % keys}
			if seen[found] {
				v.complain(&v.Duplicated, "%s: record %v lies at offset %d of range %d, and before", topic, found, offset, rang)
			} else if before, ok := last[at]; ok && before > found.number {
				v.complain(&v.Reordered, "%s: record %v at offset %d of range %d comes after record %d of its key", topic, found, offset, rang, before)
			}
			seen[found], last[at] = true, max(last[at], found.number)
		}
	}
}
