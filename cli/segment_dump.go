package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// SegmentDumper reads the files of a segment as they lie on a disk, without a broker. The front end brings it: this
// package knows nothing of the brokers' formats.
type SegmentDumper func(path string, records bool, each func(DumpedBatch) error) (SegmentDump, error)

// SegmentDump is what the files of a segment come to.
type SegmentDump struct {
	Path         string
	Segment      sdk.SegmentID
	Base, End    int64
	Epoch        sdk.Epoch
	Bytes        int64
	Batches      int64
	Records      int64
	Trailing     int64 // bytes behind the last batch that could be read
	CRC          uint32
	IndexEntries int
	TimeEntries  int
	Summed       int64 // bytes that the index has sums of
	BadBlocks    []int64
	Problems     []string
	Notes        []string
}

// DumpedBatch is one batch of a file.
type DumpedBatch struct {
	Pos         int64
	Base, End   int64
	Bytes       int
	Codec       string
	Epoch       sdk.Epoch
	ProducerID  int64
	Sequence    int32
	TimestampMs int64
	Problem     string
	Records     []sdk.Message // when asked for, as far as they can be decoded
}

const schemaSegmentDump = "segment.dump/1"

// dumpDocument is the document of segment dump.
type dumpDocument struct {
	Schema       string           `json:"schema"`
	Path         string           `json:"path"`
	Segment      string           `json:"segment"`
	Base         int64            `json:"base"`
	End          int64            `json:"end"`
	Epoch        int32            `json:"epoch" doc:"of its batches; -1 when there are none"`
	Bytes        int64            `json:"bytes"`
	Batches      int64            `json:"batches"`
	Records      int64            `json:"records"`
	Trailing     int64            `json:"trailing_bytes" doc:"behind the last batch that could be read"`
	CRC          string           `json:"crc32c" doc:"of all batches: what segment describe shows of a whole sealed copy"`
	IndexEntries int              `json:"index_entries"`
	TimeEntries  int              `json:"time_entries"`
	Summed       int64            `json:"summed_bytes" doc:"covered by the index's block sums"`
	BadBlocks    []int64          `json:"bad_blocks" doc:"64 KiB blocks that do not match their sums"`
	Problems     []string         `json:"problems"`
	Notes        []string         `json:"notes" doc:"what is no damage: a broker mends it without a loss"`
	BatchList    []dumpedRow      `json:"batch_list,omitempty"`
	RecordList   []recordDocument `json:"record_list,omitempty"`
}

type dumpedRow struct {
	Pos       int64     `json:"position" col:"POSITION"`
	Base      int64     `json:"base" col:"BASE"`
	End       int64     `json:"end" col:"END"`
	Records   int64     `json:"records" col:"RECORDS"`
	Bytes     int       `json:"bytes" col:"SIZE" as:"bytes"`
	Codec     string    `json:"compression" col:"CODEC"`
	Epoch     int32     `json:"epoch" col:"EPOCH"`
	Producer  int64     `json:"producer" col:"PRODUCER,wide"`
	Sequence  int32     `json:"sequence" col:"SEQUENCE,wide"`
	Timestamp term.Time `json:"timestamp" col:"TIME,wide" doc:"the highest of its records"`
	Problem   string    `json:"problem" col:"PROBLEM"`
}

type segmentDumpOptions struct {
	*app
	batches, records bool
}

func newSegmentDumpCommand(a *app) *cobra.Command {
	o := &segmentDumpOptions{app: a}
	cmd := &cobra.Command{
		Use:   "dump <file>",
		Short: "Check a segment's files where they lie: batches, indexes, checksums; no broker is asked",
		Long: "Reads SEGMENT-BASE.log, .idx and .tdx as they lie in a broker's data directory, or in a copy of it: every batch is held\n" +
			"against its checksum and against the one before it, the indexes and block sums against the batches. Nothing is\n" +
			"written. What the broker has in its log and not yet in the file is not seen here, and what lies in the file behind\n" +
			"the segment's end never counted: segment describe says where it ends. Damage is exit 9.",
		Example: `  segment dump ./eastguard/data/topics/…/1/907-1200.log
  segment dump 907-1200.log --batches -o wide
  segment dump 907-1200.log --records -o json --jq '.record_list[].value'`,
		Args:        argsBetween(1, 1),
		Annotations: map[string]string{noteSchema: "segment.dump", noteExits: "9"},
	}
	cmd.Flags().BoolVar(&o.batches, "batches", false, "list the batches")
	cmd.Flags().BoolVar(&o.records, "records", false, "list the records")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.DumpSegment == nil {
			return errorf(sdk.CodeUnknownKind, "this program was built without a reader of segment files")
		}
		return runSegmentDump(cmd.Context(), o, a.DumpSegment, args[0])
	}
	return cmd
}

func runSegmentDump(ctx context.Context, o *segmentDumpOptions, dump SegmentDumper, path string) error {
	doc := dumpDocument{Schema: schemaSegmentDump, BadBlocks: []int64{}, Problems: []string{}, Notes: []string{}}
	info, err := dump(path, o.records, func(b DumpedBatch) error {
		if o.batches {
			doc.BatchList = append(doc.BatchList, newDumpedRow(b))
		}
		for i := range b.Records {
			doc.RecordList = append(doc.RecordList, newRecordDocument(&b.Records[i], binaryAuto))
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	doc.fill(info)
	if err := o.output().Object(doc, func(p *term.Page) { o.page(p, doc) }); err != nil {
		return err
	}
	if n := len(doc.Problems); n > 0 {
		return quiet{errorf(sdk.CodeCorruptData, "%s in %s", plural(int64(n), "problem"), doc.Path)}
	}
	return nil
}

func newDumpedRow(b DumpedBatch) dumpedRow {
	return dumpedRow{
		Pos: b.Pos, Base: b.Base, End: b.End, Records: b.End - b.Base, Bytes: b.Bytes, Codec: b.Codec, Epoch: int32(b.Epoch),
		Producer: b.ProducerID, Sequence: b.Sequence, Timestamp: timeOf(b.TimestampMs), Problem: b.Problem,
	}
}

func (d *dumpDocument) fill(s SegmentDump) {
	d.Path, d.Segment, d.Base, d.End, d.Epoch = s.Path, s.Segment.String(), s.Base, s.End, int32(s.Epoch)
	d.Bytes, d.Batches, d.Records, d.Trailing, d.CRC = s.Bytes, s.Batches, s.Records, s.Trailing, fmt.Sprintf("%08x", s.CRC)
	d.IndexEntries, d.TimeEntries, d.Summed = s.IndexEntries, s.TimeEntries, s.Summed
	d.BadBlocks, d.Problems, d.Notes = append(d.BadBlocks, s.BadBlocks...), append(d.Problems, s.Problems...), append(d.Notes, s.Notes...)
}

func (o *segmentDumpOptions) page(p *term.Page, doc dumpDocument) {
	h := p.Human()
	if o.batches {
		p.Table(doc.BatchList)
		p.Line("")
	}
	if o.records {
		p.Table(doc.RecordList)
		p.Line("")
	}
	segment, offsets := doc.Segment, "none, it begins at "+itoa(doc.Base)
	if doc.Batches > 0 {
		segment, offsets = segment+", epoch "+itoa(int64(doc.Epoch)), itoa(doc.Base)+" to "+itoa(doc.End)
	}
	p.Fields(
		"File", doc.Path,
		"Segment", segment,
		"Offsets", offsets,
		"Data", fmt.Sprintf("%s in %s, %s", h.Bytes.Format(doc.Bytes), pluralAs(doc.Batches, "batch", "batches"), plural(doc.Records, "record")),
		"Index", pluralAs(int64(doc.IndexEntries), "entry", "entries")+", times "+itoa(int64(doc.TimeEntries))+", block sums of "+h.Bytes.Format(doc.Summed),
		"CRC32C", doc.CRC,
	)
	if doc.Trailing > 0 {
		p.Line("%s behind the last batch that can be read", h.Bytes.Format(doc.Trailing))
	}
	for _, note := range doc.Notes {
		p.Line("%s", term.Escape(note))
	}
	if len(doc.Problems) == 0 {
		p.Line("%s", p.Style().OK("nothing is damaged"))
		return
	}
	for _, problem := range doc.Problems {
		p.Line("%s %s", p.Style().Bad("damaged:"), term.Escape(problem))
	}
}
