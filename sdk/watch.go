package sdk

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// WatchOptions says what to watch.
type WatchOptions struct {
	// Since leaves out what happened before; the zero value begins with the oldest that the nodes keep.
	Since time.Time
	// Nodes are the only ones watched; none means all, those that join later included.
	Nodes []NodeID
	// States asks for the state of each node too: at first, and whenever it has changed.
	States bool
	// Counters asks for what each node counts too, once a second.
	Counters bool
	// Hold is how long an event waits for an older one of another node that has not told yet; 0 means 300 ms. Whoever
	// puts events in order as they come wants little of it: most of the time they have is spent in waiting.
	Hold time.Duration
	// Once ends the watch when every node has told what it had kept, instead of waiting for more.
	Once bool
}

// WatchEvent is one thing that a watch saw: one of Event, State, Counters and Gap is set. With WatchOptions.Counters one in
// which none is says that the node is there, though it did not count.
type WatchEvent struct {
	Node NodeID
	// Boot counts the node's starts; Event.Seq counts within one.
	Boot uint64
	// Time is the node's own, but for a gap that this client found.
	Time time.Time

	Event    *Event
	State    *NodeState
	Counters *NodeCounters
	Gap      *WatchGap
}

// WatchGap says that something may have been missed, and why.
type WatchGap struct {
	// Lost is how many events the node dropped from its journal before they were read.
	Lost uint64
	// Err is why the node cannot be reached. It is asked again until it can be; then comes a gap with Over.
	Err error
	// Over ends an outage.
	Over bool
	// Restarted says that the node has started anew: what it had not told before is gone with its journal.
	Restarted bool
}

const (
	watchHeartbeat = time.Second            // a node answers at least so often
	watchPatience  = 3 * time.Second        // beyond the heartbeat, before a node counts as not answering
	watchHold      = 300 * time.Millisecond // how long an event waits for an older one of another node, unless said otherwise
	watchFirstHold = 2 * time.Second        // the same, for a node that has not answered yet
	watchMembers   = 5 * time.Second        // how often new nodes are looked for
	watchLimit     = 10_000                 // events in memory, beside one answer of each node
	watchPage      = 1000                   // events of an answer
	maxPlaces      = 1024                   // nodes that are not listed and whose place is kept
)

// Watch follows the journals of all nodes, and their states if asked for, until the loop is left or ctx ends: no
// node knows everything, so every one is asked. What happened comes in the order of time, as far as their clocks agree
// and unless one keeps the others waiting; states and counters, which are of now, come after what the same node told
// before and wait for no other. A node that cannot be reached is told of as a gap and asked again;
// it goes on where it stopped. A node that joins is watched as well.
//
// Whoever takes events slowly holds up the reading and no more: the nodes keep 10,000 each, and what they drop
// meanwhile is told as a gap. The watch ends with an error only if it cannot begin, or if the client is closed.
func (c *Client) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[WatchEvent, error] {
	return func(yield func(WatchEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		w := &watch{
			crew: crew{c: c}, opts: opts, answers: make(chan watchAnswer), members: make(chan []NodeStatus), kick: make(chan struct{}, 1),
			merge: newWatchMerge(cmp.Or(max(opts.Hold, 0), watchHold)), pulls: make(map[NodeID]*pull), places: make(map[NodeID]place), absent: make(map[NodeID]bool),
		}
		defer w.running.Wait()
		defer cancel()
		if err := w.begin(ctx); err != nil {
			if ctx.Err() == nil {
				yield(WatchEvent{}, err)
			}
			return
		}
		if err := w.loop(ctx, yield); err != nil && ctx.Err() == nil {
			yield(WatchEvent{}, err)
		}
	}
}

// watch is one Watch under way. Its fields belong to the goroutine that ranges over it; the pulls and the lookout talk
// to it through the channels.
type watch struct {
	crew
	opts    WatchOptions
	answers chan watchAnswer
	members chan []NodeStatus
	kick    chan struct{} // look for nodes now

	merge  *watchMerge
	pulls  map[NodeID]*pull
	places map[NodeID]place // of those that were followed and are not listed now; bounded
	absent map[NodeID]bool  // told of as dead
	open   int              // pulls of a watch with Once that are not at their end
}

// begin finds the nodes and starts to ask them.
func (w *watch) begin(ctx context.Context) error {
	list, err := w.c.Admin().ListNodes(ctx)
	if err != nil {
		return about("watch", err)
	}
	for _, id := range w.opts.Nodes {
		if !slices.ContainsFunc(list.Nodes, func(n NodeStatus) bool { return n.ID == id }) {
			return base.Errorf(base.CodeNodeNotFound, "watch", "node %s not found", id)
		}
	}
	if err := w.follow(ctx, list.Nodes); err != nil {
		return err
	}
	if w.opts.Once {
		return nil
	}
	return w.goRun(ctx, "watch nodes", w.lookOut)
}

// loop gives out events as they become due.
func (w *watch) loop(ctx context.Context, yield func(WatchEvent, error) bool) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, goOn := w.drain(yield)
		if !goOn {
			return nil
		}
		if w.opts.Once && w.open == 0 && w.merge.len() == 0 {
			return nil
		}
		timer.Reset(wait)
		select {
		case a := <-w.answers:
			w.take(a)
		case nodes := <-w.members:
			if err := w.follow(ctx, nodes); err != nil {
				return err
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil
		case <-w.c.group.Context().Done():
			return errClosed("client")
		}
	}
}

// drain gives out what is due, and says how long the next has to wait.
func (w *watch) drain(yield func(WatchEvent, error) bool) (wait time.Duration, goOn bool) {
	for {
		ev, ok, wait := w.merge.next(time.Now())
		if !ok {
			return wait, true
		}
		if ev.Gap != nil && ev.Gap.Err != nil || ev.Event != nil && strings.HasPrefix(ev.Event.Type, "NODE_") {
			select {
			case w.kick <- struct{}{}:
			default:
			}
		}
		if !yield(ev, nil) {
			return 0, false
		}
	}
}

func (w *watch) take(a watchAnswer) {
	p := a.by
	if w.pulls[p.node] != p {
		return // the node was dropped meanwhile
	}
	p.taken = a.place
	w.merge.add(p.node, a.events, a.until, time.Now())
	if a.lost {
		w.merge.miss(p.node)
	}
	if a.end {
		w.open--
		w.merge.drop(p.node)
	}
}

// follow asks the nodes that are new, and no longer those that are gone. A dead one is asked when it lives again.
func (w *watch) follow(ctx context.Context, nodes []NodeStatus) error {
	listed := make(map[NodeID]bool, len(nodes))
	for _, n := range nodes {
		if len(w.opts.Nodes) > 0 && !slices.Contains(w.opts.Nodes, n.ID) {
			continue
		}
		listed[n.ID] = true
		switch {
		case w.pulls[n.ID] != nil:
		case n.State == "dead" || n.State == "left":
			w.missing(n.ID, n.Boot, "node "+string(n.ID)+" is "+n.State)
		case len(w.pulls) >= watchPulls:
			w.missing(n.ID, n.Boot, fmt.Sprintf("node %s is one too many: %d are followed already", n.ID, watchPulls))
		default:
			delete(w.absent, n.ID)
			if err := w.pull(ctx, n.ID); err != nil {
				return err
			}
		}
	}
	for id, p := range w.pulls {
		if !listed[id] && !w.opts.Once {
			w.dismiss(id, p)
		}
	}
	maps.DeleteFunc(w.absent, func(id NodeID, _ bool) bool { return !listed[id] })
	return nil
}

// dismiss stops asking a node that is not listed any more. Where its journal was left is kept: a list may lack a node that
// is there all the same, and what was told is not to come again.
func (w *watch) dismiss(id NodeID, p *pull) {
	p.cancel()
	delete(w.pulls, id)
	w.merge.drop(id)
	if len(w.places) >= maxPlaces {
		clear(w.places)
	}
	w.places[id] = p.taken
}

// missing tells why a node is not followed, once.
func (w *watch) missing(id NodeID, boot uint64, why string) {
	if w.absent[id] || len(w.absent) >= maxPlaces {
		return
	}
	w.absent[id] = true
	now := time.Now()
	gap := WatchEvent{Node: id, Boot: boot, Time: now, Gap: &WatchGap{Err: base.Errorf(base.CodeUnreachable, "watch", "%s", why)}}
	w.merge.add(id, []WatchEvent{gap}, now, now)
	w.merge.drop(id)
}

func (w *watch) pull(ctx context.Context, id NodeID) error {
	ctx, cancel := context.WithCancel(ctx)
	at := w.places[id]
	delete(w.places, id)
	p := &pull{w: w, node: id, cancel: cancel, place: at, taken: at, caught: at != (place{})}
	w.pulls[id] = p
	w.merge.expect(id)
	w.open++
	return w.goRun(ctx, "watch node", p.run)
}

// lookOut looks for nodes that have joined or left.
func (w *watch) lookOut(ctx context.Context) {
	for {
		timer := time.NewTimer(watchMembers)
		select {
		case <-timer.C:
		case <-w.kick:
			timer.Stop()
			if !task.Pause(ctx, watchHeartbeat) { // what has just happened spreads; and not more often than that
				return
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
		list, err := w.c.Admin().ListNodes(ctx)
		if err != nil {
			continue
		}
		select {
		case w.members <- list.Nodes:
		case <-ctx.Done():
			return
		}
	}
}

// pull asks one node again and again.
type pull struct {
	w      *watch
	node   NodeID
	cancel context.CancelFunc

	place          // how far the asking is
	taken    place // how far the watch is; the watch's own
	caught   bool  // what the journal kept was told: what comes now has just happened
	events   int   // told so far
	lost     bool  // the last try failed, and that was told
	failures int
}

// place is how far a node was read: Boot, Next and StateVersion of its last answer, and the time of its last counters.
type place struct {
	boot, from, seen uint64
	counted          int64
}

// watchAnswer is what one try brought.
type watchAnswer struct {
	by     *pull
	place  place // after it
	events []WatchEvent
	until  time.Time // nothing older will come; zero = unknown
	lost   bool      // it was in vain
	end    bool
}

func (p *pull) run(ctx context.Context) {
	for {
		asked := time.Now()
		resp, err := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		a := watchAnswer{by: p}
		if err != nil {
			a.events, a.lost, a.end = p.failed(err), true, p.w.opts.Once
		} else {
			a.events, a.until, a.end = p.told(resp)
		}
		a.place = p.place
		select {
		case p.w.answers <- a:
		case <-ctx.Done():
			return
		}
		wait := pullPace - time.Since(asked)
		if err != nil {
			wait = dialBackoff.wait(p.failures)
		}
		if a.end || wait > 0 && !task.Pause(ctx, wait) {
			return
		}
	}
}

// ask makes one request. A node that is not where it was may be found elsewhere by the next look-out.
func (p *pull) ask(ctx context.Context) (wire.WatchNodeResponse, error) {
	wait := watchHeartbeat
	if p.w.opts.Once || p.lost {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(ctx, wait+watchPatience)
	defer cancel()
	var resp wire.WatchNodeResponse
	addr := p.w.c.brokers.address(p.node)
	if addr == "" {
		return resp, base.Errorf(base.CodeUnreachable, "watch", "node %s has no address", p.node)
	}
	req := wire.WatchNodeRequest{
		Boot: p.boot, From: p.from, Seen: p.seen, WaitMs: wait.Milliseconds(), MaxEvent: watchPage,
		Counters: p.w.opts.Counters, Counted: p.counted,
	}
	if err := p.w.c.askAt(ctx, addr, wire.KindWatchNode, req, &resp); err != nil {
		return resp, err
	}
	if resp.Node != p.node {
		return resp, base.Errorf(base.CodeUnreachable, "watch", "node %s answers at %s, where %s was", resp.Node, addr, p.node)
	}
	return resp, checkWatch(req, &resp)
}

func (p *pull) failed(err error) []WatchEvent {
	p.failures++
	if p.lost {
		return nil
	}
	p.lost = true
	return []WatchEvent{{Node: p.node, Boot: p.boot, Time: time.Now(), Gap: &WatchGap{Err: err}}}
}

// told turns an answer into events, and remembers where the next one goes on.
func (p *pull) told(resp wire.WatchNodeResponse) (events []WatchEvent, until time.Time, end bool) {
	observed := time.UnixMilli(resp.ObservedMs)
	gap := WatchGap{Over: p.lost, Restarted: p.boot != 0 && p.boot != resp.Boot}
	if p.from != 0 && !gap.Restarted {
		gap.Lost = resp.Lost
	}
	if gap != (WatchGap{}) {
		at := observed
		if len(resp.Events) > 0 {
			at = time.UnixMilli(resp.Events[0].TimeMs)
		}
		events = append(events, WatchEvent{Node: p.node, Boot: resp.Boot, Time: at, Gap: &gap})
	}
	for i := range resp.Events {
		e := &resp.Events[i]
		at := time.UnixMilli(e.TimeMs)
		if e.Node == "" {
			e.Node = p.node
		}
		if p.caught || !at.Before(p.w.opts.Since) {
			events = append(events, WatchEvent{Node: p.node, Boot: resp.Boot, Time: at, Event: e})
		}
	}
	if resp.State != nil && p.w.opts.States {
		events = append(events, WatchEvent{Node: p.node, Boot: resp.Boot, Time: observed, State: resp.State})
	}
	counted := p.counted
	if resp.Counters != nil && p.w.opts.Counters {
		events = append(events, WatchEvent{Node: p.node, Boot: resp.Boot, Time: observed, Counters: resp.Counters})
		counted = resp.Counters.ObservedMs
	}
	if p.w.opts.Counters && len(events) == 0 {
		events = append(events, WatchEvent{Node: p.node, Boot: resp.Boot, Time: observed})
	}
	until = observed
	if resp.More {
		until = time.UnixMilli(resp.Events[len(resp.Events)-1].TimeMs)
	}
	p.lost, p.failures = false, 0
	p.place = place{boot: resp.Boot, from: resp.Next, seen: resp.StateVersion, counted: counted}
	p.events += len(resp.Events)
	p.caught = p.caught || !resp.More || p.events >= keptEvents
	return events, until, p.w.opts.Once && p.caught
}
