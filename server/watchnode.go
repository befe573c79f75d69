package server

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/wire"
)

// What one node gives to those who watch it.
const (
	maxWatchers    = 256
	maxWatchWait   = 30 * time.Second
	maxWatchEvents = 1000
	maxWatchBytes  = 1 << 20               // of events in one answer, about
	watchPace      = 50 * time.Millisecond // between a request and its answer, but for the first and for a backlog
	watchRecheck   = time.Second           // how long a change of state that nobody reported can stay unseen
)

// watchNode follows this node. The request waits without a goroutine until there is something to tell.
func (s *Server) watchNode(ctx context.Context, r *mux.Request) {
	var req wire.WatchNodeRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	s.watches.follow(ctx, req, func(resp wire.WatchNodeResponse, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(resp))
	})
}

// watches are the long polls on one node's journal and state. Appending to the journal costs them one atomic load while
// nobody waits. A poll is looked at on the pool when its time has come or something may have happened, and waits on as
// long as there is no news; at most one answer in watchPace is given to each, so that a storm of events comes in pages.
//
// The zero watches takes wakes and no polls.
type watches struct {
	source watchSource

	generation atomic.Uint64 // counts the wakes
	idle       atomic.Int64  // polls that a wake would move

	mu      sync.Mutex
	parked  map[*poll]struct{}
	open    int // polls that wait or are being looked at
	closed  bool
	current watchedState
}

// watchSource is what is watched.
type watchSource struct {
	node    base.NodeID
	boot    uint64
	cluster base.ClusterID
	journal *telemetry.Journal
	state   func() wire.WatchedState // as of now
	run     func(func()) error       // on a goroutine that may block

	counters func(time.Time) *wire.NodeCounters // as of about now; nil while there are none
}

// poll is one request.
type poll struct {
	w        *watches
	ctx      context.Context // the connection's
	req      wire.WatchNodeRequest
	answer   func(wire.WatchNodeResponse, error) // once
	earliest time.Time                           // of an answer that is no backlog
	until    time.Time                           // an answer comes in any case
	timer    *time.Timer                         // while it is parked
	due      bool                                // its timer stands at earliest, and nothing makes it come sooner
	forget   func() bool                         // the connection's end no longer matters
}

// begin opens the watches; until then nobody can ask.
func (w *watches) begin(source watchSource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.source, w.parked = source, make(map[*poll]struct{})
}

// follow takes a poll. answer is called once, on any goroutine.
func (w *watches) follow(ctx context.Context, req wire.WatchNodeRequest, answer func(wire.WatchNodeResponse, error)) {
	now := time.Now()
	p := &poll{w: w, ctx: ctx, req: req, answer: answer, earliest: now.Add(watchPace), until: now.Add(watchWait(req.WaitMs))}
	if p.req.MaxEvent <= 0 || p.req.MaxEvent > maxWatchEvents {
		p.req.MaxEvent = maxWatchEvents
	}
	if p.req.Boot != w.source.boot { // the first one, or the node has started anew since
		p.earliest = now
		if p.req.Boot != 0 {
			p.req.From = 0
		}
		p.req.Seen = 0
	}
	if err := w.admit(); err != nil {
		answer(wire.WatchNodeResponse{}, err)
		return
	}
	p.forget = context.AfterFunc(ctx, p.abandon)
	p.start()
}

// watchWait is how long a request waits that asks to; a product that overflows is none.
func watchWait(ms int64) time.Duration {
	return min(max(time.Duration(ms), 0), maxWatchWait/time.Millisecond) * time.Millisecond
}

func (w *watches) admit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return base.Errorf(base.CodeShuttingDown, "watch node", "the broker is stopping")
	case w.open >= maxWatchers:
		return base.Errorf(base.CodeBusy, "watch node", "%d watch this node already", w.open)
	}
	w.open++
	return nil
}

// wake says that there may be something new. It does not block.
func (w *watches) wake() {
	w.generation.Add(1)
	if w.idle.Load() == 0 {
		return
	}
	for _, p := range w.stir(time.Now()) {
		p.start()
	}
}

// changed says that the state may be another.
func (w *watches) changed() {
	w.current.stale.Store(true)
	w.wake()
}

// stir takes out the polls that may be answered now, and has the others come as soon as they may.
func (w *watches) stir(now time.Time) (ready []*poll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.parked {
		switch {
		case p.due:
		case now.Before(p.earliest) && !w.closed:
			w.idle.Add(-1)
			p.due = true
			p.timer.Reset(p.earliest.Sub(now))
		default:
			w.removeLocked(p)
			ready = append(ready, p)
		}
	}
	return ready
}

func (w *watches) removeLocked(p *poll) {
	delete(w.parked, p)
	if !p.due {
		w.idle.Add(-1)
	}
	p.timer.Stop()
}

// take removes a parked poll and reports whether it was: whoever gets it goes on with it.
func (w *watches) take(p *poll) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.parked[p]; !ok {
		return false
	}
	w.removeLocked(p)
	return true
}

// park lets a poll wait until a time, unless something may have happened since generation was read.
func (w *watches) park(p *poll, until time.Time, due bool, generation uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.parked[p] = struct{}{}
	p.timer = time.AfterFunc(time.Until(until), p.expire)
	if p.due = due; due {
		return true
	}
	w.idle.Add(1) // before the generation is read again: either a wake sees the poll, or this its generation
	if w.generation.Load() != generation {
		w.removeLocked(p)
		return false
	}
	return true
}

// close answers all polls with what there is, and takes no more.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	var all []*poll
	for p := range w.parked {
		w.removeLocked(p)
		all = append(all, p)
	}
	w.mu.Unlock()
	for _, p := range all {
		p.start()
	}
}

func (w *watches) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// start looks at the poll on the pool.
func (p *poll) start() {
	if err := p.w.source.run(p.look); err != nil {
		p.finish(wire.WatchNodeResponse{}, err)
	}
}

func (p *poll) expire() {
	if p.w.take(p) {
		p.start()
	}
}

// abandon ends a poll whose connection is gone. One that is being looked at finds out by itself, before it is parked.
func (p *poll) abandon() {
	if p.w.take(p) {
		p.finish(wire.WatchNodeResponse{}, base.Errorf(base.CodeCanceled, "watch node", "the connection has ended"))
	}
}

func (p *poll) finish(resp wire.WatchNodeResponse, err error) {
	p.forget()
	p.w.mu.Lock()
	p.w.open--
	p.w.mu.Unlock()
	p.answer(resp, err)
}

// look answers the poll, or lets it wait.
func (p *poll) look() {
	for {
		generation := p.w.generation.Load()
		now := time.Now()
		resp, more := p.compose(now)
		news := len(resp.Events) > 0 || resp.Lost > 0 || resp.State != nil || resp.Counters != nil
		wait := earlier(now.Add(watchRecheck), p.until)
		if p.req.Counters {
			wait = earlier(wait, p.countersDue(now))
		}
		if news {
			wait = earlier(p.earliest, p.until)
		}
		if more || !now.Before(wait) || p.w.isClosed() {
			p.finish(resp, nil)
			return
		}
		if p.w.park(p, wait, news, generation) {
			break
		}
	}
	if p.ctx.Err() != nil {
		p.abandon()
	}
}

func (w *watches) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// compose is the answer as of now; more says that there is so much to tell that the next should be asked for at once.
func (p *poll) compose(now time.Time) (resp wire.WatchNodeResponse, more bool) {
	src := &p.w.source
	from := min(p.req.From, src.journal.End()) // no number that is yet to come can have been seen
	page := src.journal.Since(from, p.req.MaxEvent)
	resp = wire.WatchNodeResponse{
		Node: src.node, Boot: src.boot, Cluster: src.cluster, ObservedMs: now.UnixMilli(), Next: page.Next, Lost: page.Missed,
	}
	size := 0
	for i, e := range page.Events {
		if size > maxWatchBytes {
			resp.Next = page.Events[i].Seq
			break
		}
		we := wireEvent(e)
		size += len(we.Subject) + len(we.Detail) + len(we.Before) + len(we.After) + 64
		resp.Events = append(resp.Events, we)
	}
	more = len(resp.Events) > 0 && resp.Next < src.journal.End()
	resp.More = more
	version, state := p.w.current.get(now, src.state)
	resp.StateVersion = version
	if version != p.req.Seen {
		resp.State = state
	}
	if p.req.Counters && src.counters != nil && !now.Before(p.countersDue(now)) {
		resp.Counters = src.counters(now)
	}
	return resp, more
}

// countersDue is when the counters are to be told next. A time that is yet to come is none that they were told at.
func (p *poll) countersDue(now time.Time) time.Time {
	counted := time.UnixMilli(p.req.Counted)
	if counted.After(now) {
		return now
	}
	return counted.Add(countEvery)
}

// watchedState keeps the state that was looked at last, and counts its changes.
type watchedState struct {
	stale atomic.Bool // somebody said that it has changed

	mu      sync.Mutex
	at      time.Time
	version uint64
	encoded []byte
	state   *wire.WatchedState // read only
}

// get is the state of this moment, or of one watchPace ago at most if nobody reported a change since.
func (c *watchedState) get(now time.Time, look func() wire.WatchedState) (uint64, *wire.WatchedState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale.Swap(false) && c.state != nil && now.Sub(c.at) < watchPace {
		return c.version, c.state
	}
	state := look()
	c.at = now
	if encoded := wire.Encode(state); c.state == nil || !bytes.Equal(encoded, c.encoded) {
		c.version++
		c.encoded, c.state = encoded, &state
	}
	return c.version, c.state
}
