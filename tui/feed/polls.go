package feed

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/task"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
)

const (
	often  = 2 * time.Second        // what is on the screen
	seldom = 10 * time.Second       // what is worth knowing anyway
	calm   = 300 * time.Millisecond // after the screen has moved on, before it is asked for
)

// pollers ask for what the brokers do not push. Each asks for one thing, so that none waits for another's slow answer;
// an answer that finds the store behind is dropped, and asked for again.
func (s *session) pollers(ctx context.Context) {
	admin := s.client.Admin()
	s.every(ctx, func(v Viewport) want { return want{pace: either(v.Nodes, often, seldom)} }, func(ctx context.Context, _ Viewport) {
		if list, err := admin.ListNodes(ctx); err == nil {
			s.l.offer("nodes", store.Message{Nodes: &list})
		}
	})
	s.every(ctx, func(v Viewport) want { return want{pace: either(v.Health, often, seldom)} }, func(ctx context.Context, _ Viewport) {
		if health, err := admin.ClusterHealth(ctx); err == nil {
			s.l.offer("health", store.Message{Health: &health})
		}
	})
	s.every(ctx, func(v Viewport) want { return want{pace: either(v.Health || v.Segments != nil, often, seldom)} }, func(ctx context.Context, _ Viewport) {
		if st, err := admin.ClusterStatus(ctx); err == nil {
			s.l.offer("status", store.Message{Totals: totalsOf(&st)})
		}
	})
	s.every(ctx, func(v Viewport) want { return want{pace: either(v.Shards, often, 0)} }, func(ctx context.Context, _ Viewport) {
		if list, err := admin.ListShards(ctx); err == nil {
			s.l.offer("shards", store.Message{Shards: &list})
		}
	})
	s.every(ctx, func(v Viewport) want { return want{pace: either(v.TopicList, often, 0)} }, func(ctx context.Context, _ Viewport) {
		if list, err := admin.ListTopics(ctx, sdk.ListTopics{Limit: topicLimit}); err == nil {
			complete := len(list.Topics) < topicLimit && len(list.Missing) == 0
			s.l.offer("topics", store.Message{Topics: &store.TopicPage{Topics: list.Topics, Complete: complete}})
		}
	})
	s.every(ctx, wantSegments, func(ctx context.Context, v Viewport) { s.segments(ctx, v.Segments.Topic) })
	s.details(ctx)
	s.start(func() { s.logs(ctx) })
}

// want is how often something is asked for, 0 for not at all, and what of it.
type want struct {
	pace time.Duration
	of   string
}

func wantSegments(v Viewport) want {
	if v.Segments == nil {
		return want{}
	}
	return want{often, v.Segments.Topic}
}

// segments asks for those of a topic, or of all. A list goes by the segments' ids, so one that ends at its limit lacks the
// youngest: those that lack copies and those that are written to are asked for by themselves then.
func (s *session) segments(ctx context.Context, topic string) {
	for _, state := range []string{"", "under-replicated", "active"} {
		list, err := s.client.Admin().ListSegments(ctx, sdk.ListSegments{Topic: topic, State: state, Limit: segmentLimit})
		if err != nil {
			return
		}
		full := len(list.Segments) >= segmentLimit
		page := &store.SegmentPage{Topic: topic, Segments: list.Segments, Complete: state == "" && !full && len(list.Missing) == 0}
		s.l.offer("segments", store.Message{Segments: page})
		if state == "" && !full {
			return
		}
	}
}

func either(yes bool, a, b time.Duration) time.Duration {
	if yes {
		return a
	}
	return b
}

func totalsOf(st *sdk.ClusterStatus) *store.Totals {
	return &store.Totals{
		Topics: st.Topics, Ranges: st.Ranges, Segments: st.Segments, Groups: st.Groups, Records: st.Records, Bytes: st.Bytes,
		UnderReplicated: st.UnderReplicated, Leaderless: st.Leaderless, Missing: st.Missing,
	}
}

// every asks for what follows from what is shown. What the screen has moved on to is asked for soon; what it shows as
// before, at its pace, however much else moves.
func (s *session) every(ctx context.Context, wanted func(Viewport) want, ask func(context.Context, Viewport)) {
	s.start(func() {
		var last want
		due := time.Now()
		for ctx.Err() == nil {
			shown, moved := s.l.viewport()
			now := wanted(shown)
			if now.of != last.of || last.pace == 0 || now.pace < last.pace {
				due = time.Now()
			}
			last = now
			wait := time.Hour
			if now.pace > 0 {
				if !time.Now().Before(due) {
					asking, cancel := context.WithTimeout(ctx, askTimeout)
					ask(asking, shown)
					cancel()
					due = time.Now().Add(now.pace)
				}
				wait = time.Until(due)
			}
			if !s.wait(ctx, wait, moved) {
				return
			}
		}
	})
}

// wait waits for a time, or until the screen has moved on and come to rest.
func (s *session) wait(ctx context.Context, d time.Duration, moved <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-moved:
		return task.Pause(ctx, calm)
	case <-ctx.Done():
		return false
	}
}

// details asks for the topics on the screen, one after the other, and says which are on it no more.
func (s *session) details(ctx context.Context) {
	var before []string
	admin := s.client.Admin()
	wanted := func(v Viewport) want {
		return want{either(len(v.Topics) > 0 || len(before) > 0, often, 0), strings.Join(v.Topics, "/")}
	}
	s.every(ctx, wanted, func(ctx context.Context, v Viewport) {
		topics := v.Topics[:min(len(v.Topics), MostTopics)]
		for _, name := range before {
			if !slices.Contains(topics, name) {
				s.l.send(ctx, store.Message{Gone: &store.Gone{Topic: name, Exists: true}}) // it is not said again
			}
		}
		before = slices.Clone(topics)
		for _, name := range topics {
			d, err := admin.DescribeTopic(ctx, name)
			switch {
			case err == nil:
				s.l.offer("topic", store.Message{Topic: &d})
			case base.CodeOf(err) == base.CodeTopicNotFound:
				s.l.offer("topic", store.Message{Gone: &store.Gone{Topic: name}})
			}
		}
	})
}

// logs follows the logs while they are shown.
func (s *session) logs(ctx context.Context) {
	for ctx.Err() == nil {
		shown, moved := s.l.viewport()
		if shown.Logs == nil {
			if !s.wait(ctx, time.Hour, moved) {
				return
			}
			continue
		}
		reading, cancel := context.WithCancel(ctx)
		s.start(func() {
			defer cancel()
			for now, moved := shown, moved; sameLogs(shown.Logs, now.Logs); now, moved = s.l.viewport() {
				select {
				case <-moved:
				case <-reading.Done():
					return
				}
			}
		})
		s.readLogs(reading, shown.Logs)
		cancel()
		if !task.Pause(ctx, calm) {
			return
		}
	}
}

func (s *session) readLogs(ctx context.Context, shown *LogsShown) {
	opts := sdk.LogOptions{Nodes: shown.Nodes, Level: shown.Level, Last: logsFirst, Follow: true}
	anew := true
	for ev, err := range s.client.Logs(ctx, opts) {
		if err != nil {
			task.Pause(ctx, often)
			return
		}
		if ev.Line == nil && ev.Lost == 0 {
			continue
		}
		page := &store.LogPage{Lost: ev.Lost, Anew: anew}
		if ev.Line != nil {
			page.Lines = []sdk.LogLine{*ev.Line}
		}
		if !s.l.send(ctx, checked("logs", store.Message{Node: ev.Node, Boot: ev.Boot, Logs: page})) {
			return
		}
		anew = false
	}
}

func sameLogs(a, b *LogsShown) bool {
	return a != nil && b != nil && a.Level == b.Level && slices.Equal(a.Nodes, b.Nodes)
}
