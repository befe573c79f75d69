package rangestate

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/header"
)

// twin is a State by the book and without a thought for speed: it keeps every batch it was ever told and answers each
// question by going through them all.
type twin struct {
	log     []told
	commit  int64
	expires []expiry
}

type told struct {
	h        header.Header
	base, ms int64
}

type expiry struct {
	at int64 // commit at which it was asked
	ms int64
}

type known struct {
	id      int64
	epoch   int16
	batches []told // the committed ones cut to Window
	lastMs  int64
}

// state replays the log up to end: the producers, oldest last batch first.
func (w *twin) state(end int64, window int) (ps []known, forgot bool) {
	expire := func(at int64) {
		for _, e := range w.expires {
			if e.at != at {
				continue
			}
			ps = slices.DeleteFunc(ps, func(p known) bool {
				old := e.ms-p.lastMs > TTLMs
				forgot = forgot || old
				return old
			})
		}
	}
	expire(0)
	for _, b := range w.log {
		if b.base >= end {
			break
		}
		if b.h.HasProducer() {
			i := slices.IndexFunc(ps, func(p known) bool { return p.id == b.h.ProducerID })
			p := known{id: b.h.ProducerID, epoch: b.h.ProducerEpoch}
			if i >= 0 {
				p = ps[i]
				ps = slices.Delete(ps, i, i+1)
			}
			if p.epoch != b.h.ProducerEpoch {
				p = known{id: p.id, epoch: b.h.ProducerEpoch}
			}
			p.batches = append(slices.Clone(p.batches), b)
			if len(p.batches) > window {
				p.batches = p.batches[1:]
			}
			p.lastMs = b.ms
			ps = append(ps, p)
			if len(ps) > MaxProducers {
				ps, forgot = ps[1:], true
			}
		}
		if b.base < w.commit {
			expire(b.base + int64(b.h.Records))
		}
	}
	return ps, forgot
}

func (w *twin) check(h header.Header) Verdict {
	if !h.HasProducer() {
		return Verdict{Kind: Accept}
	}
	// What was appended: the committed window of each producer, and everything pending behind it.
	committed, _ := w.state(w.commit, Window)
	var seen []told
	epoch, isKnown, next := int16(0), false, int32(0)
	for _, p := range committed {
		if p.id == h.ProducerID {
			seen, epoch, isKnown = p.batches, p.epoch, true
		}
	}
	for _, b := range w.log {
		if b.base >= w.commit && b.h.ProducerID == h.ProducerID {
			seen, epoch, isKnown = append(slices.Clone(seen), b), b.h.ProducerEpoch, true
		}
	}
	if !isKnown {
		if h.BaseSequence == 0 {
			return Verdict{Kind: Accept}
		}
		return Verdict{Kind: UnknownProducer}
	}
	if h.ProducerEpoch < epoch {
		return Verdict{Kind: ProducerFenced}
	}
	if h.ProducerEpoch == epoch {
		for _, b := range slices.Backward(seen) {
			if b.h.ProducerEpoch == epoch && b.h.BaseSequence == h.BaseSequence && b.h.LastSequence() == h.LastSequence() {
				return Verdict{Kind: Duplicate, Base: b.base, AppendMs: b.ms}
			}
		}
		next = int32((int64(seen[len(seen)-1].h.LastSequence()) + 1) % (math.MaxInt32 + 1))
	}
	if h.BaseSequence != next {
		return Verdict{Kind: OutOfOrder}
	}
	return Verdict{Kind: Accept}
}

func (w *twin) end() int64 {
	if n := len(w.log); n > 0 {
		return w.log[n-1].base + int64(w.log[n-1].h.Records)
	}
	return 0
}

func batchOf(id int64, epoch int16, seq, records int32) header.Header {
	return header.Header{ProducerID: id, ProducerEpoch: epoch, BaseSequence: seq, Records: records, LastOffsetDelta: records - 1}
}

// compare asks that the committed part of s is what the twin comes to.
func compare(t require.TestingT, w *twin, s *State) {
	want, forgot := w.state(w.commit, Window)
	got := []known{}
	for p := s.oldest; p != nil; p = p.newer {
		k := known{id: p.id, epoch: p.epoch, lastMs: p.lastMs}
		for _, b := range p.window[:p.n] {
			k.batches = append(k.batches, told{base: b.base, ms: b.ms, h: batchOf(p.id, p.epoch, b.first, (b.last-b.first)&math.MaxInt32+1)})
		}
		got = append(got, k)
	}
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	require.Equal(t, forgot, s.ForgotAny())
	require.Equal(t, len(want), s.Len())
}

// TestAgainstTwin drives both with whatever a range can meet, and compares every verdict and every state. The state is
// also exchanged for its clone or for its decoded encoding at any moment: nothing may notice.
func TestAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := &twin{}, New()
		now := int64(1000)
		next := func(id int64) (int16, int32) { e, n, _ := s.Producer(id); return e, n }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				id := rapid.Int64Range(header.NoProducer, 4).Draw(t, "id")
				epoch, seq := next(id)
				records := rapid.Int32Range(1, 3).Draw(t, "records")
				switch rapid.IntRange(0, 9).Draw(t, "kind") {
				case 0:
					epoch++
					seq = 0
				case 1:
					seq = rapid.Int32Range(0, 12).Draw(t, "seq")
				case 2:
					epoch = rapid.Int16Range(0, 3).Draw(t, "epoch")
				case 3: // a retry, if there is something to retry
					if n := len(w.log); n > 0 {
						b := w.log[rapid.IntRange(0, n-1).Draw(t, "which")].h
						id, epoch, seq, records = b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Records
					}
				case 4:
					if _, _, ok := s.Producer(id); !ok && id >= 0 {
						seq = 0
						records = math.MaxInt32 // the next one is close to the wrap
					}
				}
				h := batchOf(id, epoch, seq, records)
				if h.ProducerID == header.NoProducer {
					h.BaseSequence, h.ProducerEpoch = -1, -1
				}
				v := s.Check(h)
				require.Equal(t, w.check(h), v)
				if v.Kind != Accept {
					return
				}
				now += rapid.Int64Range(0, 10).Draw(t, "ms")
				b := told{h: h, base: w.end(), ms: now}
				w.log = append(w.log, b)
				s.Append(h, b.base, now)
				require.Equal(t, w.end(), s.End())
			},
			"commit": func(t *rapid.T) {
				n := rapid.IntRange(0, len(w.log)).Draw(t, "upto")
				end := int64(0)
				if n > 0 {
					end = w.log[n-1].base + int64(w.log[n-1].h.Records)
				}
				w.commit = max(w.commit, end)
				s.Commit(end)
			},
			"rollback": func(t *rapid.T) {
				n := rapid.IntRange(0, len(w.log)).Draw(t, "downto")
				end := w.end()
				if n < len(w.log) {
					end = w.log[n].base
				}
				w.log = slices.DeleteFunc(w.log, func(b told) bool { return b.base >= max(end, w.commit) })
				s.Rollback(end)
			},
			"expire": func(t *rapid.T) {
				if w.commit != w.end() {
					return // asked at rolls, when nothing is in flight
				}
				now += rapid.SampledFrom([]int64{0, TTLMs / 2, TTLMs, TTLMs + 1}).Draw(t, "later")
				w.expires = append(w.expires, expiry{at: w.commit, ms: now})
				s.Expire(now)
			},
			"copy": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "clone") {
					s = s.Clone()
					return
				}
				b := s.Encode()
				d, err := Decode(b)
				require.NoError(t, err)
				require.Equal(t, b, d.Encode())
				require.Equal(t, s.Checksum(), d.Checksum())
				s = d
			},
			"replay": func(t *rapid.T) { // a log that is read again tells old news
				for _, b := range w.log {
					s.Append(b.h, b.base, b.ms)
				}
			},
			"": func(t *rapid.T) { compare(t, w, s) },
		})
	})
}
