package store

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/segment"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// catalogueVersion is the format of the file `catalogue`; FORMAT.md shows it.
const catalogueVersion = 1

// The flags of a segment in the catalogue.
const (
	flagKeyed = 1 << iota
	flagLeaderHere
	flagDamaged
	flagStateSaved
	flagFinished
	flagDropping
	flagRotten
	flagMemory
	flagKnown = 1<<iota - 1
)

// The fixed sizes of the catalogue's items, for counts to be checked against.
const (
	catalogueHead = 4 + 1 + 16 + 8 + 8 + 1
	rangeBytes    = 16 + 4 + 4 + 8 + 4
	segmentBytes  = 8 + 4 + 8 + 1 + 8 + 8 + 8 + 8 + 8 + 8 + 1 + 8 + 8 + 8 + 8
)

// encodeCatalogue writes down the state. It includes every record up to lsn; it may include later ones.
func (s *Store) encodeCatalogue(lsn uint64) []byte {
	s.mu.RLock()
	var ranges []*rangeLog
	for _, t := range s.topics {
		for _, r := range t {
			ranges = append(ranges, r)
		}
	}
	dropping := slices.Collect(maps.Values(s.dropping))
	topics := slices.Clone(s.tombstones.order)
	for t, durable := range s.droppingTopics {
		if durable && !s.tombstones.has(t) {
			topics = append(topics, t)
		}
	}
	lossy := s.lossy
	s.mu.RUnlock()

	slices.SortFunc(ranges, func(a, b *rangeLog) int { return compareRefs(a.ref, b.ref) })
	slices.SortFunc(dropping, func(a, b *segmentLog) int { return cmp.Compare(a.spec.Segment, b.spec.Segment) })

	e := encoder{b: make([]byte, 0, catalogueHead+len(ranges)*(rangeBytes+2*segmentBytes)+64)}
	e.b = append(e.b, "EGCT"...)
	e.u8(catalogueVersion)
	e.uuid(s.id.Disk)
	e.u64(s.boot.Load())
	e.u64(lsn)
	e.bool(lossy)
	e.u32(uint32(len(ranges)))
	for _, r := range ranges {
		r.encode(&e)
	}
	e.u32(uint32(len(dropping)))
	for _, g := range dropping {
		e.ref(g.spec.Ref)
		g.rng.mu.Lock()
		g.encode(&e, flagDropping)
		g.rng.mu.Unlock()
	}
	e.u32(uint32(len(topics)))
	for _, t := range topics {
		e.uuid(t)
	}
	return binary.LittleEndian.AppendUint32(e.b, crc32.Checksum(e.b, castagnoli))
}

func compareRefs(a, b base.RangeRef) int {
	if c := slices.Compare(a.Topic[:], b.Topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Range, b.Range)
}

func (r *rangeLog) encode(e *encoder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.segments()
	e.ref(r.ref)
	e.u32(uint32(r.fenced))
	e.i64(r.trimmedTo)
	e.u32(uint32(len(list)))
	for _, g := range list {
		g.encode(e, 0)
	}
}

// encode writes what is known of the segment as of what is in its files. rng.mu is held.
func (g *segmentLog) encode(e *encoder, flags uint8) {
	set := func(on bool, f uint8) {
		if on {
			flags |= f
		}
	}
	set(g.spec.Keyed, flagKeyed)
	set(g.spec.LeaderHere, flagLeaderHere)
	set(g.spec.Memory, flagMemory)
	set(g.damaged, flagDamaged)
	set(g.rotten, flagRotten)
	set(g.stateSaved, flagStateSaved)
	set(g.finished, flagFinished)
	extent := *g.flushed.Load()
	e.u64(uint64(g.spec.Segment))
	e.u32(uint32(g.spec.Epoch))
	e.i64(g.spec.Base)
	e.u8(flags)
	e.i64(g.spec.CreatedMs)
	e.u64(g.boot)
	e.i64(extent.End)
	e.i64(extent.Pos)
	e.i64(g.commit.Load())
	e.i64(g.sealed.Load())
	e.u8(uint8(g.cause))
	e.i64(g.intact)
	e.i64(g.firstMs)
	e.i64(g.lastMs)
	e.i64(g.maxTime)
}

// decodeCatalogue fills an empty store from the file's bytes and returns the LSN that they include.
func (s *Store) decodeCatalogue(b []byte) (lsn uint64, err error) {
	if len(b) < catalogueHead+4 {
		return 0, corruptCatalogue("%d bytes are too few", len(b))
	}
	body, want := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != want {
		return 0, corruptCatalogue("its crc is %#08x, %#08x is stored", got, want)
	}
	if string(body[:4]) != "EGCT" {
		return 0, corruptCatalogue("it begins with %q", body[:4])
	}
	if body[4] != catalogueVersion {
		return 0, base.Errorf(base.CodeUnsupportedVersion, "open store", "the catalogue has format version %d, this broker writes %d", body[4], catalogueVersion).
			WithHint("start the version of the broker that wrote it")
	}
	d := &decoder{b: body[5:]}
	disk, boot := d.uuid(), d.u64()
	lsn = d.u64()
	s.lossy = d.bool()
	if disk != s.id.Disk {
		return 0, corruptCatalogue("it belongs to disk %s, this is disk %s", disk, s.id.Disk)
	}
	if boot > s.id.Boot {
		return 0, corruptCatalogue("it was written in boot %d, this is boot %d: the identity is older than the data", boot, s.id.Boot)
	}
	for range d.count(rangeBytes) {
		s.decodeRange(d)
	}
	for range d.count(20 + segmentBytes) {
		s.decodeDropping(d)
	}
	for range d.count(16) {
		topic := base.TopicID(d.uuid())
		s.droppingTopics[topic] = true // its directory may still be there
		s.tombstones.add(topic)
	}
	if d.bad || len(d.b) != 0 {
		return 0, corruptCatalogue("its items do not fill it")
	}
	return lsn, nil
}

func (s *Store) decodeRange(d *decoder) {
	rng := s.makeRange(d.ref())
	rng.fenced = base.Epoch(int32(d.u32()))
	rng.trimmedTo = d.i64()
	for range d.count(segmentBytes) {
		g, ok := decodeSegment(d, rng, 0)
		if !ok {
			d.bad = true
			return
		}
		s.segs[g.spec.Segment] = g
		rng.insert(g)
	}
}

func (s *Store) decodeDropping(d *decoder) {
	g, ok := decodeSegment(d, &rangeLog{ref: d.ref()}, flagDropping)
	if !ok {
		d.bad = true
		return
	}
	g.dropped = true
	s.dropping[g.spec.Segment] = g
}

// decodeSegment reads one segment; ok is false if it cannot be one.
func decodeSegment(d *decoder, rng *rangeLog, wantDropping uint8) (g *segmentLog, ok bool) {
	spec := SegmentSpec{Ref: rng.ref, Segment: base.SegmentID(d.u64()), Epoch: base.Epoch(int32(d.u32())), Base: d.i64()}
	flags := d.u8()
	spec.Keyed, spec.LeaderHere, spec.Memory = flags&flagKeyed != 0, flags&flagLeaderHere != 0, flags&flagMemory != 0
	spec.CreatedMs = d.i64()
	g = newSegmentLog(rng, spec, d.u64())
	g.opened = true
	g.damaged, g.rotten = flags&flagDamaged != 0, flags&flagRotten != 0
	g.stateSaved, g.finished = flags&flagStateSaved != 0, flags&flagFinished != 0
	extent := segment.Extent{End: d.i64(), Pos: d.i64()}
	commit, sealed := d.i64(), d.i64()
	g.cause = base.Cause(d.u8())
	g.intact = d.i64()
	g.firstMs, g.lastMs, g.maxTime = d.i64(), d.i64(), d.i64()
	g.reset(extent, commit, sealed)
	return g, !d.bad && flags&^flagKnown == 0 && flags&flagDropping == wantDropping &&
		extent.End >= spec.Base && extent.Pos >= 0 && (extent.Pos == 0) == (extent.End == spec.Base) && sealed >= -1
}

// reset makes the segment one whose file reaches to extent and of which nothing is in memory.
func (g *segmentLog) reset(extent segment.Extent, commit, sealed int64) {
	g.flushed.Store(&extent)
	g.appended, g.bytes = extent.End, extent.Pos
	g.durable.Store(extent.End)
	g.inMemory.Store(extent.End)
	g.commit.Store(commit)
	g.sealed.Store(sealed)
	g.sealing = sealed
}

func corruptCatalogue(format string, args ...any) error {
	return base.Errorf(base.CodeCorruptData, "read catalogue", format, args...).
		WithHint("the file is kept as it is" + anew)
}
