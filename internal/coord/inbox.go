package coord

import (
	"context"
	"slices"
	"sync"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// maxAsking is how many callers of RequestRoll a loop keeps waiting; more get CodeBusy and ask again.
const maxAsking = 16_384

// inbox is where other goroutines leave what a loop should look at. What is noted twice is noted once, so its size is
// bounded by what exists, and nobody who leaves something ever waits.
type inbox struct {
	wake chan struct{} // capacity 1
	ctx  context.Context

	mu      sync.Mutex
	letters letters
	asking  int
	figures Status // as of the loop's last turn
	stuck   []Stuck
}

// letters is all that came since the loop looked last.
type letters struct {
	segments map[base.SegmentID]base.RangeRef // to be told anew, to whoever holds them
	trims    map[base.RangeRef][]base.Replica
	deletes  map[base.TopicID]bool
	topics   map[base.TopicID]bool // created (true) or altered: every active segment is told, retention looked at
	touched  map[base.TopicID]bool // segments changed: retention looked at
	asks     []*ask
	openings []*opening
	givenUp  []*opening
	told     []told
	fenced   []fenced
	held     []held // what nodes have, by range
	wants    map[base.RangeRef]bool
	nodes    bool // what is known of the nodes may have changed
	rescan   bool // the state was replaced as a whole
}

// ask is one caller of RequestRoll or Seal.
type ask struct {
	req    RollRequest
	order  bool            // the segment's leader is to be asked to end it
	ctx    context.Context // the caller's
	answer chan rollAnswer // capacity 1
}

type rollAnswer struct {
	assignment meta.Assignment
	err        error
}

func newInbox(ctx context.Context) *inbox { return &inbox{wake: make(chan struct{}, 1), ctx: ctx} }

func (b *inbox) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox.
func (b *inbox) take() letters {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.letters
	b.letters = letters{}
	return l
}

// keep files what the loop itself looks at again later: it is no news that would wake it at once.
func (b *inbox) keep(write func(*letters)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	write(&b.letters)
}

// note files what a shard has applied.
func (b *inbox) note(events []meta.Event) {
	b.mu.Lock()
	if len(events) == 0 {
		b.letters.rescan = true
	}
	for i := range events {
		b.letters.file(&events[i])
	}
	b.mu.Unlock()
	b.nudge()
}

func (l *letters) file(e *meta.Event) {
	ref := base.RangeRef{Topic: e.Topic, Range: e.Range}
	switch e.Type {
	case meta.EventTopicCreated:
		put(&l.topics, e.Topic, true)
	case meta.EventTopicAltered:
		put(&l.topics, e.Topic, l.topics[e.Topic])
	case meta.EventSegmentSealed:
		put(&l.segments, e.Segment, ref)
		put(&l.segments, e.Next, ref)
		put(&l.touched, e.Topic, true)
	case meta.EventRangeTrimmed:
		put(&l.trims, ref, union(l.trims[ref], e.Holders))
		put(&l.touched, e.Topic, true)
	case meta.EventTopicDeleted:
		put(&l.deletes, e.Topic, true)
	case meta.EventTopicGone, meta.EventProducerOpened, meta.EventClusterCreated, meta.EventNodeRegistered, meta.EventNodeRefused, meta.EventNodeState,
		meta.EventShardRecovered:
	}
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

func union(a, b []base.Replica) []base.Replica {
	for _, r := range b {
		if !slices.Contains(a, r) {
			a = append(a[:len(a):len(a)], r)
		}
	}
	return a
}

// ask leaves a request and waits for its answer.
func (b *inbox) ask(ctx context.Context, a *ask) (meta.Assignment, error) {
	const op = "roll segment"
	a.ctx, a.answer = ctx, make(chan rollAnswer, 1)
	b.mu.Lock()
	if b.asking >= maxAsking {
		b.mu.Unlock()
		return meta.Assignment{}, base.Errorf(base.CodeBusy, op, "%d segments wait for a roll already", maxAsking)
	}
	b.asking++
	b.letters.asks = append(b.letters.asks, a)
	b.mu.Unlock()
	b.nudge()
	defer func() {
		b.mu.Lock()
		b.asking--
		b.mu.Unlock()
	}()
	select {
	case r := <-a.answer:
		return r.assignment, r.err
	case <-ctx.Done():
		return meta.Assignment{}, base.Wrap(base.CodeTimeout, op, context.Cause(ctx)).WithOutcome(base.Unknown)
	case <-b.ctx.Done():
		return meta.Assignment{}, base.Wrap(base.CodeNotLeader, op, context.Cause(b.ctx)).WithOutcome(base.Unknown)
	}
}

// deliver files an answer that came from a node.
func (b *inbox) deliver(f func(*letters)) {
	b.mu.Lock()
	f(&b.letters)
	b.mu.Unlock()
	b.nudge()
}

func (b *inbox) publish(s Status, stuck []Stuck) {
	b.mu.Lock()
	b.figures, b.stuck = s, stuck
	b.mu.Unlock()
}

func (b *inbox) stuckOnes() []Stuck {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stuck
}

func (b *inbox) status(shard base.ShardID) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.figures
	s.Shard, s.Waiting = shard, b.asking
	return s
}
