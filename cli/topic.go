package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func newTopicCommand(a *app) *cobra.Command {
	cmd := newGroup("topic", "Create, list, describe, alter and delete topics",
		newCreateTopicCommand(a, "create <topic> [rf]"),
		newTopicListCommand(a, "list [glob]"),
		newTopicDescribeCommand(a),
		newTopicAlterCommand(a),
		newTopicDeleteCommand(a),
	)
	// "topics" is "topic list", not another name of the noun.
	return cmd
}

// topicRow is a topic in topic list, and the summary of topic describe.
type topicRow struct {
	Name              string            `json:"name" col:"NAME"`
	ID                string            `json:"id"`
	State             string            `json:"state"`
	Ranges            int               `json:"ranges" col:"RANGES"`
	ReplicationFactor int               `json:"replication_factor" col:"RF"`
	Strategy          string            `json:"strategy" col:"STRATEGY"`
	InPerSec          int64             `json:"in_per_sec" col:"IN/s" as:"bytes" doc:"bytes written a second"`
	Bytes             int64             `json:"bytes" col:"SIZE" as:"bytes"`
	RetentionMs       int64             `json:"retention_ms" col:"RETENTION" as:"span" doc:"0 means for ever"`
	RetentionBytes    int64             `json:"retention_bytes" doc:"of each range; 0 means no limit"`
	CreatedAt         term.Time         `json:"created_at" col:"AGE" as:"age"`
	Shard             string            `json:"shard" col:"SHARD,wide"`
	ShardLeader       string            `json:"shard_leader" col:"LEADER,wide"`
	Segments          int               `json:"segments" col:"SEGMENTS,wide"`
	Records           int64             `json:"records" col:"RECORDS,wide" as:"count"`
	RecordsPerSec     int64             `json:"records_per_sec"`
	Compression       string            `json:"compression" col:"COMPRESSION,wide"`
	Labels            map[string]string `json:"labels" col:"LABELS,wide"`
	Partial           bool              `json:"partial" doc:"leaders of segments did not answer: records and bytes lack theirs"`
}

func newTopicRow(t sdk.TopicSummary) topicRow {
	row := topicRow{
		Name: t.Name, ID: t.ID.String(), State: t.State.String(), Ranges: t.Ranges, ReplicationFactor: t.ReplicationFactor,
		Strategy: t.Strategy.String(), InPerSec: t.InBytesPerSec, Bytes: t.Bytes, RetentionMs: t.RetentionMs,
		RetentionBytes: t.RetentionBytes, CreatedAt: timeOf(t.CreatedMs), Shard: t.Shard.String(),
		ShardLeader: string(t.ShardLeader), Segments: t.Segments, Records: t.Records, RecordsPerSec: t.InRecordsPerSec,
		Compression: t.Compression, Labels: t.Labels, Partial: t.Partial,
	}
	if row.Labels == nil {
		row.Labels = map[string]string{}
	}
	if row.Compression == "" {
		row.Compression = "none"
	}
	return row
}

// timeOf is a point in time from the wire; 0 is none.
func timeOf(ms int64) term.Time {
	if ms == 0 {
		return term.Time{}
	}
	return term.Time{Time: time.UnixMilli(ms)}
}
