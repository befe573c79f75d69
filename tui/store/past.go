package store

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"time"
	"unsafe"
)

const (
	frameEvery = 90 * time.Second // between two views that are kept
	thinTo     = 5 * time.Second  // what comes again and again is kept so often; in between only that it came
	thinRanges = 30 * time.Second // the same, for ranges and segments: what becomes of them is told by events too
)

// past is what At goes back to: views, and between them the messages, packed. What only counts, and lists that are asked
// for again and again, are kept every five seconds only, and what they say of ranges and segments every 30: nothing else
// fits 15 minutes of 60 nodes into 32 MB, and all of it beside everything else into 64.
type past struct {
	frames []*frame
	bytes  int
	packer *flate.Writer
	kept   map[string]time.Time // when the last message of its kind was kept

	scrub scrub
}

// frame is a view, and what came after it until the next.
type frame struct {
	view   *View
	size   int // of the view: what it alone keeps alive, about
	packed bytes.Buffer
	count  int
}

// scrub is where At was last: stepping forward goes on from there.
type scrub struct {
	frame    *frame
	messages []Message
	next     int
	store    *Store
}

func (f *frame) bytes() int { return f.size + f.packed.Cap() }

// keep remembers a message that is about to be applied.
func (p *past) keep(s *Store, m Message) {
	if s.opts.History < 0 {
		return
	}
	if len(p.frames) == 0 || m.Time.Sub(p.last().view.Time) >= frameEvery || p.full(s) {
		p.begin(s, m.Time)
	}
	line, err := json.Marshal(p.thin(m))
	if err != nil {
		return // a number that JSON does not have: nothing that a broker sends
	}
	f := p.last()
	before := f.packed.Cap()
	if _, err := p.packer.Write(append(line, '\n')); err != nil {
		return
	}
	f.count++
	p.bytes += f.packed.Cap() - before
}

// full reports whether the messages of one frame take so much that too few frames would fit.
func (p *past) full(s *Store) bool { return p.last().packed.Len() > s.opts.HistoryBytes/8 }

func (p *past) last() *frame { return p.frames[len(p.frames)-1] }

// begin ends a frame and begins another with all that is known now.
func (p *past) begin(s *Store, now time.Time) {
	var before uint64
	if len(p.frames) > 0 {
		_ = p.packer.Close() // into memory
		f := p.last()
		full := f.packed.Cap()
		f.packed = *bytes.NewBuffer(bytes.Clone(f.packed.Bytes()))
		p.bytes += f.packed.Cap() - full
		before = f.view.Version
	}
	view := *s.View(s.time)
	view.Time = now
	f := &frame{view: &view, size: sizeAfter(&view, before)}
	if p.packer == nil {
		p.packer, _ = flate.NewWriter(&f.packed, flate.BestSpeed)
	} else {
		p.packer.Reset(&f.packed)
	}
	p.kept = make(map[string]time.Time)
	p.frames = append(p.frames, f)
	p.bytes += f.bytes()
	p.forget(s, now)
}

// forget drops frames that are too old, or too many.
func (p *past) forget(s *Store, now time.Time) {
	for len(p.frames) > 1 && (now.Sub(p.frames[1].view.Time) >= s.opts.History || p.bytes > s.opts.HistoryBytes*7/8) {
		p.bytes -= p.frames[0].bytes()
		if p.scrub.frame == p.frames[0] {
			p.scrub = scrub{}
		}
		p.frames[0] = nil
		p.frames = p.frames[1:]
	}
}

// thin is the message itself, or that it came.
func (p *past) thin(m Message) Message {
	kind, every := "", thinTo
	switch {
	case m.Counters != nil:
		kind = "counters " + string(m.Node)
	case m.Topic != nil:
		kind, every = "topic "+m.Topic.Summary.Name, thinRanges
	case m.Topics != nil:
		kind = "topics"
	case m.Segments != nil:
		kind, every = "segments "+m.Segments.Topic, thinRanges
	case m.Nodes != nil:
		kind = "nodes"
	case m.Shards != nil:
		kind = "shards"
	default:
		return m
	}
	if !p.due(kind, m.Time, every) {
		return Message{Time: m.Time, Node: m.Node, Boot: m.Boot}
	}
	if m.Counters != nil && !p.due("ranges "+string(m.Node), m.Time, thinRanges) {
		c := *m.Counters
		c.Ranges, c.Others, c.Groups, c.Repairs = nil, nil, nil, nil
		m.Counters, m.Thin = &c, true
	}
	return m
}

// due reports whether a message of a kind is to be kept, the last one being so long ago.
func (p *past) due(kind string, now time.Time, every time.Duration) bool {
	if last, ok := p.kept[kind]; ok && now.Sub(last) < every {
		return false
	}
	if len(p.kept) < maxTopics {
		p.kept[kind] = now
	}
	return true
}

// sizeAfter is what a view keeps alive beside one of an earlier version, about.
func sizeAfter(v *View, version uint64) int {
	n := 4096
	n += changedSize(v.Nodes, version, func(r *Node) (uint64, int) { return r.Version, len(r.counted)*24 + 2*4*nodeSamples })
	n += changedSize(v.Ranges, version, func(r *Range) (uint64, int) { return r.Version, 4 * (len(r.Parents) + len(r.Children)) })
	n += changedSize(v.Topics, version, func(r *Topic) (uint64, int) { return r.Version, 64 })
	n += changedSize(v.Segments, version, func(r *Segment) (uint64, int) { return r.Version, 48 * len(r.Replicas) })
	n += changedSize(v.Shards, version, func(r *Shard) (uint64, int) { return r.Version, 16 * (len(r.Voters) + len(r.NonVoters)) })
	n += changedSize(v.Groups, version, func(r *Group) (uint64, int) { return r.Version, 128*len(r.Members) + 4*trendLength })
	for _, o := range v.Believes.Observers {
		if o.Version > version {
			n += len(o.Beliefs) * int(unsafe.Sizeof(Belief{}))
		}
	}
	n += 6 * 4 * historySamples
	return n
}

func changedSize[K comparable, R any](t Table[K, R], version uint64, of func(*R) (uint64, int)) int {
	if t.Version <= version {
		return 0
	}
	n := 8 * len(t.rows)
	for _, r := range t.rows {
		if at, more := of(r); at > version {
			n += int(unsafe.Sizeof(*r)) + more
		}
	}
	return n
}

// Oldest is how far back At goes; zero: nothing is kept.
func (s *Store) Oldest() time.Time {
	if len(s.past.frames) == 0 {
		return time.Time{}
	}
	return s.past.frames[0].view.Time
}

// HistoryBytes is what the history takes, about.
func (s *Store) HistoryBytes() int { return s.past.bytes }

// At is the view as it was at a time, or at the oldest that is kept; ok is false when nothing is. Its versions say
// nothing about those of other views: what was drawn from them must not be used for it, nor the other way round. Rates
// of nodes are those of at most five seconds before, those of ranges of at most thirty.
func (s *Store) At(t time.Time) (v *View, ok bool) {
	p := &s.past
	if len(p.frames) == 0 {
		return nil, false
	}
	f := p.frames[0]
	for _, later := range p.frames[1:] {
		if later.view.Time.After(t) {
			break
		}
		f = later
	}
	if t.Before(f.view.Time) {
		t = f.view.Time
	}
	p.scrub.to(s, f, t)
	return p.scrub.store.View(t), true
}

// Live ends going back: what that took is free again.
func (s *Store) Live() { s.past.scrub = scrub{} }

// to goes to a time within a frame.
func (c *scrub) to(s *Store, f *frame, t time.Time) {
	if c.frame != f || c.store.time.After(t) {
		opts := s.opts
		opts.History = -1
		c.next, c.store = 0, from(f.view, opts)
	}
	if c.frame != f || len(c.messages) != f.count {
		c.frame, c.messages = f, s.past.unpack(f)
	}
	for c.next < len(c.messages) && !c.messages[c.next].Time.After(t) {
		c.store.apply(c.messages[c.next])
		c.next++
	}
}

// unpack gives back the messages of a frame.
func (p *past) unpack(f *frame) []Message {
	if f == p.last() {
		before := f.packed.Cap()
		_ = p.packer.Flush()
		p.bytes += f.packed.Cap() - before
	}
	messages := make([]Message, 0, f.count)
	dec := json.NewDecoder(flate.NewReader(bytes.NewReader(f.packed.Bytes())))
	for {
		var m Message
		if err := dec.Decode(&m); err != nil {
			return messages // the end; that of the last frame is not marked
		}
		messages = append(messages, m)
	}
}
