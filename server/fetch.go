package server

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/keyspace"
	"github.com/eastguard/eastguard/internal/mux"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

const (
	maxFetchBytes = 64 << 20         // of one answer; a single batch may be larger
	maxFetchWait  = 30 * time.Second // a client that wants to wait longer asks again
)

// fetch reads whole batches of several ranges. An answer that would be too small waits for more, as long as the
// client allows and no range has something else to tell. While it waits it holds no goroutine and no bytes: the
// store wakes it, and it reads afresh.
func (s *Server) fetch(ctx context.Context, r *mux.Request) {
	f := &fetch{s: s, r: r}
	if err := wire.Decode(r.Message, &f.req); err != nil {
		r.Fail(err)
		return
	}
	wait := min(time.Duration(f.req.MaxWaitMs)*time.Millisecond, maxFetchWait)
	f.deadline = r.Arrived.Add(wait)
	f.ctx = ctx
	if err := s.fetchPool.run(f.serve); err != nil {
		r.Fail(err)
	}
}

// fetch is one request until its answer.
type fetch struct {
	s        *Server
	r        *mux.Request
	req      wire.FetchRequest
	ctx      context.Context // of the connection
	deadline time.Time
	gapUntil time.Time // how long it waits at the end of a segment for the next one; zero: it has not yet
}

// answer is what the ranges have at one moment.
type answer struct {
	wire.FetchResponse
	parts []vfs.Part
	bytes int
	news  bool // a range has something to tell that is no record
}

func (f *fetch) serve() {
	defer f.s.survive(f.r)
	a := f.read()
	if a.bytes >= int(min(f.req.MinBytes, f.req.MaxBytes)) || a.news || !time.Now().Before(f.deadline) || f.ctx.Err() != nil || f.s.closing.Load() {
		f.reply(a)
		return
	}
	if !f.park(a) { // too many wait, or the broker is stopping: what is there is an answer too
		f.reply(a)
	}
}

func (f *fetch) reply(a *answer) {
	f.s.rates.out.Add(uint64(a.bytes))
	for i := range a.Ranges {
		f.s.rates.outRecords.Add(uint64(max(a.Ranges[i].Next-f.req.Ranges[i].Offset, 0))) // offsets are dense
	}
	f.r.Reply(wire.Encode(a.FetchResponse), a.parts...)
}

// read asks the store for every range, within the request's bytes. The first range with data is always given one
// batch, however large, or a large batch could never be read.
func (f *fetch) read() *answer {
	a := &answer{FetchResponse: wire.FetchResponse{Ranges: make([]wire.FetchRangeResult, 0, len(f.req.Ranges))}}
	budget := min(int(f.req.MaxBytes), maxFetchBytes)
	for i := range f.req.Ranges {
		a.Ranges = append(a.Ranges, f.readRange(&f.req.Ranges[i], a, budget))
	}
	return a
}

// readRange reads one range, across the ends of sealed segments for as long as its bytes last.
func (f *fetch) readRange(q *wire.FetchRange, a *answer, budget int) wire.FetchRangeResult {
	ref := base.RangeRef{Topic: q.Topic, Range: q.Range}
	result := wire.FetchRangeResult{Topic: q.Topic, Range: q.Range, State: wire.FetchActive, Next: q.Offset}
	if q.Offset < 0 {
		result.Code, a.news = base.CodeOffsetOutOfRange, true
		return result
	}
	var span *keyspace.Span
	if q.Span != keyspace.Full {
		span = &q.Span
	}
	for {
		room := min(int(q.MaxBytes)-int(result.PayloadLen), budget-a.bytes)
		if room <= 0 && a.bytes > 0 {
			a.news = true // there is more than this answer may hold: nothing to wait for
			return result
		}
		got, err := f.s.store.Read(ref, result.Next, max(room, 1), span)
		if err != nil {
			f.refuse(&result, q, err, a)
			return result
		}
		if got.Bytes > room && a.bytes > 0 { // the store gives one batch in any case; this one is for the next answer
			got.Release()
			a.news = true
			return result
		}
		moved := got.Next > result.Next
		result.Commit, result.Earliest, result.Segment = got.Commit, got.Earliest, got.Segment
		result.PayloadLen += uint32(got.Bytes)
		result.Next = got.Next
		a.bytes += got.Bytes
		a.parts = append(a.parts, got.Parts...)
		result.State, result.End = wire.FetchActive, 0
		switch {
		case got.Sealed:
			result.State, result.End = wire.FetchNext, got.End
			if !moved && (f.waitedAtGap() || !f.s.plane.ComesHere(ref, got.End)) {
				a.news = true // the range goes on elsewhere: there is nothing here to wait for
			}
			if !moved {
				return result
			}
		case got.Next >= got.Commit || !moved:
			f.atCommit(&result, q, got.End >= 0, a)
			return result
		}
	}
}

// waitedAtGap reports whether the fetch has waited long enough for the successor of a segment to open here. Usually it does
// within milliseconds; if it does not, it may well be open at another replica.
func (f *fetch) waitedAtGap() bool { return !f.gapUntil.IsZero() && !time.Now().Before(f.gapUntil) }

// atCommit ends the reading of a range at what this node can prove of it. If it would hear of more at once, the fetch
// may wait for that; a copy that has been cut off, or was sealed short of its end, learns nothing by waiting, and says so
// once it has nothing else to give.
func (f *fetch) atCommit(result *wire.FetchRangeResult, q *wire.FetchRange, sealed bool, a *answer) {
	ref := base.RangeRef{Topic: q.Topic, Range: q.Range}
	hears := !sealed && f.s.hears(ref, result.Segment, result.Next)
	if !hears {
		a.news = true
	}
	if result.PayloadLen > 0 || result.Next > q.Offset {
		return // monotonic reads are about what follows: below the commit everybody has the same
	}
	// The client may have been told of a higher commit, by another replica or by this one before it started anew.
	above := max(q.SeenCommit, q.Offset)
	if hears && above <= result.Commit {
		return
	}
	if end, cut := f.s.cutBelow(ref, above); hears && cut {
		if q.Offset > result.Commit {
			result.Code, result.End, a.news = base.CodeTruncated, end, true
		}
		return
	}
	result.Code = base.CodeBehind
	f.s.plane.Want(ref)
}

// refuse turns a range's error into its result. Batches that were read before the error stand; the client meets it
// when it goes on from there.
func (f *fetch) refuse(result *wire.FetchRangeResult, q *wire.FetchRange, err error, a *answer) {
	if result.PayloadLen > 0 {
		a.news = true
		return
	}
	code := base.CodeOf(err)
	ref := base.RangeRef{Topic: q.Topic, Range: q.Range}
	result.Earliest = f.s.earliest(ref)
	switch {
	case code == base.CodeBehind:
		at, _ := f.s.segmentAt(ref, q.Offset)
		result.Segment, result.Commit = at.Segment, at.Commit
		f.atCommit(result, q, at.State == base.StateSealed, a)
		return
	case code == base.CodeNotReplica && f.s.plane.Deleted(q.Topic):
		code = base.CodeTopicNotFound
	case code == base.CodeNotReplica && q.Offset < result.Earliest: // it was told of the trim, whatever it holds
		code = base.CodeOffsetOutOfRange
	case code == base.CodeInternal || code == base.CodeCorruptData:
		f.s.deps.Logger.Error("read failed", "topic", q.Topic.String(), "range", q.Range.String(), "offset", q.Offset, "error", err)
	}
	if b, ok := f.s.bounds(f.ctx, ref); ok {
		result.Commit = b.commit
	}
	result.Code, a.news = code, true
}

// hears reports whether whatever becomes committed behind an offset is known here at once: this process leads the segment
// there, or hears who does. A copy from before the last start was cut off then.
func (s *Server) hears(ref base.RangeRef, seg base.SegmentID, offset int64) bool {
	if info, ok := s.store.Info(seg); ok && info.Boot != s.id.Boot {
		return false
	}
	return s.hearsOn(ref, offset)
}

// hearsOn is hears for a copy of this start. One that lies before a newer segment here is an old one, of which this node
// has not been told how it ended; whom it hears now has nothing to say about that.
func (s *Server) hearsOn(ref base.RangeRef, offset int64) bool {
	return s.plane.Newest(ref) <= offset && s.plane.Hears(ref) && !s.mayGoOnElsewhere(ref)
}

// lastSegmentHere is the newest copy here of a range's segments.
func (s *Server) lastSegmentHere(ref base.RangeRef) (last store.SegmentInfo, ok bool) {
	segments := s.store.Segments(ref)
	if len(segments) == 0 {
		return last, false
	}
	return segments[len(segments)-1], true
}

// segmentAt is the copy here of the segment in which an offset lies.
func (s *Server) segmentAt(ref base.RangeRef, offset int64) (at store.SegmentInfo, ok bool) {
	for _, info := range s.store.Segments(ref) {
		if info.Base <= offset {
			at, ok = info, true
		}
	}
	return at, ok
}

// earliest is where a range begins, by what was committed, as far as this node was told. What it holds itself may begin
// later.
func (s *Server) earliest(ref base.RangeRef) int64 {
	told, _ := s.plane.Earliest(ref)
	return max(told, s.store.TrimmedTo(ref))
}
