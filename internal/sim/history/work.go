package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// Worker is a client that makes, reads, alters and deletes topics, one operation after the other.
type Worker struct {
	Client int
	Admin  *sdk.Admin
	Names  *Names
	Rand   *rand.Rand
	Think  time.Duration // between two operations, on average
	Within time.Duration // of each operation
}

// Work lets a worker work until it is told to stop, and returns when its last operation is over.
func (r *Recorder) Work(stopped <-chan struct{}, w Worker) {
	for n := 0; Pause(stopped, time.Duration(w.Rand.Int64N(int64(2*w.Think)))); n++ {
		op := Op{Client: w.Client, Topic: w.Names.pick(w.Rand)}
		switch p := w.Rand.IntN(10); {
		case p < 3:
			op.Kind, op.Value = Create, fmt.Sprintf("%d-%d", w.Client, n)
		case p < 5:
			op.Kind, op.Value = Alter, fmt.Sprintf("%d-%d", w.Client, n)
		case p < 6:
			op.Kind = Delete
		default:
			op.Kind = Describe
		}
		ctx, cancel := context.WithTimeout(context.Background(), w.Within)
		if r.Do(ctx, w.Admin, op).Answer == Unknown {
			w.Names.spoilt(op.Topic)
		}
		cancel()
	}
}

// Pause waits a while and reports whether to go on.
func Pause(stopped <-chan struct{}, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-stopped:
		return false
	}
}

// maxUnknown is how many unknown outcomes one name may have: each of them is under way for ever in the eyes of the
// judge, whose work doubles with each.
const maxUnknown = 3

// Names are the topic names in use, shared by workers. One that has too many unknown outcomes is replaced.
type Names struct {
	mu      sync.Mutex
	slots   []string
	unknown map[string]int
	next    int
}

// NewNames makes n names.
func NewNames(n int) *Names {
	s := &Names{unknown: make(map[string]int)}
	for range n {
		s.slots = append(s.slots, s.fresh())
	}
	return s
}

func (s *Names) fresh() string {
	s.next++
	return fmt.Sprintf("t%d", s.next)
}

func (s *Names) pick(rng *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[rng.IntN(len(s.slots))]
}

func (s *Names) spoilt(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown[name]++; s.unknown[name] < maxUnknown {
		return
	}
	for i, slot := range s.slots {
		if slot == name {
			s.slots[i] = s.fresh()
		}
	}
}
