package store

import (
	"bytes"
	"io"
	"maps"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

const (
	frameEvery = 90 * time.Second // between two views that are kept
	thinTo     = 5 * time.Second  // what comes again and again is kept so often; in between only that it came
	thinRanges = 45 * time.Second // the same, for ranges and segments: what becomes of them is told by events too
)

// past is what At goes back to: views, and between them the messages, all of it packed. What only counts, and lists that
// are asked for again and again, are kept every five seconds only, and what they say of ranges and segments every 45:
// 15 minutes of 60 nodes then take about 10 MB.
type past struct {
	frames []*frame
	bytes  int
	packer *zstd.Encoder
	writer *cbor.Encoder        // through the packer
	kept   map[string]time.Time // when the last message of its kind was kept

	scrub scrub
}

// frame is a view, and what came after it until the next.
type frame struct {
	time   time.Time // of the view
	image  []byte    // the view, packed, without its logs
	marks  marks     // of the logs
	packed bytes.Buffer
	count  int
}

// scrub is where At was last: stepping forward goes on from there.
type scrub struct {
	frame *frame
	tape  *tape    // of its messages
	read  int      // of them
	ahead *Message // the last of those that were read, if it was not applied
	store *Store
}

func (f *frame) bytes() int { return len(f.image) + f.packed.Cap() }

// keep remembers a message that is about to be applied.
func (p *past) keep(s *Store, m Message) {
	if s.opts.History < 0 {
		return
	}
	if len(p.frames) == 0 || m.Time.Sub(p.last().time) >= frameEvery || p.full(s) {
		p.begin(s, m.Time)
	}
	f := p.last()
	before := f.packed.Cap()
	if err := p.writer.Encode(p.thin(m)); err != nil {
		panic(err) // a type that cannot be written: no message is to blame
	}
	f.count++
	p.bytes += f.packed.Cap() - before
}

// full reports whether the messages of one frame take so much that too few frames would fit.
func (p *past) full(s *Store) bool { return p.last().packed.Len() > s.opts.HistoryBytes/8 }

func (p *past) last() *frame { return p.frames[len(p.frames)-1] }

// begin ends a frame and begins another with all that is known now.
func (p *past) begin(s *Store, now time.Time) {
	if len(p.frames) > 0 {
		p.end()
	}
	view := *s.View(s.time)
	view.Time = now
	f := &frame{time: now, image: p.pack(&view), marks: s.marks(&view)}
	p.packer.Reset(&f.packed)
	p.frames = append(p.frames, f)
	p.bytes += f.bytes()
	maps.DeleteFunc(p.kept, func(_ string, at time.Time) bool { return now.Sub(at) > thinRanges }) // those are due anyway
	p.forget(s, now)
}

// end ends the last frame: nothing comes to it any more.
func (p *past) end() {
	_ = p.packer.Close() // into memory
	f := p.last()
	p.bytes -= f.packed.Cap()
	f.packed = *bytes.NewBuffer(bytes.Clone(f.packed.Bytes()))
	p.bytes += f.packed.Cap()
}

// pack makes the image of a view.
func (p *past) pack(v *View) []byte {
	var packed bytes.Buffer
	if p.packer == nil {
		p.packer, p.kept = newPacker(), make(map[string]time.Time)
		p.writer = writing.NewEncoder(p.packer)
	}
	p.packer.Reset(&packed)
	if err := freeze(p.packer, v); err != nil {
		panic(err) // a type that cannot be written: no view is to blame
	}
	_ = p.packer.Close() // into memory
	return bytes.Clone(packed.Bytes())
}

// forget drops frames that are too old, or too many.
func (p *past) forget(s *Store, now time.Time) {
	for len(p.frames) > 1 && (now.Sub(p.frames[1].time) >= s.opts.History || p.bytes > s.opts.HistoryBytes*7/8) {
		p.bytes -= p.frames[0].bytes()
		if p.scrub.frame == p.frames[0] {
			p.scrub.end()
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

// Oldest is how far back At goes; zero: nothing is kept.
func (s *Store) Oldest() time.Time {
	if len(s.past.frames) == 0 {
		return time.Time{}
	}
	return s.past.frames[0].time
}

// HistoryBytes is what the history takes, about.
func (s *Store) HistoryBytes() int { return s.past.bytes }

// At is the view as it was at a time, or at the oldest that is kept; ok is false when nothing is. Its versions say
// nothing about those of other views: what was drawn from them must not be used for it, nor the other way round. Rates
// of nodes are those of at most five seconds before, those of ranges of at most 45.
func (s *Store) At(t time.Time) (v *View, ok bool) {
	p := &s.past
	if len(p.frames) == 0 {
		return nil, false
	}
	f := p.frames[0]
	for _, later := range p.frames[1:] {
		if later.time.After(t) {
			break
		}
		f = later
	}
	if t.Before(f.time) {
		t = f.time
	}
	if err := p.scrub.to(s, f, t); err != nil {
		return nil, false
	}
	return p.scrub.store.View(t), true
}

// Live ends going back: what that took is free again.
func (s *Store) Live() { s.past.scrub.end() }

// to goes to a time within a frame.
func (c *scrub) to(s *Store, f *frame, t time.Time) error {
	if c.frame != f || c.store.time.After(t) {
		v, err := f.view(s.View(s.time))
		if err != nil {
			return err
		}
		opts := s.opts
		opts.History = -1
		c.end()
		*c = scrub{frame: f, store: from(v, opts)}
	}
	for {
		m, err := c.peek(&s.past)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case m.Time.After(t):
			return nil
		}
		c.store.apply(*m)
		c.ahead = nil
	}
}

// peek is the next message that was not applied; io.EOF after the last. More may have come to the last frame since it was
// looked at.
func (c *scrub) peek(p *past) (*Message, error) {
	if c.ahead != nil {
		return c.ahead, nil
	}
	m, err := c.tape.next()
	if err == io.EOF && c.read < c.frame.count {
		c.tape.end()
		if c.tape, err = p.play(c.frame, c.read); err == nil {
			m, err = c.tape.next()
		}
	}
	if err != nil {
		return nil, err
	}
	c.read++
	c.ahead = &m
	return c.ahead, nil
}

// play reads the messages of a frame, but for the first ones.
func (p *past) play(f *frame, skip int) (*tape, error) {
	if f == p.last() {
		before := f.packed.Cap()
		_ = p.packer.Flush() // into memory
		p.bytes += f.packed.Cap() - before
	}
	return playing(f.packed.Bytes(), f.count, skip)
}

func (c *scrub) end() {
	c.tape.end()
	*c = scrub{}
}

// view is the one that the frame begins with, as far as its logs are still in the one of now.
func (f *frame) view(now *View) (*View, error) {
	r, err := unpacker(f.image)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := thaw(r)
	if err != nil {
		return nil, err
	}
	f.marks.into(v, now)
	return v, nil
}
