package dataplane

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/rangestate"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/telemetry"
)

// Log is what a plane needs of the node's store. The callbacks may come from any goroutine; see package store.
type Log interface {
	appender
	catalogue
}

// appender is the write path.
type appender interface {
	Append(seg base.SegmentID, b store.Batch, done func(end int64, err error)) error
	Publish(seg base.SegmentID, commit int64)
}

// catalogue is the life of segments.
type catalogue interface {
	OpenSegment(spec store.SegmentSpec, done func(error)) error
	Seal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error
	ForceSeal(seg base.SegmentID, end int64, cause base.Cause, done func(error)) error
	HoldSealed(spec store.SegmentSpec, end int64, cause base.Cause, done func(error)) error
	Mend(seg base.SegmentID, batches []store.Batch) error // blocks on the disk
	DropSegments(ref base.RangeRef, segs []base.SegmentID, done func(error)) error
	DropTopic(topic base.TopicID, done func(error)) error
	Fence(ref base.RangeRef, epoch base.Epoch, seg base.SegmentID, done func(store.FenceAnswer, error)) error
	Info(seg base.SegmentID) (store.SegmentInfo, bool)
	Segments(ref base.RangeRef) []store.SegmentInfo
	RangeState(seg base.SegmentID) (*rangestate.State, error) // blocks on the disk
	HeldState(seg base.SegmentID) (*rangestate.State, bool)   // false: it lies on the disk
}

// Options say who the node is, what it may use and whom it asks. Zero limits get the defaults named here.
type Options struct {
	Node base.NodeID
	Disk base.DiskID
	Boot uint64
	Log  Log

	// RequestRoll asks the coordinator and returns the successor's assignment. It may block until ctx ends.
	RequestRoll func(ctx context.Context, r RollRequest) (meta.Assignment, error)

	// LoadState asks a replica of an earlier segment, on another node, what the range remembers at end: rangestate's
	// encoding. It may block until ctx ends. nil: there are no other nodes.
	LoadState func(ctx context.Context, from base.Replica, ref base.RangeRef, seg base.SegmentID, end int64) ([]byte, error)

	// FetchTail asks another replica of a sealed segment for what the copy here is short of. It may block until ctx ends.
	// nil: there are no other nodes.
	FetchTail func(ctx context.Context, from base.Replica, q TailRequest) (store.Tail, error)

	Links Links // to the other replicas; nil: there are no other nodes

	// Replaceable reports whether a fit set of min_replicas is there for a segment's successor without the nodes that are
	// late. It must not block. nil: always.
	Replaceable func(asg meta.Assignment, late []base.NodeID) bool

	MaxBatchBytes  int           // larger batches are refused; default 10 MiB
	ReplicaTimeout time.Duration // default 750 ms
	MaxWait        time.Duration // deadline of appends that have none or a later one; default 30 s

	CreditBytes     int64 // in flight per segment; default 16 MiB
	NodeCreditBytes int64 // in flight over the whole node; default 128 MiB
	WaitingBytes    int64 // of appends that wait, over the whole node; default 64 MiB
	HeldBytes       int64 // of what other nodes' leaders have sent and the log has not taken, over the whole node; default 64 MiB

	SegmentIdle time.Duration // a segment without appends for so long is sealed; 0 = never
	RetireAfter time.Duration // a leader without appends for so long gives its memory back; default 1 min

	Logger  *slog.Logger
	Metrics *telemetry.Registry
	OnFatal func(error) // a range's state cannot be trusted any more: the process must stop; called at most once
	OnRoll  func(Rolled)
	OnCopy  func(CopyChange)
}

// Rolled reports that appends of a range go on in a new segment.
type Rolled struct {
	Ref    base.RangeRef
	Topic  string
	Opened base.SegmentID
	Sealed base.SegmentID // its predecessor
	End    int64          // where that ended
	Cause  base.Cause
	Gap    time.Duration // how long appends could not be taken
}

func (o *Options) ensureDefaults() {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	defDur := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.MaxBatchBytes <= 0 {
		o.MaxBatchBytes = 10 << 20
	}
	def(&o.CreditBytes, 16<<20)
	def(&o.NodeCreditBytes, 128<<20)
	def(&o.WaitingBytes, 64<<20)
	def(&o.HeldBytes, 64<<20)
	defDur(&o.ReplicaTimeout, 750*time.Millisecond)
	defDur(&o.MaxWait, 30*time.Second)
	defDur(&o.RetireAfter, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = telemetry.NewRegistry()
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	if o.LoadState == nil {
		o.LoadState = func(_ context.Context, from base.Replica, _ base.RangeRef, _ base.SegmentID, _ int64) ([]byte, error) {
			return nil, base.Errorf(base.CodeUnreachable, opState, "node %s is not known here", from.Node)
		}
	}
	if o.FetchTail == nil {
		o.FetchTail = func(_ context.Context, from base.Replica, _ TailRequest) (store.Tail, error) {
			return store.Tail{}, base.Errorf(base.CodeUnreachable, opMend, "node %s is not known here", from.Node)
		}
	}
	if o.OnCopy == nil {
		o.OnCopy = func(CopyChange) {}
	}
	if o.Links == nil {
		o.Links = noLinks{}
	}
	if o.OnRoll == nil {
		o.OnRoll = func(Rolled) {}
	}
}

// Plane leads and holds the segments that the coordinator assigned to this node.
type Plane struct {
	o       Options
	log     Log
	metrics metrics
	born    time.Time

	mu struct {
		sync.RWMutex
		actors    map[base.RangeRef]*actor
		strangers int // actors of ranges that a client has asked for and no coordinator has told us about
		deleted   map[base.TopicID]struct{}
	}
	watched struct {
		sync.Mutex
		set map[*actor]struct{}
	}
	wake chan struct{} // capacity 1: watched is not empty

	links struct {
		sync.Mutex
		leads   map[base.NodeID]map[*actor]struct{} // who leads a segment that a node follows
		changed map[base.NodeID]struct{}            // whose link has changed
	}
	linkWake chan struct{} // capacity 1: links.changed is not empty
	warnedMs atomic.Int64  // of the plane's life, that a message was not understood; 0 = never

	credit credit
	fed    chan struct{} // capacity 1: there is credit for who waits for it
	late   lateBook

	heardMs atomic.Int64 // of the plane's life, when a follower acked something last

	mends    mender        // copies that are short of their segments' ends
	held     held          // bytes of what leaders have sent and nothing has taken yet
	waiting  atomic.Int64  // bytes of appends that wait
	inFlight atomic.Int64  // batches whose disk has not answered yet
	landed   chan struct{} // capacity 1: inFlight fell to zero while closing
	leads    atomic.Int64  // actors that lead
	closing  atomic.Bool
	leaving  atomic.Bool // the node is about to stop, and opens nothing new
	closed   sync.Once
	fatal    sync.Once

	ctx    context.Context
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup // the watchdog, roll requests, and states that are read or loaded
	reads  reads          // of this node's disk
	rolls  chan struct{}  // one token per roll request under way
	loads  chan struct{}  // one token per state that is being loaded
}

const (
	maxStrangers = 1024             // what clients can make a plane remember by asking for ranges that are not here
	maxDeleted   = 10_000           // topics remembered as deleted, so that a late append hears it at once
	maxRolls     = 256              // roll requests under way
	maxLoads     = 64               // states being loaded from other nodes
	closeWithin  = 10 * time.Second // how long Close waits for the disk
)

var errClosed = errors.New("the data plane is closing")

// New makes a plane that knows nothing yet.
func New(o Options) *Plane {
	o.ensureDefaults()
	p := &Plane{
		o: o, log: o.Log, metrics: newMetrics(o.Metrics), born: time.Now(),
		wake: make(chan struct{}, 1), linkWake: make(chan struct{}, 1), fed: make(chan struct{}, 1), landed: make(chan struct{}, 1), rolls: make(chan struct{}, maxRolls),
		loads: make(chan struct{}, maxLoads),
	}
	p.held.limit = o.HeldBytes
	p.mends.init()
	p.mu.actors = make(map[base.RangeRef]*actor)
	p.mu.deleted = make(map[base.TopicID]struct{})
	p.watched.set = make(map[*actor]struct{})
	p.links.leads = make(map[base.NodeID]map[*actor]struct{})
	p.links.changed = make(map[base.NodeID]struct{})
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// Start begins to watch deadlines, ages and idleness. The store has been recovered and fenced before.
func (p *Plane) Start(context.Context) error {
	p.tasks.Go(p.watchdog)
	return nil
}

// Leave says that the node is about to stop: it goes on with what it leads and opens nothing new. A segment that is
// assigned to it still is confirmed as one that it will not lead, so that the range goes on at another node at once.
func (p *Plane) Leave() { p.leaving.Store(true) }

// Leaving reports whether Leave was called.
func (p *Plane) Leaving() bool { return p.leaving.Load() }

// Close answers what waits, finishes what is on its way to the disk, and returns when no callback is left to come.
// It may be called twice; both calls return when it is done.
func (p *Plane) Close() error {
	p.closed.Do(p.close)
	return nil
}

func (p *Plane) close() {
	p.closing.Store(true)
	stopping := base.Errorf(base.CodeShuttingDown, opAppend, "the broker is stopping")
	// Each actor takes one more turn. After it no turn is left that began before closing was set, so nothing more
	// enters the log and no roll request starts.
	p.turns(func(a *actor) { a.failWaiting(stopping) })
	patience := time.NewTimer(closeWithin) // a hung disk; what it holds is neither acked nor refused
	defer patience.Stop()
	for landed := true; landed && p.inFlight.Load() > 0; { // an early zero may have left a token
		select {
		case <-p.landed:
		case <-patience.C:
			landed = false
		}
	}
	p.cancel(errClosed)
	p.tasks.Wait()
	// No roll is answered and no deadline watched any more: what a frozen segment holds, or got back from one, stays so.
	p.turns(func(a *actor) { a.abandon(stopping) })
}

// turns gives every actor a turn and waits until all have had it.
func (p *Plane) turns(run func(*actor)) {
	var left sync.WaitGroup
	for _, a := range p.all() {
		left.Add(1)
		a.do(func(time.Time) {
			defer left.Done()
			run(a)
		})
	}
	left.Wait()
}

// post gives an event to a range's actor, which is made if there is none. Only strangers can be too many.
func (p *Plane) post(ref base.RangeRef, e event) error {
	a, err := p.actorFor(ref, true)
	if err == nil {
		a.box.post(e)
	}
	return err
}

// find returns a range's actor, or nil.
func (p *Plane) find(ref base.RangeRef) *actor {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.mu.actors[ref]
}

// actorFor returns a range's actor, made if there is none. It is a stranger when only a client asks for it.
func (p *Plane) actorFor(ref base.RangeRef, stranger bool) (*actor, error) {
	if a := p.find(ref); a != nil {
		return a, nil
	}
	if p.closing.Load() {
		return nil, base.Errorf(base.CodeShuttingDown, opAppend, "the broker is stopping")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.mu.actors[ref]; a != nil {
		return a, nil
	}
	if _, deleted := p.mu.deleted[ref.Topic]; deleted {
		return nil, base.Errorf(base.CodeTopicNotFound, opAppend, "topic %s was deleted", ref.Topic)
	}
	a := newActor(p, ref)
	if stranger {
		if p.mu.strangers >= maxStrangers {
			return nil, base.Errorf(base.CodeNotReplica, opAppend, "range %s is not on this node", ref)
		}
		a.stranger = true
		p.mu.strangers++
	}
	p.mu.actors[ref] = a
	return a, nil
}

// adopted says, in an actor's turn, that it is no stranger any more.
func (p *Plane) adopted(a *actor) {
	if !a.stranger {
		return
	}
	a.stranger = false
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.strangers--
}

// remove forgets an actor, in its own turn. Events that reach it later are passed on; see actor.on.
func (p *Plane) remove(a *actor) {
	p.adopted(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.actors, a.ref)
}

func (p *Plane) all() []*actor {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.mu.actors))
}

// reserve counts an append among those that wait, or refuses it: overload is answered, not hidden.
func (p *Plane) reserve(size int) error {
	if p.closing.Load() {
		return base.Errorf(base.CodeShuttingDown, opAppend, "the broker is stopping")
	}
	if p.waiting.Add(int64(size)) > p.o.WaitingBytes {
		p.waiting.Add(-int64(size))
		p.metrics.busy.Inc()
		return base.Errorf(base.CodeBusy, opAppend, "%d MiB of appends wait already", p.o.WaitingBytes>>20)
	}
	return nil
}

func (p *Plane) unreserve(size int) { p.waiting.Add(-int64(size)) }

// began and finished count what the disk has still to answer.
func (p *Plane) began() { p.inFlight.Add(1) }

func (p *Plane) finished() {
	if p.inFlight.Add(-1) == 0 && p.closing.Load() {
		mark(p.landed)
	}
}

// roller runs one roll request on the bounded pool, or reports that the pool is full.
func (p *Plane) roller(run func(ctx context.Context)) bool { return p.spawn(p.rolls, run) }

// spawn runs something that may block on a goroutine of its own, if there is a token left for it.
func (p *Plane) spawn(tokens chan struct{}, run func(ctx context.Context)) bool {
	if p.closing.Load() {
		return false
	}
	select {
	case tokens <- struct{}{}:
	default:
		return false
	}
	p.tasks.Go(func() {
		defer func() { <-tokens }()
		run(p.ctx)
	})
	return true
}

// fail reports that a range's state cannot be trusted: metadata contradicts what was acked, or a turn ended halfway. The
// first report counts.
func (p *Plane) fail(err error) {
	p.o.Logger.Error("a range cannot go on", "error", err)
	p.fatal.Do(func() { p.o.OnFatal(err) })
}
