package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// flushWait is how long records that are on their way get after a Ctrl-C.
const flushWait = 5 * time.Second

// blockedSend is how long after a Ctrl-C a send may stay blocked. SendAsync waits for room in the producer's
// buffer and knows no context; closing the producer ends it.
const blockedSend = 200 * time.Millisecond

// patiently runs f, which should heed ctx, and leaves it behind when it has not returned by wait after the end of ctx.
func patiently(ctx context.Context, wait time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(wait):
		return context.Cause(ctx)
	}
}

// bulk is one publish of many records: the reader feeds the producer, acks come back on its goroutines.
type bulk struct {
	*publishOptions
	stream  *term.Stream // for machine formats, one ack a line
	holders ackHolders   // of acks that are printed; callbacks come one at a time

	mu        sync.Mutex
	acked     int64
	bytes     int64
	failed    int64
	first     error // the failure to report; one ends the input unless --continue-on-error
	unprinted error // an ack that could not be printed ends it in any case
	spans     map[sdk.RangeID]*offsetSpan
	stopped   chan struct{}
}

type offsetSpan struct{ first, last int64 }

func runPublishMany(ctx context.Context, o *publishOptions, client publishClient) error {
	whole := ctx // what is under way is waited for until its end
	if o.timeoutGiven() && o.set.timeout > 0 {
		var cancel, cancelWhole context.CancelFunc
		whole, cancelWhole = context.WithTimeout(ctx, o.set.timeout)
		defer cancelWhole()
		ctx, cancel = context.WithTimeout(whole, deliverIn(o.set.timeout))
		defer cancel()
	}
	src, err := o.source(ctx)
	if err != nil {
		return err
	}
	if err := o.reach(ctx, client.Admin(), o.topic); err != nil {
		return err
	}
	if o.count == 0 && o.io.IsInTTY() {
		o.note("reading records from the terminal; Ctrl-D ends")
	}
	p, err := client.NewProducer(o.topic, o.producer...)
	if err != nil {
		return err
	}
	b := &bulk{publishOptions: o, holders: ackHolders{admin: client.Admin()}, spans: map[sdk.RangeID]*offsetSpan{}, stopped: make(chan struct{})}
	if o.machine() {
		if b.stream, err = o.output().Stream(); err != nil {
			return errors.Join(err, p.Close(ctx))
		}
	}
	start := o.Now()
	progress := noProgress()
	if !o.io.IsInTTY() || o.count > 0 { // a terminal that is being typed into is not drawn on
		progress = o.startProgress(b.progressLine)
	}
	readErr := patiently(ctx, blockedSend, func() error { return b.feed(ctx, p, src) })
	flushErr := b.finish(whole, p)
	progress.stop()
	return b.conclude(ctx, client, o.Now().Sub(start), mostTelling(readErr, flushErr))
}

// feed sends records until the source ends, a record fails, or ctx does.
func (b *bulk) feed(ctx context.Context, p Producer, src recordSource) error {
	pace := newPacer(b.rate, b.Now())
	for n := int64(1); ; n++ {
		if err := pace.wait(ctx); err != nil {
			return err
		}
		r, err := src.next()
		var bad *inputError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			b.fail(err)
		case err != nil:
			return err
		default:
			sent := b.Now()
			if err := p.SendAsync(r, func(ack sdk.Ack, err error) { b.answered(ctx, n, r, ack, err, sent) }); err != nil {
				b.fail(err)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.stopped:
			return nil
		default:
		}
	}
}

func (b *bulk) answered(ctx context.Context, n int64, r sdk.Record, ack sdk.Ack, err error, sent time.Time) {
	if err != nil {
		b.fail(err)
		return
	}
	if b.stream != nil {
		ack = b.holders.complete(ctx, ack)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked++
	b.bytes += int64(len(r.Value))
	s, ok := b.spans[ack.Range]
	if !ok {
		s = &offsetSpan{ack.Offset, ack.Offset}
		b.spans[ack.Range] = s
	}
	s.first, s.last = min(s.first, ack.Offset), max(s.last, ack.Offset)
	if b.stream != nil {
		doc := newAckDocument(ack, b.topic, &r, n, b.Now().Sub(sent))
		if err := b.stream.Item(doc, nil); err != nil && b.unprinted == nil {
			b.unprinted = unprinted(err)
			b.stopLocked()
		}
	}
}

func (b *bulk) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failLocked(err)
}

func (b *bulk) failLocked(err error) {
	b.failed++
	if !b.goOn {
		b.stopLocked()
	}
	b.first = mostTelling(b.first, err)
}

// stopLocked ends the input.
func (b *bulk) stopLocked() {
	select {
	case <-b.stopped:
	default:
		close(b.stopped)
	}
}

// finish waits for the acks of what was sent. After a Ctrl-C it still waits a little, because those records are on
// their way and the summary should be true of them; before a deadline, feed has left it the last of the time.
func (b *bulk) finish(ctx context.Context, p Producer) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), flushWait)
		defer cancel()
	}
	err := p.Flush(ctx)
	if cerr := p.Close(ctx); err == nil {
		err = cerr
	}
	var e *sdk.Error
	if errors.Is(err, context.DeadlineExceeded) && (unknown(err) || !errors.As(err, &e)) {
		return errUnanswered()
	}
	return err
}

func errUnanswered() error {
	return errorf(sdk.CodeTimeout, "the time was up before every record was answered").WithOutcome(sdk.OutcomeUnknown).
		WithHint("those counted as failures may be stored or not: look before you send them again")
}

// conclude prints the summary line and chooses the error.
func (b *bulk) conclude(ctx context.Context, client publishClient, took time.Duration, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream != nil {
		if ferr := firstError(b.unprinted, unprinted(b.stream.Flush())); ferr != nil {
			return mostTelling(ferr, b.first, err)
		}
	}
	failed, first := b.failed, b.first
	if failed == 0 || b.acked > 0 {
		b.summary(took)
	}
	switch {
	case err != nil:
		return mostTelling(closedEarly(ctx, first), b.cutShort(err))
	case failed == 0:
		return nil
	case b.goOn:
		return someFailed(failed, failed+b.acked, first, unknown(first))
	}
	return b.suggestTopic(ctx, client.Admin(), b.topic, first)
}

// closedEarly tells why records failed over which the producer was closed, once the time was up: that it is closed is
// how, and nothing that anyone could mend.
func closedEarly(ctx context.Context, first error) error {
	if first == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) || sdk.CodeOf(first) != sdk.CodeShuttingDown {
		return first
	}
	if !unknown(first) {
		return nil // the time itself is the better reason
	}
	return errUnanswered()
}

// cutShort is the error of an input that --timeout ended: the brokers did answer, and what was acked is stored.
func (b *bulk) cutShort(err error) error {
	var e *sdk.Error
	if b.acked == 0 || errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errorf(sdk.CodeTimeout, "the time was up before the end of the input").WithOutcome(sdk.OutcomeApplied).
		WithHint("go on behind the records counted above, or raise --timeout")
}

// summary is one line: on stdout for people, on stderr beside a machine format.
func (b *bulk) summary(took time.Duration) {
	w := b.io.Out
	if b.machine() {
		if w = b.io.Err; b.flags.quiet {
			return
		}
	}
	line := fmt.Sprintf("%s  %s  %s", b.topic, plural(b.acked, "record"), b.set.bytesMode.Format(b.bytes))
	if text := b.spanText(); text != "" {
		line += "  " + text
	}
	line += "  " + term.FormatTook(took)
	if took > 0 && b.acked > 1 {
		line += "  " + term.FormatRate(float64(b.acked)/took.Seconds()) + " records/s"
	}
	if b.failed > 0 {
		line += "  " + plural(b.failed, "failure")
	}
	fprintf(w, "%s\n", line)
}

// spanText names the offsets written, as long as the ranges are few.
func (b *bulk) spanText() string {
	if len(b.spans) > 3 {
		return plural(int64(len(b.spans)), "range")
	}
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(b.spans)) {
		if s := b.spans[r]; s.first == s.last {
			parts = append(parts, fmt.Sprintf("%s @%d", r, s.first))
		} else {
			parts = append(parts, fmt.Sprintf("%s @%d..@%d", r, s.first, s.last))
		}
	}
	return strings.Join(parts, "  ")
}

func (b *bulk) progressLine(elapsed time.Duration) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate := float64(b.acked) / max(elapsed.Seconds(), 0.001)
	return fmt.Sprintf("%s  %s  %s records/s  %s/s", plural(b.acked, "record"), b.set.bytesMode.Format(b.bytes),
		term.FormatRate(rate), b.set.bytesMode.Format(int64(float64(b.bytes)/max(elapsed.Seconds(), 0.001))))
}
