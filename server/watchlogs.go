package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	maxLogReaders = 64
	logPace       = 100 * time.Millisecond // between a line and the answers with it: lines come in crowds
)

// watchLogs follows this node's log. The request waits without a goroutine until there is a line that fits.
func (s *Server) watchLogs(ctx context.Context, r *mux.Request) {
	var req wire.WatchLogsRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	if _, ok := logLevels[req.Level]; req.Level != "" && !ok {
		r.Fail(base.Errorf(base.CodeInvalidArgument, "watch logs", "no level %q: debug, info, warn and error are", req.Level))
		return
	}
	s.logReaders.follow(ctx, req, func(resp wire.WatchLogsResponse, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(wire.Encode(resp))
	})
}

// logReaders are the long polls on one node's log. All are looked at together, a moment after lines were added and when
// the time of one has come.
type logReaders struct {
	node base.NodeID
	boot uint64
	ring *logRing
	run  func(func()) error // on a goroutine that may block

	mu     sync.Mutex
	parked map[*logReader]struct{}
	timer  *time.Timer // of the next look
	due    time.Time   // when that is; zero: none is set
	closed bool
}

type logReader struct {
	req    wire.WatchLogsRequest
	answer func(wire.WatchLogsResponse, error) // once
	until  time.Time
	forget func() bool
}

// begin opens the log to readers; until then nobody can ask.
func (l *logReaders) begin(node base.NodeID, boot uint64, ring *logRing, run func(func()) error) {
	l.mu.Lock()
	l.node, l.boot, l.ring, l.run, l.parked = node, boot, ring, run, make(map[*logReader]struct{})
	l.mu.Unlock()
	ring.mu.Lock()
	ring.told = func() { l.lookBy(time.Now().Add(logPace)) }
	ring.mu.Unlock()
}

// follow takes a reader. answer is called once, on any goroutine.
func (l *logReaders) follow(ctx context.Context, req wire.WatchLogsRequest, answer func(wire.WatchLogsResponse, error)) {
	if req.MaxLines <= 0 || req.MaxLines > maxWatchEvents {
		req.MaxLines = maxWatchEvents
	}
	if req.Boot != l.boot && req.Boot != 0 {
		req.From, req.Last = 0, 0 // another start's numbers
	}
	now := time.Now()
	until := now.Add(watchWait(req.WaitMs))
	p := &logReader{req: req, answer: answer, until: until}
	resp := l.compose(p, now)
	if len(resp.Lines) > 0 || resp.Lost > 0 || resp.More || !now.Before(until) {
		answer(resp, nil)
		return
	}
	p.req.From = resp.Next
	if err := l.park(ctx, p); err != nil {
		answer(wire.WatchLogsResponse{}, err)
		return
	}
	l.lookBy(until)
	l.lookBy(now.Add(logPace)) // for what was added since it was looked at
}

func (l *logReaders) park(ctx context.Context, p *logReader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return base.Errorf(base.CodeShuttingDown, "watch logs", "the broker is stopping")
	case len(l.parked) >= maxLogReaders:
		return base.Errorf(base.CodeBusy, "watch logs", "%d read this node's log already", len(l.parked))
	}
	l.parked[p] = struct{}{}
	p.forget = context.AfterFunc(ctx, func() {
		if l.take(p) {
			p.answer(wire.WatchLogsResponse{}, base.Errorf(base.CodeCanceled, "watch logs", "the connection has ended"))
		}
	})
	return nil
}

// take removes a parked reader and reports whether it was: whoever gets it answers it.
func (l *logReaders) take(p *logReader) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.parked[p]
	delete(l.parked, p)
	return ok
}

// lookBy has the readers looked at by a time, if there are any.
func (l *logReaders) lookBy(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.parked) == 0 || l.closed || !l.due.IsZero() && !at.Before(l.due) {
		return
	}
	l.due = at
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(at), l.start)
	} else {
		l.timer.Reset(time.Until(at))
	}
}

func (l *logReaders) start() {
	if err := l.run(l.look); err != nil { // the pool has no room, or is closed: whoever waits is to ask again
		l.answerAll()
	}
}

// look answers those for whom there is something, or whose time has come.
func (l *logReaders) look() {
	now := time.Now()
	l.mu.Lock()
	l.due = time.Time{}
	all := make([]*logReader, 0, len(l.parked))
	for p := range l.parked {
		all = append(all, p)
	}
	l.mu.Unlock()
	next := now.Add(maxWatchWait)
	for _, p := range all {
		resp := l.compose(p, now)
		if len(resp.Lines) == 0 && resp.Lost == 0 && now.Before(p.until) {
			next = earlier(next, p.until)
			continue
		}
		if l.take(p) {
			p.forget()
			p.answer(resp, nil)
		}
	}
	l.lookBy(next)
}

func (l *logReaders) compose(p *logReader, now time.Time) wire.WatchLogsResponse {
	resp := wire.WatchLogsResponse{Node: l.node, Boot: l.boot, ObservedMs: now.UnixMilli()}
	l.ring.read(&p.req, &resp)
	return resp
}

// close answers all with what there is, and takes no more.
func (l *logReaders) close() {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.answerAll()
}

// answerAll answers all with what there is.
func (l *logReaders) answerAll() {
	l.mu.Lock()
	l.due = time.Time{}
	all := l.parked
	l.parked = make(map[*logReader]struct{})
	l.mu.Unlock()
	for p := range all {
		p.forget()
		p.answer(l.compose(p, time.Now()), nil)
	}
}
