package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

const (
	// patience is how long a node that has said nothing yet counts as one that may.
	patience = 5 * time.Second
	// silence is how long the last ones that are left may say nothing, when others have just been lost: nodes say something
	// each second, and the loss of all is to be seen within two.
	silence = 1800 * time.Millisecond
	// hold is as good as nothing: the store puts events in their place whenever they come, and what a node tells waits for no
	// other.
	hold = time.Millisecond
	// distrust is how long a node is not listened to that has said what no broker says.
	distrust = 10 * time.Second
)

// member is what a session knows of a node.
type member struct {
	state   store.StreamState
	heard   time.Time
	refused time.Time // when it said last what no broker says
}

// session is one client, for as long as any broker answers it.
type session struct {
	l       *live
	client  Client
	seeds   []string
	began   time.Time
	running sync.WaitGroup

	members map[sdk.NodeID]member // of the goroutine that watches, as what follows
	told    bool                  // that it goes on after all was lost
	polling bool
	lastErr error
	broke   time.Time   // when a stream was lost last
	giveUp  *time.Timer // all are lost but for those that have said nothing yet: they are waited for no longer than that
}

// run ends without an error when ctx has ended, and with one when no broker answers any more.
func (s *session) run(ctx context.Context, tries *int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.running.Wait()
	defer cancel()
	s.began = time.Now()
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.pollers(ctx)
	listening, leave := context.WithCancel(ctx)
	defer leave()
	since := s.began.Add(-s.l.opts.Since)
	for ev, err := range s.client.Watch(listening, sdk.WatchOptions{Since: since, States: true, Counters: true, Hold: hold}) {
		if err != nil {
			return err
		}
		if !s.take(ctx, ev, tries) || s.allLost(leave) {
			break
		}
	}
	if ctx.Err() != nil || s.lastErr == nil || s.polling {
		return nil
	}
	// What this session has begun may take its time to end: it is told before that.
	s.l.send(ctx, store.Message{Conn: &store.Conn{Lost: true, Error: reason(s.lastErr), Tried: s.seeds, Attempt: *tries + 1}})
	return s.lastErr
}

// begin says where this is.
func (s *session) begin(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := s.client.Admin().ListNodes(ask)
	if err != nil {
		return err
	}
	if err := check(&store.Message{Nodes: &list}); err != nil {
		return base.Errorf(base.CodeCorruptFrame, "list nodes", "node %s tells nonsense: %v", cut(string(list.Observer)), err)
	}
	s.l.learn(list.Nodes)
	hello := &store.Hello{Context: s.l.opts.Context, Seeds: s.seeds, Version: s.l.opts.Version}
	if list.Cluster != (sdk.NodeList{}).Cluster {
		hello.Cluster = list.Cluster.String()
	}
	s.l.send(ctx, store.Message{Hello: hello})
	s.l.send(ctx, store.Message{Nodes: &list})
	for _, n := range list.Nodes {
		if n.State != "dead" && n.State != "left" {
			s.members[n.ID] = member{}
		}
	}
	return nil
}

// take turns what the watch saw into messages.
func (s *session) take(ctx context.Context, ev sdk.WatchEvent, tries *int) bool {
	m := messageOf(ev)
	if err := check(&m); err != nil {
		return s.refuse(ctx, ev, err)
	}
	if time.Since(s.members[ev.Node].refused) < distrust {
		return true
	}
	if ev.Gap != nil && ev.Gap.Err != nil {
		s.members[ev.Node], s.lastErr, s.broke = member{state: store.StreamLost}, ev.Gap.Err, time.Now()
		if base.CodeOf(ev.Gap.Err) == base.CodeUnknownKind {
			return s.poll(ctx)
		}
		return s.l.send(ctx, m)
	}
	if !s.told {
		s.told, *tries = true, 0
		s.l.send(ctx, store.Message{Conn: &store.Conn{}})
	}
	was := s.members[ev.Node].state
	if ev.Gap == nil || ev.Gap.Over {
		s.members[ev.Node] = member{state: store.StreamLive, heard: time.Now()}
	}
	if was != store.StreamLive && ev.Gap == nil {
		s.l.send(ctx, store.Message{Node: ev.Node, Boot: ev.Boot, Stream: &store.Stream{State: store.StreamLive}})
	}
	return s.l.send(ctx, m)
}

// messageOf is what the watch saw as a message.
func messageOf(ev sdk.WatchEvent) store.Message {
	m := store.Message{Node: ev.Node, Boot: ev.Boot}
	switch {
	case ev.Gap != nil && ev.Gap.Err != nil:
		m.Stream = &store.Stream{State: store.StreamLost, Error: reason(ev.Gap.Err)}
	case ev.Gap != nil:
		m.Gap = &store.Gap{Lost: ev.Gap.Lost, Restarted: ev.Gap.Restarted, Over: ev.Gap.Over}
	case ev.State != nil:
		m.State = ev.State
	case ev.Counters != nil:
		m.Counters = ev.Counters
	default:
		m.Event = ev.Event
	}
	return m
}

// refuse shows a node that says what no broker says as one that cannot be listened to, and why; it is told once, until it
// has made sense for a while.
func (s *session) refuse(ctx context.Context, ev sdk.WatchEvent, why error) bool {
	if len(ev.Node) > maxName { // it is nobody: there is no row that could say so
		return s.l.send(ctx, store.Message{Refused: &store.Refused{What: "watch", Why: why.Error()}})
	}
	was := s.members[ev.Node]
	s.lastErr = base.Errorf(base.CodeCorruptFrame, "watch", "node %s tells nonsense: %v", ev.Node, why)
	s.members[ev.Node] = member{state: store.StreamLost, refused: time.Now()}
	if time.Since(was.refused) < distrust {
		return true
	}
	s.broke = time.Now()
	return s.l.send(ctx, store.Message{Node: ev.Node, Boot: ev.Boot, Stream: &store.Stream{State: store.StreamLost, Error: reason(s.lastErr)}})
}

// allLost reports whether nobody is left to listen to. Who may still speak is given some time, after which leave is
// called unless somebody has spoken: nothing else may come that would have this asked again.
func (s *session) allLost(leave func()) bool {
	if s.giveUp != nil {
		s.giveUp.Stop()
	}
	if s.polling || s.lastErr == nil {
		return false
	}
	now := time.Now()
	until := now
	for _, m := range s.members {
		switch m.state {
		case store.StreamLive:
			if now.Sub(s.broke) > silence {
				return false // the losses are of another time
			}
			until = later(until, m.heard.Add(silence))
		case store.StreamNone:
			until = later(until, s.began.Add(patience))
		case store.StreamStale, store.StreamLost:
		}
	}
	if until.After(now) {
		s.giveUp = time.AfterFunc(until.Sub(now), s.l.opts.Guard.Func(leave))
		return false
	}
	return true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// poll asks brokers that are too old for streams every 2 seconds. What they say of each other must do.
func (s *session) poll(ctx context.Context) bool {
	if s.polling {
		return true
	}
	s.polling = true
	s.l.send(ctx, store.Message{Hello: &store.Hello{Context: s.l.opts.Context, Seeds: s.seeds, Version: s.l.opts.Version, Polling: "2s"}})
	s.start(func() {
		for task.Pause(ctx, pollOld) {
			ask, cancel := context.WithTimeout(ctx, askTimeout)
			list, err := s.client.Admin().ListNodes(ask)
			cancel()
			if err != nil {
				s.l.send(ctx, store.Message{Conn: &store.Conn{Lost: true, Error: reason(err), Tried: s.seeds, Next: time.Now().Add(pollOld)}})
				continue
			}
			s.l.send(ctx, store.Message{Conn: &store.Conn{}})
			s.l.send(ctx, checked("nodes", store.Message{Nodes: &list}))
			for _, n := range list.Nodes {
				if n.State == "alive" && !slices.Contains(list.Missing, n.ID) {
					s.l.send(ctx, store.Message{Node: n.ID, Boot: n.Boot})
				}
			}
		}
	})
	return true
}

// start runs f until the session ends: f ends with its context.
func (s *session) start(f func()) {
	s.running.Add(1)
	go s.l.opts.Guard.Run(func() {
		defer s.running.Done()
		f()
	})
}
