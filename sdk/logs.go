package sdk

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/internal/wire"
)

// LogOptions says which lines of which nodes' logs are wanted.
type LogOptions struct {
	// Nodes are those whose logs are read; none means all, those that join later included.
	Nodes []NodeID
	// Level is the least that is told: debug, info, warn or error; empty means all.
	Level string
	// Contains is looked for in the message and the attributes, in any case.
	Contains string
	// Last begins with the last so many lines of each node that fit; 0 means all that it keeps, less than 0 none.
	Last int
	// Follow waits for more, until the loop is left; without it the logs end where they are now.
	Follow bool
}

// LogEvent is one thing that Logs read: one of Line, Err, Lost and Over says what.
type LogEvent struct {
	Node NodeID
	// Boot counts the node's starts; Line.Seq counts within one.
	Boot uint64
	// Line is a line of its log; nil if this is about the reading.
	Line *LogLine
	// Lost is how many lines the node dropped before they were read.
	Lost uint64
	// Err is why the node cannot be reached. It is asked again until it can be.
	Err error
	// Over ends an outage.
	Over bool
}

const (
	logsWait    = 5 * time.Second // a node answers at least so often
	logsPage    = 500
	logsBacklog = 4 // answers in memory, over all nodes
)

// Logs reads the logs that the nodes keep in memory: each keeps its last 5,000 lines. Without Follow the lines of all
// come in the order of time; with it, first what there was in that order, and then each line as it comes. The text is as
// it was logged: whoever prints it has to escape it.
func (c *Client) Logs(ctx context.Context, opts LogOptions) iter.Seq2[LogEvent, error] {
	return func(yield func(LogEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		l := &logs{
			crew: crew{c: c}, opts: opts, answers: make(chan logAnswer, logsBacklog), pulls: make(map[NodeID]*logPull), places: make(map[NodeID]logPlace),
		}
		defer l.running.Wait()
		defer cancel()
		if err := l.read(ctx, yield); err != nil && ctx.Err() == nil {
			yield(LogEvent{}, err)
		}
	}
}

// logs is one Logs under way. Its fields belong to the goroutine that ranges over it.
type logs struct {
	crew
	opts    LogOptions
	answers chan logAnswer
	pulls   map[NodeID]*logPull
	places  map[NodeID]logPlace // of nodes that were read and are not there now; bounded
	first   int                 // nodes that have not come to the end of what they had
}

// logPlace is how far a node's log was read: Boot and Next of its last answer.
type logPlace struct{ boot, from uint64 }

type logAnswer struct {
	by     *logPull
	place  logPlace // after it
	events []LogEvent
	end    bool // of what there was
}

func (l *logs) read(ctx context.Context, yield func(LogEvent, error) bool) error {
	list, err := l.c.Admin().ListNodes(ctx)
	if err != nil {
		return about("read logs", err)
	}
	for _, id := range l.opts.Nodes {
		if !slices.ContainsFunc(list.Nodes, func(n NodeStatus) bool { return n.ID == id }) {
			return base.Errorf(base.CodeNodeNotFound, "read logs", "node %s not found", id)
		}
	}
	if err := l.follow(ctx, list.Nodes); err != nil {
		return err
	}
	goOn, err := l.history(ctx, yield)
	if !goOn || err != nil || !l.opts.Follow {
		return err
	}
	return l.live(ctx, yield)
}

// follow begins to read the logs of nodes that are new, and no longer those of nodes that are gone.
func (l *logs) follow(ctx context.Context, nodes []NodeStatus) error {
	listed := make(map[NodeID]bool, len(nodes))
	for _, n := range nodes {
		wanted := len(l.opts.Nodes) == 0 || slices.Contains(l.opts.Nodes, n.ID)
		if !wanted || n.State == "dead" || n.State == "left" {
			continue
		}
		listed[n.ID] = true
		if l.pulls[n.ID] != nil || len(l.pulls) >= watchPulls {
			continue
		}
		if err := l.pull(ctx, n.ID); err != nil {
			return err
		}
	}
	for id, p := range l.pulls {
		if !listed[id] {
			l.dismiss(id, p)
		}
	}
	return nil
}

// pull begins to read a node's log, or goes on where that was left: a node that is back is not to tell everything again.
func (l *logs) pull(ctx context.Context, id NodeID) error {
	ctx, cancel := context.WithCancel(ctx)
	at, known := l.places[id]
	delete(l.places, id)
	p := &logPull{l: l, node: id, cancel: cancel, logPlace: at, taken: at, ended: known}
	l.pulls[id] = p
	l.first++
	return l.goRun(ctx, "read log", p.run)
}

// dismiss stops reading the log of a node that is not there any more.
func (l *logs) dismiss(id NodeID, p *logPull) {
	p.cancel()
	delete(l.pulls, id)
	if len(l.places) >= maxPlaces {
		clear(l.places)
	}
	if p.taken != (logPlace{}) {
		l.places[id] = p.taken
	}
}

// take remembers how far a node was read, and gives what it told. Nothing counts that comes after it was dismissed: it
// will be told again.
func (l *logs) take(a logAnswer) []LogEvent {
	if l.pulls[a.by.node] != a.by {
		return nil
	}
	a.by.taken = a.place
	return a.events
}

// history gives out what there was when the reading began, in the order of time.
func (l *logs) history(ctx context.Context, yield func(LogEvent, error) bool) (goOn bool, err error) {
	var all []LogEvent
	for l.first > 0 {
		select {
		case a := <-l.answers:
			all = append(all, l.take(a)...)
			if a.end {
				l.first--
			}
		case <-ctx.Done():
			return false, nil
		case <-l.c.group.Context().Done():
			return false, errClosed("client")
		}
	}
	slices.SortStableFunc(all, func(a, b LogEvent) int {
		switch {
		case a.Line == nil || b.Line == nil:
			return 0
		case a.Line.TimeMs < b.Line.TimeMs:
			return -1
		case a.Line.TimeMs > b.Line.TimeMs:
			return 1
		}
		return 0
	})
	for _, ev := range all {
		if !yield(ev, nil) {
			return false, nil
		}
	}
	return true, nil
}

// live gives out lines as they come, and looks for nodes that have joined.
func (l *logs) live(ctx context.Context, yield func(LogEvent, error) bool) error {
	members := make(chan []NodeStatus)
	err := l.goRun(ctx, "log nodes", func(ctx context.Context) {
		for task.Pause(ctx, watchMembers) {
			list, err := l.c.Admin().ListNodes(ctx)
			if err != nil {
				continue
			}
			select {
			case members <- list.Nodes:
			case <-ctx.Done():
			}
		}
	})
	if err != nil {
		return err
	}
	for {
		select {
		case a := <-l.answers:
			for _, ev := range l.take(a) {
				if !yield(ev, nil) {
					return nil
				}
			}
		case nodes := <-members:
			if err := l.follow(ctx, nodes); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-l.c.group.Context().Done():
			return errClosed("client")
		}
	}
}

// logPull reads one node's log.
type logPull struct {
	l      *logs
	node   NodeID
	cancel context.CancelFunc

	logPlace          // how far the asking is
	taken    logPlace // how far the reader is; the reader's own
	ended    bool     // what there was is told
	lines    int      // read before that
	lost     bool
	failures int
}

func (p *logPull) run(ctx context.Context) {
	for {
		asked := time.Now()
		resp, err := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		a := logAnswer{by: p}
		if err != nil {
			a.events = p.failed(err)
		} else {
			a.events = p.told(resp)
		}
		a.place = p.logPlace
		p.lines += len(resp.Lines)
		if !p.ended && (err != nil || !resp.More || p.lines >= keptLines) {
			p.ended, a.end = true, true
		}
		if len(a.events) > 0 || a.end {
			select {
			case p.l.answers <- a:
			case <-ctx.Done():
				return
			}
		}
		wait := pullPace - time.Since(asked)
		if err != nil {
			wait = dialBackoff.wait(p.failures)
		}
		if a.end && !p.l.opts.Follow || wait > 0 && !task.Pause(ctx, wait) {
			return
		}
	}
}

func (p *logPull) ask(ctx context.Context) (resp wire.WatchLogsResponse, err error) {
	req := wire.WatchLogsRequest{
		Boot: p.boot, From: p.from, Last: max(p.l.opts.Last, 0), MaxLines: logsPage, Level: p.l.opts.Level, Contains: p.l.opts.Contains,
	}
	if p.ended && !p.lost {
		req.WaitMs = logsWait.Milliseconds()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(req.WaitMs)*time.Millisecond+watchPatience)
	defer cancel()
	addr := p.l.c.brokers.address(p.node)
	if addr == "" {
		return resp, base.Errorf(base.CodeUnreachable, "read logs", "node %s has no address", p.node)
	}
	if err := p.l.c.askAt(ctx, addr, wire.KindWatchLogs, req, &resp); err != nil {
		return resp, err
	}
	if resp.Node != p.node {
		return resp, base.Errorf(base.CodeUnreachable, "read logs", "node %s answers at %s, where %s was", resp.Node, addr, p.node)
	}
	return resp, checkLogs(req, &resp)
}

func (p *logPull) failed(err error) []LogEvent {
	p.failures++
	if p.lost {
		return nil
	}
	p.lost = true
	return []LogEvent{{Node: p.node, Boot: p.boot, Err: err}}
}

func (p *logPull) told(resp wire.WatchLogsResponse) (events []LogEvent) {
	if p.lost {
		events = append(events, LogEvent{Node: p.node, Boot: resp.Boot, Over: true})
	}
	if resp.Lost > 0 && p.from != 0 && p.boot == resp.Boot {
		events = append(events, LogEvent{Node: p.node, Boot: resp.Boot, Lost: resp.Lost})
	}
	skip := p.l.opts.Last < 0 && !p.ended
	for i := range resp.Lines {
		if !skip {
			events = append(events, LogEvent{Node: p.node, Boot: resp.Boot, Line: &resp.Lines[i]})
		}
	}
	p.lost, p.failures = false, 0
	p.logPlace = logPlace{resp.Boot, resp.Next}
	return events
}
