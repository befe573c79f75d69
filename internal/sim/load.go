package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/history"
	"github.com/eastguard/eastguard/sdk"
)

// LoadOptions say what clients do.
type LoadOptions struct {
	Clients int           // that change and read topics; 3, or none where negative
	Topics  int           // names in use at once; 6
	Think   time.Duration // between two operations of a client, on average; 300 ms
	Streams StreamOptions // topics that are written and read; none
}

// Load is clients at work.
type Load struct {
	c       *Cluster
	o       LoadOptions
	stopped chan struct{}
	once    sync.Once
	clients sync.WaitGroup
	names   *history.Names
	streams []*stream
}

// operationWithin is how long a client waits for the answer to one operation.
const operationWithin = 5 * time.Second

// StartLoad sets clients to work.
func (c *Cluster) StartLoad(o LoadOptions) *Load {
	c.T.Helper()
	o.Clients = cmp.Or(o.Clients, 3)
	o.Topics = cmp.Or(o.Topics, 6)
	o.Think = cmp.Or(o.Think, 300*time.Millisecond)
	l := &Load{c: c, o: o, stopped: make(chan struct{}), names: history.NewNames(o.Topics)}
	c.loads = append(c.loads, l)
	for i := range max(0, o.Clients) {
		cl, rng := c.Client(), rand.New(rand.NewPCG(c.Rand.Uint64(), uint64(i)))
		l.clients.Go(func() {
			c.Asked.Work(l.stopped, history.Worker{Client: i, Admin: cl.Admin(), Names: l.names, Rand: rng, Think: o.Think, Within: operationWithin})
		})
	}
	for range o.Streams.Topics {
		l.stream(o.Streams)
	}
	return l
}

// stream sets a topic's writers and readers to work.
func (l *Load) stream(o StreamOptions) {
	o.Ranges = cmp.Or(o.Ranges, 2)
	o.Factor = cmp.Or(o.Factor, 1)
	o.Writers = cmp.Or(o.Writers, 1)
	o.Every = cmp.Or(o.Every, 200*time.Millisecond)
	o.Burst = cmp.Or(o.Burst, 1)
	o.ValueBytes = cmp.Or(o.ValueBytes, 32)
	c := l.c
	s := &stream{c: c, o: o, topic: fmt.Sprintf("stream-%d", len(l.streams)), client: c.Client()}
	var readers []*sdk.Client
	for range o.Readers {
		readers = append(readers, c.Client())
	}
	rngs := make([]*rand.Rand, o.Writers)
	for i := range rngs {
		rngs[i] = rand.New(rand.NewPCG(c.options.Seed, uint64(100*len(l.streams)+i)))
	}
	l.streams = append(l.streams, s)
	l.clients.Go(func() {
		if !s.make(l.stopped) {
			return
		}
		for i, rng := range rngs {
			l.clients.Go(func() { s.write(l.stopped, i, rng) })
		}
		for i, client := range readers {
			from := sdk.ReadNearest()
			if i%2 == 1 {
				from = sdk.ReadNode(base.NodeID(c.nodes[i%len(c.nodes)].Name))
			}
			l.clients.Go(func() { s.read(l.stopped, fmt.Sprintf("%s/%d", s.topic, i), client, from) })
		}
	})
}

// Stop lets the clients finish what they are at, and waits for them. It may be called twice.
func (l *Load) Stop() {
	l.once.Do(func() { close(l.stopped) })
	l.clients.Wait()
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
		if err := s.passes(); err != nil {
			l.c.Fatalf("%v", err)
		}
	}
	l.c.Audit()
}

// Served waits until every stream acks again.
func (l *Load) Served(within time.Duration) {
	l.c.T.Helper()
	for _, s := range l.streams {
		before := s.acked.Load()
		l.c.Await(within, s.topic+" is written", func() bool { return s.acked.Load() > before })
	}
}
