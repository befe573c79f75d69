package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/eastguard/eastguard/cli"
	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/segment"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/sdk"
)

// maxDecoded bounds what one batch may decompress to.
const maxDecoded = 80 << 20

// dumpSegment is the reader of segment files that package cli must not know.
func dumpSegment(path string, records bool, each func(cli.DumpedBatch) error) (cli.SegmentDump, error) {
	rd := record.NewReader(maxDecoded)
	rangeID, _ := base.ParseRangeID(filepath.Base(filepath.Dir(path))) // 0 where the file lies somewhere else
	info, err := segment.Dump(vfs.OS, path, func(d segment.Dumped) error {
		h := d.Header
		b := cli.DumpedBatch{
			Pos: d.Pos, Base: h.BaseOffset, End: h.End(), Bytes: h.Size(), Codec: h.Codec().String(), Epoch: base.Epoch(h.Epoch),
			ProducerID: h.ProducerID, Sequence: h.BaseSequence, TimestampMs: h.MaxTimestamp, Problem: d.Problem,
		}
		if records && d.Problem == "" {
			var err error
			if b.Records, err = decode(rd, d, rangeID); err != nil {
				b.Problem = err.Error()
			}
		}
		return each(b)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = base.Errorf(base.CodeInvalidArgument, "", "there is no file %s", info.Path)
	}
	return cli.SegmentDump{
		Path: info.Path, Segment: info.Segment, Base: info.Base, End: info.End, Epoch: info.Epoch, Bytes: info.Bytes, Batches: info.Batches,
		Records: info.Records, Trailing: info.Trailing, CRC: info.CRC, IndexEntries: info.IndexEntries, TimeEntries: info.TimeEntries,
		Summed: info.Summed, BadBlocks: info.BadBlocks, Problems: info.Problems, Notes: info.Notes,
	}, err
}

// decode reads the records of one batch; they are the caller's.
func decode(rd *record.Reader, d segment.Dumped, id base.RangeID) ([]sdk.Message, error) {
	if err := rd.Reset(d.Bytes); err != nil {
		return nil, err
	}
	var all []sdk.Message
	for {
		r, ok := rd.Next()
		if !ok {
			break
		}
		m := sdk.Message{Range: id, Offset: r.Offset, LeaderEpoch: base.Epoch(d.Header.Epoch), Record: sdk.Record{
			Key: clone(r.Key), Value: clone(r.Value), Timestamp: time.UnixMilli(r.TimestampMs),
		}}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sdk.Header{Key: h.Key, Value: clone(h.Value)})
		}
		all = append(all, m)
	}
	return all, rd.Err()
}

// clone keeps null apart from empty.
func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
