package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/sdk"
)

// LoadOptions say what clients do.
type LoadOptions struct {
	Clients   int           // that change and read topics; 3
	Topics    int           // names in use at once; 6
	Think     time.Duration // between two operations of a client, on average; 300 ms
	Producers int           // topics that are written, by one producer each; 0
}

// Load is clients at work.
type Load struct {
	c       *Cluster
	o       LoadOptions
	stopped chan struct{}
	clients sync.WaitGroup
	names   *names
	streams []*stream
}

// operationWithin is how long a client waits for the answer to one operation.
const operationWithin = 5 * time.Second

// StartLoad sets clients to work.
func (c *Cluster) StartLoad(o LoadOptions) *Load {
	c.T.Helper()
	def(&o.Clients, 3)
	def(&o.Topics, 6)
	def(&o.Think, 300*time.Millisecond)
	l := &Load{c: c, o: o, stopped: make(chan struct{}), names: newNames(o.Topics)}
	for i := range o.Clients {
		cl, rng := c.Client(), rand.New(rand.NewPCG(c.Rand.Uint64(), uint64(i)))
		l.clients.Go(func() { l.change(i, cl, rng) })
	}
	for i := range o.Producers {
		s := &stream{c: c, topic: fmt.Sprintf("stream-%d", i), client: c.Client()}
		l.streams = append(l.streams, s)
		l.clients.Go(func() { s.produce(l.stopped, rand.New(rand.NewPCG(c.options.Seed, uint64(i)))) })
	}
	return l
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Stop lets the clients finish what they are at, and waits for them.
func (l *Load) Stop() {
	close(l.stopped)
	l.clients.Wait()
}

// pause waits a while and reports whether to go on.
func pause(stopped <-chan struct{}, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-stopped:
		return false
	}
}

// change is a client that makes, reads, alters and deletes topics.
func (l *Load) change(id int, cl *sdk.Client, rng *rand.Rand) {
	for n := 0; pause(l.stopped, time.Duration(rng.Int64N(int64(2*l.o.Think)))); n++ {
		op := history.Op{Client: id, Topic: l.names.pick(rng)}
		switch p := rng.IntN(10); {
		case p < 3:
			op.Kind, op.Value = history.Create, fmt.Sprintf("%d-%d", id, n)
		case p < 5:
			op.Kind, op.Value = history.Alter, fmt.Sprintf("%d-%d", id, n)
		case p < 6:
			op.Kind = history.Delete
		default:
			op.Kind = history.Describe
		}
		ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
		if op = l.c.Asked.Do(ctx, cl.Admin(), op); op.Answer == history.Unknown {
			l.names.spoilt(op.Topic)
		}
		cancel()
	}
}

// Verify reads everything back once the cluster is quiet: each topic that was ever asked about, which completes the
// history, and the records of each stream.
func (l *Load) Verify() {
	l.c.T.Helper()
	admin := l.c.Client().Admin()
	seen := make(map[string]bool)
	for _, op := range l.c.Asked.Ops() {
		if seen[op.Topic] {
			continue
		}
		seen[op.Topic] = true
		ctx, cancel := context.WithTimeout(context.Background(), operationWithin)
		read := l.c.Asked.Do(ctx, admin, history.Op{Client: l.o.Clients, Topic: op.Topic, Kind: history.Describe})
		cancel()
		if read.Answer == history.Failed {
			l.c.Fatalf("a quiet cluster does not describe %s: %v", op.Topic, read.Err)
		}
	}
	for _, s := range l.streams {
		s.verify()
	}
}

// maxUnknown is how many unknown outcomes one name may have: each of them is under way for ever in the eyes of the
// judge, whose work doubles with each.
const maxUnknown = 3

// names are the topic names in use. One that has too many unknown outcomes is replaced.
type names struct {
	mu      sync.Mutex
	slots   []string
	unknown map[string]int
	next    int
}

func newNames(n int) *names {
	s := &names{unknown: make(map[string]int)}
	for range n {
		s.slots = append(s.slots, s.fresh())
	}
	return s
}

func (s *names) fresh() string {
	s.next++
	return fmt.Sprintf("t%d", s.next)
}

func (s *names) pick(rng *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[rng.IntN(len(s.slots))]
}

func (s *names) spoilt(name string) {
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
