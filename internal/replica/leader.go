package replica

import (
	"slices"
	"sort"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/invariant"
)

// Config is what a leader is told once, when its segment is opened.
type Config struct {
	Self      base.NodeID
	Followers []base.NodeID // the other replicas; none on one node
	Base      int64         // offset of the segment's first record
	Credit    int64         // bytes in flight before producers wait; 0 = 16 MiB
	Timeout   time.Duration // replica_timeout_ms: how long a replica may stand still; 0 = 750 ms
	ReAsk     time.Duration // how often an unanswered roll is asked for again; 0 = 200 ms
	Redial    time.Duration // how long a follower's link may be down before the follower is lost; 0 = 50 ms
}

func (c *Config) ensureDefaults() {
	if c.Credit <= 0 {
		c.Credit = 16 << 20
	}
	if c.Timeout <= 0 {
		c.Timeout = 750 * time.Millisecond
	}
	if c.ReAsk <= 0 {
		c.ReAsk = 200 * time.Millisecond
	}
	if c.Redial <= 0 {
		c.Redial = 50 * time.Millisecond
	}
}

// Leader is one segment's leader. T is whatever the shell keeps per batch; the leader only hands it back.
// It is not safe for concurrent use: its shell gives it one event at a time.
type Leader[T any] struct {
	cfg   Config
	state State

	next   int64 // offset of the next record; Invariant: Base <= commit <= next
	commit int64 // all replicas hold what is below; grows only while acks count (Leading, Draining)
	end    int64 // Frozen: the end asked for, = commit; Sealed: the committed end
	cause  base.Cause
	late   []base.NodeID // who stood still, where that is the cause

	replicas []progress // [0] is the leader's own disk, then the followers in order
	pending  queue[T]   // assigned and not yet handed out in Done, by offset
	inFlight int64      // bytes of the batches in pending that are above commit

	drainFor time.Duration // how long the drain has been watched
	lastTick time.Time     // zero when the leader was never watched
	askedAt  time.Time     // zero until the first ask after a freeze

	ready   Ready[T] // what the next Ready hands out; its slices are reused
	sending []T      // backs the Items of the last Sends
}

// Ready is what a step asks its shell to do, in this order: publish Commit to readers if Advanced, complete Done,
// transmit Sends, ask for the roll, decide about Late. The slices are valid until the next step.
type Ready[T any] struct {
	Advanced bool
	Commit   int64
	Done     []T // committed batches, in offset order
	Sends    []Send[T]
	AskRoll  bool
	Roll     Roll
	Late     []base.NodeID // stood still for the timeout with work before them, this node's own disk too; at each Tick while it holds
}

// Send goes to one follower. No Items means that only the commit is news, so that an idle tail becomes visible
// on followers within one round trip.
type Send[T any] struct {
	Node   base.NodeID
	Items  []T
	Commit int64
}

// Roll is the request to seal the segment: at End, which no longer moves.
type Roll struct {
	End   int64
	Cause base.Cause
	Late  []base.NodeID // replicas that stood still, for CauseReplicaFailure
	Lost  []base.NodeID // followers that will never ack again
}

// NewLeader starts to lead an empty segment. Its followers count as up: the shell reports the links that are not.
func NewLeader[T any](c Config) *Leader[T] {
	c.ensureDefaults()
	l := &Leader[T]{cfg: c, state: Leading, next: c.Base, commit: c.Base, end: -1}
	l.replicas = make([]progress, 0, 1+len(c.Followers))
	l.replicas = append(l.replicas, newProgress(c.Self, c.Base))
	for _, n := range c.Followers {
		l.replicas = append(l.replicas, newProgress(n, c.Base))
	}
	return l
}

// Resume goes on leading a segment of which everything up to next is committed: the shell had dropped an idle
// leader to save memory. Within one process start only; a restarted node never resumes a segment. What became of the
// followers' links meanwhile the shell reports as for a new leader.
func Resume[T any](c Config, next int64) *Leader[T] {
	l := NewLeader[T](c)
	l.next, l.commit = next, next
	for i := range l.replicas {
		l.replicas[i] = newProgress(l.replicas[i].node, next)
	}
	return l
}

// State says where in its life the leader is.
func (l *Leader[T]) State() State { return l.state }

// Next is the offset that the next batch will begin at.
func (l *Leader[T]) Next() int64 { return l.next }

// Commit is the offset below which every replica holds everything.
func (l *Leader[T]) Commit() int64 { return l.commit }

// End is the frozen or sealed end; -1 while the segment can still grow.
func (l *Leader[T]) End() int64 { return l.end }

// Cause is why the segment ends or ended; CauseNone while no reason was given here.
func (l *Leader[T]) Cause() base.Cause { return l.cause }

// Idle reports whether a leader that can still grow has nothing in flight and waits for no link, so that its shell may
// stop its ticks, or drop it.
func (l *Leader[T]) Idle() bool {
	return l.state == Leading && l.pending.len() == 0 && !slices.ContainsFunc(l.replicas[1:], func(p progress) bool {
		return p.link == linkDown || p.link == linkUp && p.told != l.commit
	})
}

// Lost lists the followers that will never ack again.
func (l *Leader[T]) Lost() []base.NodeID {
	var lost []base.NodeID
	for i := range l.replicas {
		if l.replicas[i].link == linkLost {
			lost = append(lost, l.replicas[i].node)
		}
	}
	return lost
}

// crippled reports whether some follower is lost, so that nothing appended from now on could be committed.
func (l *Leader[T]) crippled() bool {
	return slices.ContainsFunc(l.replicas, func(p progress) bool { return p.link == linkLost })
}

// Room reports whether a batch of so many bytes may be appended now: the state allows it, every replica can still ack
// it, and the credit covers it. One batch is always let in, however large, or it never would be.
func (l *Leader[T]) Room(bytes int) bool {
	return l.state == Leading && !l.crippled() && (l.inFlight == 0 || l.inFlight+int64(bytes) <= l.cfg.Credit)
}

// Append assigns the next offsets to a batch and returns the first of them. The caller has asked Room, and
// FreezeIfLost before it.
func (l *Leader[T]) Append(records, bytes int, item T) int64 {
	if l.state != Leading || l.crippled() || records <= 0 {
		panic("replica: append to a leader in state " + l.state.String())
	}
	first := l.next
	l.next += int64(records)
	l.inFlight += int64(bytes)
	l.pending.push(entry[T]{base: first, end: l.next, bytes: int64(bytes), item: item})
	return first
}

// Tail lists what is pending, in offset order. On a sealed leader these are the batches above the committed end:
// they were never acked and belong to the successor, or to nobody.
func (l *Leader[T]) Tail() []T {
	items := make([]T, 0, l.pending.len())
	for _, e := range l.pending.all() {
		items = append(items, e.item)
	}
	return items
}

// Each calls visit with each pending item, in offset order, until it returns false.
func (l *Leader[T]) Each(visit func(T) bool) {
	for _, e := range l.pending.all() {
		if !visit(e.item) {
			return
		}
	}
}

// Find returns the pending batch that begins at first, for a duplicate that must wait for the original.
func (l *Leader[T]) Find(first int64) (item T, ok bool) {
	all := l.pending.all()
	i := sort.Search(len(all), func(i int) bool { return all[i].base >= first })
	if i < len(all) && all[i].base == first {
		return all[i].item, true
	}
	return item, false
}

// Ready hands out what the steps since the last call have come to. An empty Ready is the common case between acks.
func (l *Leader[T]) Ready() Ready[T] {
	l.collectSends()
	r := l.ready
	l.ready = Ready[T]{Commit: l.commit, Done: r.Done[:0], Sends: r.Sends[:0], Late: r.Late[:0]}
	if invariant.Enabled {
		if err := l.Check(); err != nil {
			invariant.Check(false, "%v", err)
		}
	}
	return r
}

// collectSends gives each follower what it has not been sent, or the commit alone when that is news.
func (l *Leader[T]) collectSends() {
	clear(l.sending) // the batches may be long gone
	l.sending = l.sending[:0]
	if l.state == Frozen || l.state == Sealed {
		return // what a follower has above the end no longer matters; the seal tells it the rest
	}
	for i := 1; i < len(l.replicas); i++ {
		p := &l.replicas[i]
		if p.link != linkUp || p.sent == l.next && p.told == l.commit {
			continue
		}
		from := len(l.sending)
		for _, e := range l.pending.from(p.sent) {
			l.sending = append(l.sending, e.item)
		}
		p.sent, p.told = l.next, l.commit
		l.ready.Sends = append(l.ready.Sends, Send[T]{Node: p.node, Commit: l.commit, Items: l.sending[from:len(l.sending):len(l.sending)]})
	}
}

// minAcked is the commit rule: the minimum over all replicas, the leader's own fsync among them. A follower that is
// lost goes on counting: an ack is a promise that *every* replica of the segment holds the batch.
func (l *Leader[T]) minAcked() int64 {
	low := l.replicas[0].acked
	for _, p := range l.replicas[1:] {
		low = min(low, p.acked)
	}
	return low
}

// advance moves the commit to what all replicas hold and hands out the batches below it.
func (l *Leader[T]) advance(commit int64) {
	if commit <= l.commit {
		return
	}
	l.commit = commit
	l.ready.Advanced, l.ready.Commit = true, commit
	l.release(commit)
}

// release moves the pending batches below end to Done.
func (l *Leader[T]) release(end int64) {
	for l.pending.len() > 0 && l.pending.front().end <= end {
		e := l.pending.pop()
		l.inFlight -= e.bytes
		l.ready.Done = append(l.ready.Done, e.item)
	}
}
