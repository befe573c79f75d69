package meta

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// snapshotVersion is raised when an old reader could not make sense of a new snapshot. Added fields do not.
const snapshotVersion = 1

// A snapshot is a sequence of CBOR items: one snapshotHeader, then as many topics, tombstones and requests as it
// counts, then nothing. One item at a time, so that neither side holds the whole in memory twice.
type snapshotHeader struct {
	Version    int          `cbor:"1,keyasint"`
	Shard      base.ShardID `cbor:"2,keyasint"`
	Shards     int          `cbor:"3,keyasint"`
	Applied    uint64       `cbor:"4,keyasint"`
	NowMs      int64        `cbor:"5,keyasint"`
	Opened     uint64       `cbor:"6,keyasint"`
	Topics     int          `cbor:"7,keyasint"`
	Tombstones int          `cbor:"8,keyasint"`
	Requests   int          `cbor:"9,keyasint"`
	Root       *Root        `cbor:"10,keyasint,omitempty"`
	Recoveries []Recovery   `cbor:"11,keyasint,omitempty"`
}

// Encode writes everything the state holds: equal states, equal bytes.
func (s *State) Encode(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	enc := encoding.NewEncoder(buffered)
	header := snapshotHeader{
		Version: snapshotVersion, Shard: s.id, Shards: s.shards, Applied: s.applied, NowMs: s.nowMs, Opened: s.opened,
		Topics: len(s.topics), Tombstones: len(s.tombs), Requests: s.requests.len(), Root: s.root,
		Recoveries: s.recoveries,
	}
	if err := enc.Encode(&header); err != nil {
		return err
	}
	topics, _ := s.List("", 0, nil)
	for _, t := range topics {
		if err := enc.Encode(t); err != nil {
			return err
		}
	}
	tombs := make([]*Tombstone, 0, len(s.tombs))
	for t := range s.Tombstones() {
		tombs = append(tombs, t)
	}
	slices.SortFunc(tombs, func(a, b *Tombstone) int { return slices.Compare(a.Topic[:], b.Topic[:]) })
	for _, t := range tombs {
		if err := enc.Encode(t); err != nil {
			return err
		}
	}
	for _, r := range s.requests.queue {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Decode reads what Encode wrote for this shard. Whatever it accepts satisfies Check: a snapshot that was damaged
// in a way no checksum saw must not become a state that breaks later.
func Decode(r io.Reader, id base.ShardID, shards int) (*State, error) {
	const op = "read snapshot"
	dec := decoding.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	var h snapshotHeader
	if err := dec.Decode(&h); err != nil {
		return nil, base.Wrap(base.CodeCorruptData, op, noEOF(err))
	}
	switch {
	case h.Version != snapshotVersion:
		return nil, base.Errorf(base.CodeUnsupportedVersion, op, "the snapshot has format %d, this broker reads %d", h.Version, snapshotVersion)
	case h.Shard != id || h.Shards != shards:
		return nil, base.Errorf(base.CodeCorruptData, op, "the snapshot is of shard %s of %d, not of %s of %d", h.Shard, h.Shards, id, shards)
	case (h.Root != nil) != (id == base.RootShard):
		return nil, base.Errorf(base.CodeCorruptData, op, "the root's part is in the wrong shard")
	}
	s := New(id, shards)
	s.applied, s.nowMs, s.opened, s.recoveries = h.Applied, h.NowMs, h.Opened, h.Recoveries
	if h.Root != nil {
		s.root = h.Root
	}
	if err := s.decodeItems(dec, h); err != nil {
		return nil, base.Wrap(base.CodeCorruptData, op, noEOF(err))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, base.Errorf(base.CodeCorruptData, op, "there are bytes after the last item")
	}
	if err := s.Check(); err != nil {
		return nil, base.Wrap(base.CodeCorruptData, op, err)
	}
	return s, nil
}

func (s *State) decodeItems(dec *cbor.Decoder, h snapshotHeader) error {
	for range h.Topics {
		t := new(Topic)
		if err := dec.Decode(t); err != nil {
			return err
		}
		if err := t.whole(); err != nil {
			return err
		}
		if s.topics[t.ID] != nil || s.names[t.Name] != nil {
			return base.Errorf(base.CodeCorruptData, "", "topic %q is there twice", strings.ToValidUTF8(t.Name, "?"))
		}
		s.put(t)
	}
	for range h.Tombstones {
		t := new(Tombstone)
		if err := dec.Decode(t); err != nil {
			return err
		}
		s.tombs[t.Topic] = t
	}
	for range h.Requests {
		r := new(request)
		if err := dec.Decode(r); err != nil {
			return err
		}
		s.requests.queue = append(s.requests.queue, r)
		s.requests.byID[r.ID] = r
	}
	if len(s.tombs) != h.Tombstones || len(s.requests.byID) != h.Requests {
		return base.Errorf(base.CodeCorruptData, "", "a tombstone or a request is there twice")
	}
	return nil
}

// whole refuses a topic with a null where the code expects an object.
func (t *Topic) whole() error {
	for _, r := range t.Ranges {
		if r == nil || slices.Contains(r.Placed(), nil) {
			return base.Errorf(base.CodeCorruptData, "", "a range or segment of topic %q is null", strings.ToValidUTF8(t.Name, "?"))
		}
	}
	return nil
}

// noEOF keeps an end in the middle from looking like a clean end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
