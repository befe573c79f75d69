package sdk

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/wire"
)

// fetch is one request to one broker for some of its ranges.
type fetch struct {
	k         *Consumer
	broker    *broker
	conn      *mux.Conn
	cursors   []*cursor
	gens      []uint64 // of the cursors when it was made
	sentAt    time.Time
	pinged    time.Time // when its connection was looked after, since it is late
	abandoned bool
	req       wire.FetchRequest
}

// lagPause is how long a reader waits after n rounds in which no replica could serve it: 100 ms, doubling to 1 s, of which
// half is up to chance.
func lagPause(n int) time.Duration {
	d := min(100*time.Millisecond<<min(max(n-1, 0), 4), time.Second)
	return d/2 + rand.N(d/2+1)
}

// newFetch asks for the given ranges, within what may still be fetched ahead.
func (k *Consumer) newFetchLocked(b *broker, conn *mux.Conn, cursors []*cursor, now time.Time) *fetch {
	f := &fetch{k: k, broker: b, conn: conn, cursors: cursors, sentAt: now}
	room := max(min(int64(k.cfg.fetchMaxBytes), k.cfg.prefetchBytes-k.queued), 1)
	f.req = wire.FetchRequest{
		MaxWaitMs: uint32(min(k.cfg.maxWait.Milliseconds(), math.MaxUint32)), MinBytes: 1,
		MaxBytes: uint32(min(room, math.MaxUint32)), Ranges: make([]wire.FetchRange, len(cursors)),
	}
	for i, cur := range cursors {
		cur.fetching = true
		f.gens = append(f.gens, cur.gen)
		f.req.Ranges[i] = wire.FetchRange{
			Topic: cur.ref.Topic, Range: cur.ref.Range, Offset: cur.next,
			MaxBytes: uint32(min(k.cfg.rangeMaxBytes, math.MaxUint32)), SeenCommit: cur.commit,
		}
	}
	k.fetches = append(k.fetches, f)
	return f
}

// send lets the fetch go. It holds no lock.
func (f *fetch) send() {
	_, err := f.conn.Go(wire.KindFetch, wire.Encode(&f.req), nil, f.answered)
	if err != nil {
		f.answered(mux.Response{}, err)
	}
}

// answered takes the answer, on the connection's reader: it must not block, so nothing is decoded here.
func (f *fetch) answered(r mux.Response, err error) {
	var resp wire.FetchResponse
	if err == nil {
		err = wire.Decode(r.Message, &resp)
	}
	if err == nil && len(resp.Ranges) != len(f.cursors) {
		err = base.Errorf(base.CodeInternal, "fetch", "%d ranges were asked for, %d answered", len(f.cursors), len(resp.Ranges))
	}
	now := time.Now()
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.abandoned {
		return // its ranges are fetched elsewhere by now
	}
	k.doneLocked(f)
	payload := r.Payload
	for i, cur := range f.cursors {
		var part []byte
		if err == nil {
			n := min(int(resp.Ranges[i].PayloadLen), len(payload))
			part, payload = payload[:n:n], payload[n:]
		}
		if cur.gen != f.gens[i] {
			continue // a seek came in between, and has set the cursor free
		}
		cur.fetching = false
		if err != nil {
			cur.failedLocked(err, now)
			continue
		}
		cur.applyLocked(&resp.Ranges[i], part, now)
	}
	k.nudge()
}

// abandonLocked stops waiting for an answer: the ranges are free to be fetched elsewhere, and what comes is not looked at.
func (f *fetch) abandonLocked(now time.Time) {
	f.k.doneLocked(f)
	silence := base.Errorf(base.CodeUnreachable, "fetch", "node %s has not said a word for %v", f.conn.Hello().Node, now.Sub(f.sentAt).Round(time.Millisecond))
	for i, cur := range f.cursors {
		if cur.gen != f.gens[i] {
			continue
		}
		cur.fetching = false
		cur.elsewhereLocked(silence, now)
	}
	f.abandoned = true
	f.k.nudge()
}

func (k *Consumer) doneLocked(f *fetch) {
	for i, other := range k.fetches {
		if other == f {
			k.fetches = append(k.fetches[:i], k.fetches[i+1:]...)
			return
		}
	}
}

// failedLocked takes an error, of the whole fetch or of one range.
func (cur *cursor) failedLocked(err error, now time.Time) {
	switch code := base.CodeOf(err); {
	case code == base.CodeCorruptData:
		cur.damagedLocked(cur.broker.node(), err, now)
	case code == base.CodeBehind:
		cur.elsewhereLocked(err, now)
	case code == base.CodeTopicNotFound || code == base.CodeRangeNotFound || code == base.CodeRangeMoved:
		cur.t.wanted = true // if the topic is gone, that will be said by the route
		cur.roundOverLocked(err, now)
		cur.trimmedLocked(code)
	case remedyFor(err) == waitHere:
		cur.retryLocked(err, now)
	case code == base.CodeUnreachable && cur.broker != nil && cur.failures == 0:
		// The connection is gone, which need not mean the broker: it is found out by dialling it again.
		cur.retryLocked(err, now)
		cur.notBefore, cur.broker = now, nil
	case remedyFor(err) == goElsewhere && cur.broker != nil:
		cur.elsewhereLocked(err, now)
	case remedyFor(err) == goElsewhere:
		cur.roundOverLocked(err, now)
	default:
		cur.failLocked(about("read "+cur.position().String(), err))
	}
}

// aheadLocked reports whether records have been fetched that Poll has not returned.
func (cur *cursor) aheadLocked() bool { return cur.pos < cur.next }

// trimmedLocked finishes a range that is no more though its topic is: retention has removed it whole.
func (cur *cursor) trimmedLocked(code base.Code) {
	if code == base.CodeRangeNotFound && cur.t.route.byRange[cur.ref.Range] == nil && len(cur.chunks) == 0 {
		cur.state = cursorFinished
		cur.t.releaseLocked()
	}
}

// applyLocked takes one range's part of an answer.
func (cur *cursor) applyLocked(r *wire.FetchRangeResult, data []byte, now time.Time) {
	switch {
	case r.Code == base.CodeOffsetOutOfRange:
		cur.outOfRangeLocked(r, now)
		return
	case r.Code == base.CodeTruncated:
		cur.failLocked(base.Errorf(base.CodeTruncated, "read "+cur.position().String(), "an operator cut the range at %d", r.End))
		return
	case r.Code != base.CodeOK:
		cur.failedLocked(&base.Error{Code: r.Code, Op: "fetch", Node: cur.broker.node()}, now)
		return
	case len(data) == 0 && r.State == wire.FetchNext:
		// The range goes on in another segment, which this broker does not hold.
		cur.commit = max(cur.commit, r.Commit)
		cur.notBefore = now.Add(requestBackoff.wait(cur.failures)) // the first time at once
		cur.failures++
		cur.replicas.goesOn()
		cur.broker = nil
		return
	case len(data) == 0 && r.State == wire.FetchActive && r.Commit < cur.commit:
		// "Nothing more", says a replica that knows less than another has proved. Believing it would move the end
		// backwards.
		cur.failedLocked(&base.Error{Code: base.CodeBehind, Op: "fetch"}, now)
		return
	}
	next, err := checkChain(data, cur.next)
	if err != nil {
		cur.failedLocked(cur.corrupt(err), now)
		return
	}
	cur.failures = 0
	cur.commit = max(cur.commit, r.Commit)
	if !cur.damage.openLocked(cur) { // else only what Poll finds in it says whether this was of use
		cur.lastErr = nil
		cur.replicas.served(cur.broker.node(), r.Segment)
	}
	if len(data) > 0 {
		cur.next = next
		cur.chunks = append(cur.chunks, chunk{data: data, from: cur.broker.node()})
		cur.k.queued += int64(len(data))
		cur.enqueueLocked()
	}
	if r.State == wire.FetchSealed {
		cur.end = r.End
		cur.checkEndLocked()
	}
}

// corrupt says that what was fetched does not hold together.
func (cur *cursor) corrupt(err error) error {
	e := about("read "+cur.position().String(), err)
	e.Code, e.Hint = base.CodeCorruptData, ""
	return e
}

// outOfRangeLocked resets the range as the policy says, or stops it. Records that were fetched before are returned
// first: they are no less true for what has been trimmed since.
func (cur *cursor) outOfRangeLocked(r *wire.FetchRangeResult, now time.Time) {
	if cur.aheadLocked() {
		cur.retryLocked(&base.Error{Code: base.CodeOffsetOutOfRange, Op: "fetch"}, now)
		return
	}
	end := max(r.Commit, r.End)
	switch cur.k.cfg.reset {
	case ResetEarliest:
		cur.k.c.cfg.logger.Warn("offset out of range; going on from the earliest", "position", cur.position(), "earliest", r.Earliest)
		cur.seekLocked(r.Earliest)
	case ResetLatest:
		cur.k.c.cfg.logger.Warn("offset out of range; going on from the end", "position", cur.position(), "end", end)
		cur.seekLocked(end)
	case ResetNone:
		if cur.k.cfg.start.kind == startEarliest && cur.pos < r.Earliest && cur.untouched() {
			// The oldest segment was removed between the look at its start and the first fetch. Who asked for the
			// earliest record has still not missed one.
			cur.seekLocked(r.Earliest)
			return
		}
		cur.failLocked(&OffsetOutOfRangeError{Position: cur.position(), Earliest: r.Earliest, End: end})
	}
}

// untouched reports whether nothing of the range has been returned yet.
func (cur *cursor) untouched() bool { return cur.epoch == 0 && len(cur.chunks) == 0 }

// checkChain walks the headers of fetched batches: they must follow each other without a gap, and the first must
// hold the offset that was asked for. The result is the offset behind the last one. CRCs are for Poll to check.
func checkChain(data []byte, want int64) (next int64, err error) {
	next = want
	for first := true; len(data) > 0; first = false {
		h, err := header.Parse(data)
		if err != nil {
			return 0, err
		}
		switch {
		case h.Size() > len(data):
			return 0, base.Errorf(base.CodeCorruptData, "", "the answer ends within the batch at %d", h.BaseOffset)
		case first && (h.BaseOffset > want || h.End() <= want):
			return 0, base.Errorf(base.CodeCorruptData, "", "the answer begins with [%d, %d), which does not hold %d", h.BaseOffset, h.End(), want)
		case !first && h.BaseOffset != next:
			return 0, base.Errorf(base.CodeCorruptData, "", "the batch at %d follows one that ends at %d", h.BaseOffset, next)
		}
		next = h.End()
		data = data[h.Size():]
	}
	return next, nil
}
