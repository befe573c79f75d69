package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	frameEvery = 90 * time.Second // between two views that are kept
	thinTo     = 5 * time.Second  // what comes again and again is kept so often; in between only that it came
	thinRanges = 45 * time.Second // the same, for ranges and segments: what becomes of them is told by events too
	packWindow = 512 << 10        // how far back the packer looks
)

// past is what At goes back to: views, and between them the messages, all of it packed. What only counts, and lists that
// are asked for again and again, are kept every five seconds only, and what they say of ranges and segments every 45:
// 15 minutes of 60 nodes then take about 10 MB.
type past struct {
	frames []*frame
	bytes  int
	packer *zstd.Encoder
	kept   map[string]time.Time // when the last message of its kind was kept

	scrub scrub
}

// frame is a view, and what came after it until the next.
type frame struct {
	time   time.Time // of the view
	image  []byte    // the view, packed
	logs   logs      // of the view
	size   int       // of what the logs alone keep alive, about
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

func (f *frame) bytes() int { return len(f.image) + f.size + f.packed.Cap() }

// keep remembers a message that is about to be applied.
func (p *past) keep(s *Store, m Message) {
	if s.opts.History < 0 {
		return
	}
	if len(p.frames) == 0 || m.Time.Sub(p.last().time) >= frameEvery || p.full(s) {
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
	var before logs
	if len(p.frames) > 0 {
		p.end()
		before = p.last().logs
	}
	view := *s.View(s.time)
	view.Time = now
	f := &frame{time: now, logs: logsOf(&view)}
	f.image, f.size = p.pack(&view), f.logs.sizeSince(before)
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
	}
	p.packer.Reset(&packed)
	if err := freeze(p.packer, v); err != nil {
		panic(err) // a type that cannot be written: no view is to blame
	}
	_ = p.packer.Close() // into memory
	return bytes.Clone(packed.Bytes())
}

func newPacker() *zstd.Encoder {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are wrong
	}
	return packer
}

// forget drops frames that are too old, or too many.
func (p *past) forget(s *Store, now time.Time) {
	for len(p.frames) > 1 && (now.Sub(p.frames[1].time) >= s.opts.History || p.bytes > s.opts.HistoryBytes*7/8) {
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
func (s *Store) Live() { s.past.scrub = scrub{} }

// to goes to a time within a frame.
func (c *scrub) to(s *Store, f *frame, t time.Time) error {
	if c.frame != f || c.store.time.After(t) {
		v, err := f.view()
		if err != nil {
			return err
		}
		opts := s.opts
		opts.History = -1
		c.next, c.store = 0, from(v, opts)
	}
	if c.frame != f || len(c.messages) != f.count {
		c.frame, c.messages = f, s.past.unpack(f)
	}
	for c.next < len(c.messages) && !c.messages[c.next].Time.After(t) {
		c.store.apply(c.messages[c.next])
		c.next++
	}
	return nil
}

// view is the one that the frame begins with.
func (f *frame) view() (*View, error) {
	r, err := unpacker(f.image)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := thaw(r)
	if err != nil {
		return nil, err
	}
	f.logs.into(v)
	return v, nil
}

// unpack gives back the messages of a frame.
func (p *past) unpack(f *frame) []Message {
	if f == p.last() {
		before := f.packed.Cap()
		_ = p.packer.Flush()
		p.bytes += f.packed.Cap() - before
	}
	messages := make([]Message, 0, f.count)
	r, err := unpacker(f.packed.Bytes())
	if err != nil {
		return messages
	}
	defer r.Close()
	dec := json.NewDecoder(r)
	for {
		var m Message
		if err := dec.Decode(&m); err != nil {
			return messages // the end; that of the last frame is not marked
		}
		messages = append(messages, m)
	}
}

func unpacker(packed []byte) (*zstd.Decoder, error) {
	return zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
}
