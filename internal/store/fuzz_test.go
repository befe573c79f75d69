package store

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/pledge"
)

func emptyStore() *Store {
	o := Options{ReserveBytes: -1, DataDir: "data"}
	o.ensureDefaults()
	return &Store{
		o: o, id: Identity{Disk: base.DiskID{1}, Boot: 9},
		topics: map[base.TopicID]map[base.RangeID]*rangeLog{}, segs: map[base.SegmentID]*segmentLog{},
		dropping: map[base.SegmentID]*segmentLog{}, droppingTopics: map[base.TopicID]bool{},
	}
}

func sampleCatalogue() []byte {
	s := emptyStore()
	s.applyOpen(openRecord{spec: specOf(1, 0, 0), boot: 1})
	s.applyOpen(openRecord{spec: specOf(2, 1, 10), boot: 2})
	s.applySeal(sealRecord{segment: 1, end: 0, cause: base.CauseAge})
	s.applyFence(fenceRecord{ref: refOf(4), epoch: 7})
	s.applyOpen(openRecord{spec: specOf(3, 1, 20), boot: 2})
	s.applyDrop(dropRecord{ref: refOf(1), segments: []base.SegmentID{3}})
	s.droppingTopics[base.TopicID{9}] = true
	return s.encodeCatalogue(77)
}

func TestCatalogueRoundTrip(t *testing.T) {
	b := sampleCatalogue()
	s := emptyStore()
	lsn, err := s.decodeCatalogue(b)
	require.NoError(t, err)
	require.Equal(t, uint64(77), lsn)
	require.Equal(t, b, s.encodeCatalogue(77))
	require.Len(t, s.segs, 2)
	require.Len(t, s.dropping, 1)
	require.Equal(t, base.Epoch(7), s.rangeOf(refOf(4)).fenced)
}

func FuzzCatalogue(f *testing.F) {
	f.Add(sampleCatalogue())
	f.Add(emptyStore().encodeCatalogue(0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // a checksum made right lets the fuzzer behind it
			b = append([]byte(nil), b...)
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		s := emptyStore()
		lsn, err := s.decodeCatalogue(b)
		if err != nil {
			return
		}
		again := emptyStore()
		_, err = again.decodeCatalogue(s.encodeCatalogue(lsn))
		require.NoError(t, err)
		require.Equal(t, len(s.segs), len(again.segs))
	})
}

func FuzzRecords(f *testing.F) {
	spec := specOf(1, 2, 3)
	spec.State = []byte("state")
	f.Add(openRecord{spec: spec, boot: 4}.encode())
	f.Add(fenceRecord{ref: refOf(1), epoch: 2}.encode())
	f.Add(sealRecord{segment: 1, end: 2, cause: 3}.encode())
	f.Add(dropRecord{ref: refOf(1), segments: []base.SegmentID{1, 2}}.encode())
	f.Add(encodeFenceAllLed(3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := decodeOpen(b); ok {
			require.Equal(t, b, r.encode())
		}
		if r, ok := decodeFence(b); ok {
			require.Equal(t, b, r.encode())
		}
		if r, ok := decodeSeal(b); ok {
			require.Equal(t, b, r.encode())
		}
		if r, ok := decodeDrop(b); ok {
			require.Equal(t, b, r.encode())
		}
		_, _, _ = decodeBatchRecord(b)
		_, _ = decodeFenceAllLed(b)
		_, _ = decodeDropTopic(b)
	})
}

func FuzzIdentity(f *testing.F) {
	id := Identity{Node: "n1", Disk: base.DiskID{1}, Meta: base.UUID{2}, Boot: 3, FormatVersion: FormatVersion}
	f.Add(id.encode())
	id.Pledge = pledge.Pledge{Minter: pledge.Founder{Node: "n2", Disk: base.DiskID{9}, Addr: "[::1]:2922"}, Founders: []string{"10.0.0.1:1", "[::1]:2922"}}
	f.Add(id.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := parseIdentity(b)
		if err == nil {
			require.Equal(t, b, id.encode())
		}
	})
}
