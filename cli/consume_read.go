package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type consumeClient interface {
	NewConsumer(opts ...sdk.ConsumerOption) (Consumer, error)
	Admin() Admin
}

func runConsume(ctx context.Context, o *consumeOptions, client consumeClient) error {
	if err := o.checkFrom(ctx, client.Admin()); err != nil {
		return err
	}
	plan, err := o.plan(ctx, client.Admin())
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, err)
	}
	c, err := client.NewConsumer(append(plan.options, sdk.WithReadFrom(o.from))...)
	if err != nil {
		return err
	}
	r := &reading{consumeOptions: o, until: plan.until, forMachine: o.machine()}
	if r.stream, err = o.output().Stream(); err != nil {
		return errors.Join(err, c.Close())
	}
	err = r.run(ctx, c)
	if ferr := r.finish(); err == nil {
		err = ferr
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return o.suggestTopic(ctx, client.Admin(), o.topic, err)
	}
	return r.verdict()
}

// checkFrom refuses a node to read from that is none: everything would be read elsewhere, without a word.
func (o *consumeOptions) checkFrom(ctx context.Context, admin nodeLister) error {
	if o.fromNode == "" {
		return nil
	}
	ctx, cancel := o.answerIn(ctx)
	defer cancel()
	list, err := admin.ListNodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range list.Nodes {
		if string(n.ID) == o.fromNode {
			return nil
		}
	}
	return o.suggestNode(ctx, admin, o.fromNode, errorf(sdk.CodeNodeNotFound, "node %q is not a member of the cluster", o.fromNode))
}

// reading is one consume under way.
type reading struct {
	*consumeOptions
	stream *term.Stream
	until  *untilTracker
	held   []sdk.Message // --order time
	bytes  int
	read   int64
	shown  int64
	why    string // why it ended, for the note

	forMachine bool
}

// maxHeld bounds what --order time sorts in memory.
const maxHeld = 256 << 20

// run polls until there is a reason to stop. Those reasons are normal ends; an error is none.
func (r *reading) run(ctx context.Context, c Consumer) error {
	if r.timeoutGiven() && r.set.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.set.timeout, errTimeUp)
		defer cancel()
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.tellOfLoss(watching, c) })
	defer watch.Wait()
	defer stop()
	for {
		messages, err := r.poll(ctx, c)
		for i := range messages {
			stop, err := r.take(&messages[i])
			if err != nil || stop {
				return err
			}
		}
		if err != nil {
			return r.ended(ctx, err)
		}
		// A pause in the stream is when a reader of the pipe wants what there is.
		if err := r.stream.Flush(); err != nil {
			return err
		}
		if r.until.allDone() {
			r.why = "as far as asked"
			return nil
		}
	}
}

const (
	lostAfter  = 2 * time.Second // a broker that restarts is back sooner, and no news
	stuckAfter = 5 * time.Second // a range that goes over to other replicas is read again sooner
	lostLook   = 250 * time.Millisecond
)

// trouble is why nothing can come, to whoever waits.
type trouble struct {
	text  string // "" = nothing is wrong
	over  string // what is told when it has passed
	after time.Duration
}

// troubleOf is the trouble behind the error that a range is tried again for.
func troubleOf(err error) trouble {
	switch code := sdk.CodeOf(err); {
	case err == nil:
		return trouble{}
	case code == sdk.CodeUnreachable || code == sdk.CodeTimeout:
		return trouble{"no broker answers", "connected again", lostAfter}
	}
	return trouble{"a range cannot be read at present", "all ranges are read again", stuckAfter}
}

// tellOfLoss tells whoever waits why nothing can come, and when that is over.
func (r *reading) tellOfLoss(ctx context.Context, c Consumer) {
	ticker := time.NewTicker(lostLook)
	defer ticker.Stop()
	var now, since time.Time
	var told, last trouble
	for {
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		err := c.LastError()
		is := troubleOf(err)
		if is != last {
			last, since = is, now
		}
		switch {
		case is == told:
		case is.text == "":
			r.note("%s", told.over)
			told = is
		case now.Sub(since) >= is.after:
			r.note("%s (%s); trying again", is.text, term.Escape(describe(err).Message))
			told = is
		}
	}
}

var errIdle = errors.New("nothing new came")

func (r *reading) poll(ctx context.Context, c Consumer) ([]sdk.Message, error) {
	if r.idle == 0 {
		return c.Poll(ctx)
	}
	once, cancel := context.WithTimeoutCause(ctx, r.idle, errIdle)
	defer cancel()
	messages, err := c.Poll(once)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(once), errIdle) {
		return messages, errIdle
	}
	return messages, err
}

// ended turns the way polling ended into a note, or an error.
func (r *reading) ended(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		r.why = "caught up"
		return nil
	case errors.Is(err, errIdle):
		r.why = "nothing new for " + term.FormatSpan(r.idle)
		return nil
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeUp):
		r.why = "the time is up"
		return nil
	case ctx.Err() != nil:
		r.why = "stopped"
		r.Session.ended = r.follow
		return context.Cause(ctx)
	}
	return err
}

// take prints one message, if it is wanted, and reports whether it was the last.
func (r *reading) take(m *sdk.Message) (stop bool, err error) {
	if r.until.beyond(m) {
		return false, nil
	}
	r.read++
	ok, err := r.filter.match(m, r.binary)
	if err != nil || !ok {
		return false, err
	}
	if r.byTime {
		r.held = append(r.held, *m)
		if r.bytes += len(m.Key) + len(m.Value) + 128; r.bytes > maxHeld {
			return false, usagef("--order time holds at most %d MiB of records", maxHeld>>20).WithHint("narrow what is read: -n, -r, -k, @TIME")
		}
	} else if err := r.print(m); err != nil {
		return false, err
	}
	r.shown++
	if r.count > 0 && r.shown == r.count {
		r.why = "as asked"
		return true, nil
	}
	if r.follow && r.expect >= 0 && r.shown == r.expect {
		r.why = "as expected"
		return true, nil
	}
	return false, nil
}

func (r *reading) print(m *sdk.Message) error {
	switch w := r.stream.Text(); {
	case r.forMachine:
		return r.stream.Item(r.document(m), nil)
	case r.format != nil:
		return r.format.write(w, m, r.io.IsOutTTY())
	case r.pretty:
		return writePretty(w, m, r.human(), r.io.OutStyle())
	default:
		return r.writeLine(w, m)
	}
}

func (r *reading) document(m *sdk.Message) recordDocument {
	doc := newRecordDocument(m, r.binary)
	if r.metaOnly {
		doc.Key, doc.KeyB64, doc.KeyHex = term.Text{}, "", ""
		doc.Value, doc.ValueB64, doc.ValueHex = term.Text{}, "", ""
		doc.Route, doc.RouteB64, doc.RouteHex = term.Text{}, "", ""
	}
	return doc
}

// writeLine is the default: @0  12:04:31.207  r1  user123  Hello EastGuard!
func (r *reading) writeLine(w *bufio.Writer, m *sdk.Message) error {
	key, value := shownOr(m.Key, "-"), shownOr(m.Value, "<null>")
	if r.metaOnly {
		key, value = sizeOf("key", m.Key), sizeOf("value", m.Value)+"  "+plural(int64(len(m.Headers)), "header")
	}
	_, err := fmt.Fprintf(w, "@%d  %s  %s  %s  %s\n", m.Offset, r.set.timeMode.FormatStamp(m.Timestamp, r.Now()), m.Range, key, value)
	return err
}

func shownOr(b []byte, null string) string {
	if b == nil {
		return null
	}
	return shown(b)
}

func sizeOf(what string, b []byte) string {
	if b == nil {
		return what + " null"
	}
	return what + " " + term.BytesIEC.Format(int64(len(b)))
}

// finish prints what --order time held back and the note.
func (r *reading) finish() error {
	if r.byTime {
		sortByTime(r.held)
		for i := range r.held {
			if err := r.print(&r.held[i]); err != nil {
				return err
			}
		}
	}
	if err := r.stream.Flush(); err != nil {
		return err
	}
	if r.why != "" {
		r.note("%s", r.closing())
	}
	return nil
}

// closing is the note on stderr: 1 record, caught up (asked for up to 10). -f to follow.
func (r *reading) closing() string {
	text := plural(r.shown, "record")
	if r.shown != r.read {
		text = term.FormatCount(r.shown) + " of " + plural(r.read, "record") + " read"
	}
	text += ", " + r.why
	if r.why != "caught up" {
		return text + "."
	}
	if r.count > 0 {
		text += fmt.Sprintf(" (asked for up to %d)", r.count)
	}
	return text + ". -f to follow."
}

func (r *reading) verdict() error {
	if r.expect < 0 || r.shown == r.expect {
		return nil
	}
	return errorf(sdk.CodeNotMet, "%s came, %d expected", plural(r.shown, "record"), r.expect).WithHint("see what came above")
}
