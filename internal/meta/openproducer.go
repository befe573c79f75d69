package meta

import (
	"math"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// MaxProducers is how many named producers a topic remembers; the one that was opened longest ago goes first. Its
// name, opened again, gets a new id, which is safe: nothing of the old id is mistaken for the new one's.
const MaxProducers = 4096

// MaxProducerName is how many bytes a producer's name may have.
const MaxProducerName = 256

func (a *applier) openProducer(cmd *OpenProducer) Result {
	const op = "open producer"
	s := a.state
	t, err := s.find(cmd.Topic, "", 0)
	switch {
	case err != nil:
		return refuse(err)
	case cmd.Name == "" || len(cmd.Name) > MaxProducerName:
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "a producer's name must have 1 to %d bytes", MaxProducerName))
	case cmd.ID < 0:
		return refuse(base.Errorf(base.CodeInvalidArgument, op, "producer id %d is negative", cmd.ID))
	}
	t = t.clone()
	t.Version++
	p := t.nextProducer(cmd, s.nowMs)
	s.put(t)
	a.emit(Event{Type: EventProducerOpened, Topic: t.ID, Name: t.Name, Detail: p.Name})
	return Result{TopicID: t.ID, Version: t.Version, Topic: t, Producer: ProducerGrant{ID: p.ID, Epoch: p.Epoch}}
}

// nextProducer replaces the topic's list of producers by one with the command's, at its next epoch.
func (t *Topic) nextProducer(cmd *OpenProducer, nowMs int64) Producer {
	t.Producers = slices.Clone(t.Producers)
	i, known := slices.BinarySearchFunc(t.Producers, cmd.Name, func(p Producer, name string) int { return strings.Compare(p.Name, name) })
	p := Producer{Name: cmd.Name, ID: cmd.ID, OpenedMs: nowMs}
	if known {
		if old := t.Producers[i]; old.Epoch < math.MaxInt16 {
			p.ID, p.Epoch = old.ID, old.Epoch+1
		}
		t.Producers[i] = p
		return p
	}
	t.Producers = slices.Insert(t.Producers, i, p)
	if len(t.Producers) > MaxProducers {
		oldest := -1
		for j, q := range t.Producers {
			if q.Name != cmd.Name && (oldest < 0 || q.OpenedMs < t.Producers[oldest].OpenedMs) {
				oldest = j
			}
		}
		t.Producers = slices.Delete(t.Producers, oldest, oldest+1)
	}
	return p
}
