package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/feed"
	"github.com/eastguard/eastguard/tui/page"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

const (
	onceWait   = 1500 * time.Millisecond // after the first answer: rates need two counts
	onceLatest = 3 * time.Second         // what was asked for may take longer
	onceLook   = onceWait / 10           // between two looks at whether it has come
	onceGiveUp = 5 * time.Second         // without any answer
	onceWidth  = 100
	onceHeight = 40
)

// once prints what is known when enough is known, as often as was asked.
func once(ctx context.Context, opts Options, streams *term.IOStreams, src feed.Feed) error {
	if opts.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opts.Duration, errTimeUp)
		defer cancel()
	}
	l := &looker{
		store: store.New(store.Options{History: -1}), in: src.Messages(), now: src.Now, show: src.Show, recorded: opts.Replay != "", fault: src.Err,
		model: newModel(opts, styles.NoColor, true, environment{}), all: opts.Format != term.FormatTable,
	}
	if err := l.gather(ctx); err != nil {
		return err
	}
	looks := 1
	if opts.Format == term.FormatJSONL {
		looks = max(opts.Count, 1)
	}
	for i := range looks {
		if i > 0 && !l.wait(ctx, opts.Refresh) {
			break
		}
		if err := l.print(opts, streams); err != nil {
			return err
		}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTimeUp) {
		return cause
	}
	if err := src.Err(); err != nil && opts.Replay != "" {
		return failure(sdk.CodeCorruptData, "the recording is damaged, and was shown up to there: %v", err).WithHint("what comes after it in %s cannot be read", opts.Replay)
	}
	if why := unhealthy(l.view()); why != "" {
		return failure(sdk.CodeUnhealthy, "%s", why)
	}
	return nil
}

// looker gathers what a feed says without a screen.
type looker struct {
	store    *store.Store
	in       <-chan store.Message
	recorded bool
	now      func() time.Time
	show     func(feed.Viewport)
	fault    func() error // what is wrong with the recording

	model *model        // the screen that there would be
	all   bool          // what is printed is no page: it has everything
	asked feed.Viewport // of the feed
	came  feed.Viewport // answers to that
}

func (l *looker) view() *store.View { return l.store.View(l.now()) }

// ask asks for what is to be printed, as far as the nodes do not tell it by themselves.
func (l *looker) ask() {
	want := feed.Viewport{Health: true, Nodes: true, Shards: true, TopicList: true, Segments: &feed.SegmentsShown{}}
	if !l.all {
		l.model.view = l.view()
		want = l.model.viewport()
		if l.model.page == page.Topics {
			rows := page.Get(page.Topics).Rows(l.model.view, l.model.state())
			for i := range min(rows.Len(), feed.MostTopics) {
				want.Topics = append(want.Topics, rows.ID(i))
			}
		}
	}
	if !sameViewport(want, l.asked) {
		l.asked = want
		l.show(want)
	}
}

// take applies a message, and notes what it answers.
func (l *looker) take(m store.Message) {
	l.store.Apply(m)
	switch {
	case m.Health != nil:
		l.came.Health = true
	case m.Topics != nil:
		l.came.TopicList = true
	case m.Shards != nil:
		l.came.Shards = true
	case m.Segments != nil:
		l.came.Segments = &feed.SegmentsShown{}
	case m.Logs != nil:
		l.came.Logs = &feed.LogsShown{}
	case m.Topic != nil:
		l.came.Topics = append(l.came.Topics, m.Topic.Summary.Name)
	}
}

// complete reports whether all that was asked for has come. The verdict is wanted in any case: it is the exit code.
func (l *looker) complete() bool {
	for _, name := range l.asked.Topics {
		if !slices.Contains(l.came.Topics, name) {
			return false
		}
	}
	return l.came.Health && (l.came.TopicList || !l.asked.TopicList) && (l.came.Shards || !l.asked.Shards) &&
		(l.came.Segments != nil || l.asked.Segments == nil) && (l.came.Logs != nil || l.asked.Logs == nil)
}

// gather listens until the nodes have spoken for a while. A recording is heard to its end.
func (l *looker) gather(ctx context.Context) error {
	giveUp, enough := time.After(onceGiveUp), (<-chan time.Time)(nil)
	var latest <-chan time.Time
	look := time.NewTicker(onceLook)
	defer look.Stop()
	l.ask()
	for {
		select {
		case <-look.C:
			l.ask()
		case m, ok := <-l.in:
			if !ok {
				return l.heardAny()
			}
			l.take(m)
			if giveUp != nil && m.Node != "" && !l.recorded {
				giveUp, enough, latest = nil, time.After(onceWait), time.After(onceLatest)
			}
		case <-enough:
			if l.ask(); l.complete() {
				return nil
			}
			enough = time.After(onceLook)
		case <-latest:
			return nil
		case <-giveUp:
			if !l.recorded {
				return l.heardAny()
			}
			giveUp = nil
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errTimeUp) {
				return l.heardAny()
			}
			return context.Cause(ctx)
		}
	}
}

// heardAny fails when nothing was heard of any node.
func (l *looker) heardAny() error {
	v := l.view()
	switch {
	case v.Nodes.Len() > 0:
		return nil
	case !l.recorded:
		return failureOf(v.Cluster.Link)
	}
	if err := l.fault(); err != nil {
		return err
	}
	return invalid("replay: nothing was recorded of any node")
}

// wait listens for a while; it reports false when there is nothing more to come.
func (l *looker) wait(ctx context.Context, d time.Duration) bool {
	end := time.After(d)
	for {
		select {
		case m, ok := <-l.in:
			if !ok {
				l.in = nil
				if l.recorded {
					return false
				}
				continue
			}
			l.take(m)
		case <-end:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (l *looker) print(opts Options, streams *term.IOStreams) error {
	v, now := l.view(), l.now()
	var b bytes.Buffer
	switch opts.Format {
	case term.FormatJSON:
		doc, err := encode(newSnapshot(v, now))
		if err != nil {
			return err
		}
		b.Write(doc)
	case term.FormatJSONL:
		line, err := json.Marshal(newSnapshot(v, now))
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	default:
		b.WriteString(plainPage(opts, streams, v, now))
	}
	_, err := streams.Out.Write(b.Bytes())
	return err
}

// plainPage is a view as text: no colours, no keys, no more lines than it has.
func plainPage(opts Options, streams *term.IOStreams, v *store.View, now time.Time) string {
	w, h := onceWidth, onceHeight
	if streams.IsOutTTY() {
		w, _ = streams.Size()
	}
	if opts.Width > 0 {
		w, h = opts.Width, opts.Height
	}
	st := page.NewState()
	if f, err := ParseFilter(opts.Filter); err == nil {
		st.Filter = pageFilter(f)
	}
	st.Frame = page.Frame{Now: now, Location: time.Local, Version: opts.Version, Context: opts.Context.Name, Still: true, ReadOnly: true}
	c := component.NewCanvas(w, h, styles.NewTheme(styles.NoColor, asciiOnly(opts, streams)))
	page.Draw(c, page.Get(pageNamed(opts.View)), v, &st)
	return strings.TrimRight(strings.Join(c.Plain(), "\n"), "\n ") + "\n"
}

// unhealthy is why the exit code is not 0. Where nobody was asked for a verdict, what is seen decides.
func unhealthy(v *store.View) string {
	c := &v.Cluster
	switch {
	case !v.Health.At.IsZero():
		if v.Health.Worst == sdk.HealthFail {
			return "the cluster is not healthy"
		}
	case c.Link.State == store.LinkLost:
		return "no broker can be reached"
	case c.Dead > 0:
		return fmt.Sprintf("%d nodes are dead", c.Dead)
	case c.Shards > c.Leaders:
		return fmt.Sprintf("%d shards have no leader", c.Shards-c.Leaders)
	}
	return ""
}
