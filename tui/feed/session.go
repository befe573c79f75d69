package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

// patience is how long a node that has said nothing yet counts as one that may.
const patience = 5 * time.Second

// session is one client, for as long as any broker answers it.
type session struct {
	l       *live
	client  Client
	seeds   []string
	began   time.Time
	running sync.WaitGroup

	members map[sdk.NodeID]store.StreamState // of the goroutine that watches, as what follows
	told    bool                             // that it goes on after all was lost
	polling bool
	lastErr error
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
	since := s.began.Add(-s.l.opts.Since)
	for ev, err := range s.client.Watch(ctx, sdk.WatchOptions{Since: since, States: true, Counters: true}) {
		if err != nil {
			return err
		}
		if !s.take(ctx, ev, tries) {
			break
		}
		if s.allLost() {
			return s.lastErr
		}
	}
	return nil
}

// begin says where this is.
func (s *session) begin(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := s.client.Admin().ListNodes(ask)
	if err != nil {
		return err
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
			s.members[n.ID] = store.StreamNone
		}
	}
	return nil
}

// take turns what the watch saw into messages.
func (s *session) take(ctx context.Context, ev sdk.WatchEvent, tries *int) bool {
	m := store.Message{Node: ev.Node, Boot: ev.Boot}
	if ev.Gap != nil && ev.Gap.Err != nil {
		s.members[ev.Node], s.lastErr = store.StreamLost, ev.Gap.Err
		if base.CodeOf(ev.Gap.Err) == base.CodeUnknownKind {
			return s.poll(ctx)
		}
		m.Stream = &store.Stream{State: store.StreamLost, Error: ev.Gap.Err.Error()}
		return s.l.send(ctx, m)
	}
	if !s.told {
		s.told, *tries = true, 0
		s.l.send(ctx, store.Message{Conn: &store.Conn{}})
	}
	if s.members[ev.Node] != store.StreamLive && ev.Gap == nil {
		s.members[ev.Node] = store.StreamLive
		s.l.send(ctx, store.Message{Node: ev.Node, Boot: ev.Boot, Stream: &store.Stream{State: store.StreamLive}})
	}
	switch {
	case ev.Gap != nil:
		if ev.Gap.Over {
			s.members[ev.Node] = store.StreamLive
		}
		m.Gap = &store.Gap{Lost: ev.Gap.Lost, Restarted: ev.Gap.Restarted, Over: ev.Gap.Over}
	case ev.State != nil:
		m.State = ev.State
	case ev.Counters != nil:
		m.Counters = ev.Counters
	default:
		m.Event = ev.Event
	}
	return s.l.send(ctx, m)
}

// allLost reports whether nobody is left to listen to. A node that has said nothing yet is given some time.
func (s *session) allLost() bool {
	if s.polling || s.lastErr == nil {
		return false
	}
	for _, state := range s.members {
		if state == store.StreamLive || state == store.StreamNone && time.Since(s.began) < patience {
			return false
		}
	}
	return true
}

// poll asks brokers that are too old for streams every 2 seconds. What they say of each other must do.
func (s *session) poll(ctx context.Context) bool {
	if s.polling {
		return true
	}
	s.polling = true
	s.l.send(ctx, store.Message{Hello: &store.Hello{Context: s.l.opts.Context, Seeds: s.seeds, Version: s.l.opts.Version, Polling: "2s"}})
	s.start(func() {
		for sleep(ctx, pollOld) {
			ask, cancel := context.WithTimeout(ctx, askTimeout)
			list, err := s.client.Admin().ListNodes(ask)
			cancel()
			if err != nil {
				s.l.send(ctx, store.Message{Conn: &store.Conn{Lost: true, Error: err.Error(), Tried: s.seeds, Next: time.Now().Add(pollOld)}})
				continue
			}
			s.l.send(ctx, store.Message{Conn: &store.Conn{}})
			s.l.send(ctx, store.Message{Nodes: &list})
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
	go s.l.opts.guard(func() {
		defer s.running.Done()
		f()
	})
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
