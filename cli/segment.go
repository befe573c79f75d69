package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type segmentLister interface {
	ListSegments(ctx context.Context, r sdk.ListSegments) (sdk.SegmentList, error)
}

func newSegmentCommand(a *app) *cobra.Command {
	return newGroup("segment", "The segments: where the copies are, who sealed what and why",
		newSegmentListCommand(a, "list"),
		newSegmentDescribeCommand(a),
		newSegmentSealCommand(a),
		newSegmentForceSealCommand(a),
		newSegmentDumpCommand(a),
	)
}

// segmentListRow is a row of segment list, and the head of segment describe.
type segmentListRow struct {
	ID        string    `json:"id" col:"SEGMENT"`
	Subject   string    `json:"subject" col:"TOPIC/RANGE"`
	Topic     string    `json:"topic"`
	Range     string    `json:"range"`
	State     string    `json:"state" col:"STATE"`
	Cause     string    `json:"cause" col:"CAUSE" doc:"why it was sealed"`
	Epoch     int32     `json:"epoch"`
	Base      int64     `json:"base" col:"BASE"`
	End       int64     `json:"end" col:"END" doc:"exclusive; of an active one what is committed so far"`
	Records   int64     `json:"records" col:"RECORDS" as:"count"`
	Bytes     int64     `json:"bytes" col:"SIZE" as:"bytes"`
	Replicas  []string  `json:"replicas" col:"REPLICAS" doc:"the leader first"`
	Copies    int       `json:"copies" doc:"replicas that hold it whole, as far as they answered"`
	Factor    int       `json:"replication_factor"`
	Age       term.Time `json:"age_since" col:"AGE" as:"age" doc:"what AGE counts from: created_at"`
	CreatedAt term.Time `json:"created_at" col:"CREATED,wide"`
	SealedAt  term.Time `json:"sealed_at" col:"SEALED,wide"`
	GapMs     int64     `json:"gap_ms" col:"GAP-MS,wide" doc:"from the last ack before it to its first"`
	Tier      string    `json:"tier" col:"TIER,wide" doc:"where its data is: disk"`
	Unknown   bool      `json:"unknown" doc:"no replica answered: end, records and bytes are not known"`
	Forced    bool      `json:"forced" doc:"an operator ended it without knowing its end"`
	Waits     string    `json:"waits,omitempty" doc:"its range takes no records: what its end, or the next segment, waits for"`
}

func newSegmentListRow(r sdk.SegmentRow) segmentListRow {
	s := r.Segment
	row := segmentListRow{
		ID: s.ID.String(), Subject: r.Topic + "/" + r.Range.String(), Topic: r.Topic, Range: r.Range.String(), State: s.State.String(),
		Cause: s.Cause.String(), Epoch: int32(s.Epoch), Base: s.Base, End: s.End, Records: s.Records, Bytes: s.Bytes, Replicas: []string{},
		Copies: r.Copies, Factor: r.ReplicationFactor, Age: timeOf(s.CreatedMs), CreatedAt: timeOf(s.CreatedMs), SealedAt: timeOf(s.SealedMs),
		GapMs: s.GapMs, Tier: "disk", Unknown: s.Unknown, Forced: s.Forced, Waits: s.Waits,
	}
	for _, rep := range s.Replicas {
		row.Replicas = append(row.Replicas, string(rep.Node))
	}
	return row
}

// segmentStates are what segment list can be asked for.
var segmentStates = []string{"active", "sealed", "under-replicated"}

type segmentListOptions struct {
	*app
	topic, rng, node, state string
}

func newSegmentListCommand(a *app, use string) *cobra.Command {
	o := &segmentListOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the segments: state, cause, offsets, replicas",
		Long: "Lists the segments of all topics, or of those that fit. Offsets of a segment count within its range. CAUSE says why a\n" +
			"sealed one ended: DATA_PRESSURE, AGE, IDLE, REPLICA_FAILURE, LEADER_FAILURE, RECOVERY, SPLIT, MERGE, OPERATOR, DRAIN.",
		Example: `  segment list --topic my_topic
  segment list --state under-replicated
  segment list --node n2 --sort-by bytes:desc
  segment list --topic my_topic -o json --jq '.[] | select(.cause == "REPLICA_FAILURE")'`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "segment.list", noteExits: "4 8"},
	}
	f := cmd.Flags()
	f.StringVar(&o.topic, "topic", "", "only those of this `TOPIC`")
	f.StringVarP(&o.rng, "range", "r", "", "only those of this `RANGE` of the topic")
	f.StringVar(&o.node, "node", "", "only those that this `NODE` is to hold a copy of")
	f.StringVar(&o.state, "state", "", "only those in this `STATE`: active, sealed, under-replicated")
	completeWith(cmd, "topic", a.completeTopics)
	completeWith(cmd, "node", a.completeNode)
	completeWith(cmd, "state", oneOfWords(segmentStates...))
	o.watchable(cmd, func(ctx context.Context, _ []string) error {
		r, err := o.request()
		if err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runSegmentList(ctx, o, admin, r)
	})
	return cmd
}

func (o *segmentListOptions) request() (sdk.ListSegments, error) {
	r := sdk.ListSegments{Topic: o.topic, Node: sdk.NodeID(o.node), State: o.state}
	if o.state != "" && !slices.Contains(segmentStates, o.state) {
		return r, usagef("--state %q is not one of active, sealed, under-replicated", o.state)
	}
	if o.rng == "" {
		return r, nil
	}
	if o.topic == "" {
		return r, usagef("-r %s needs --topic: a range is one of a topic", o.rng)
	}
	id, err := sdk.ParseRangeID(o.rng)
	if err != nil {
		return r, flagValueError("range", err)
	}
	r.Range = id
	return r, nil
}

func runSegmentList(ctx context.Context, o *segmentListOptions, admin interface {
	segmentLister
	topicLister
	nodeLister
}, r sdk.ListSegments,
) error {
	list, err := admin.ListSegments(ctx, r)
	if err != nil {
		return o.suggestNode(ctx, admin, o.node, o.suggestExisting(ctx, admin, o.topic, err))
	}
	rows := []segmentListRow{}
	for _, s := range list.Segments {
		rows = append(rows, newSegmentListRow(s))
	}
	if err := o.output().List(segmentsForPeople(rows, o.machine())); err != nil {
		return err
	}
	return o.incomplete(list.Missing)
}

// segmentsForPeople says in STATE what a row's figures are worth, and that copies are missing.
func segmentsForPeople(rows []segmentListRow, machine bool) []segmentListRow {
	if machine {
		return rows
	}
	shown := slices.Clone(rows)
	for i := range shown {
		r := &shown[i]
		r.State = r.stateInWords()
	}
	return shown
}

func (r *segmentListRow) stateInWords() string {
	return segmentFigures{r.State, r.Waits, r.Unknown, r.Base, r.End, r.Copies, r.Factor}.stateInWords()
}

// segmentFigures are what the state of a segment rests on, in whatever table it stands.
type segmentFigures struct {
	state, waits   string
	unknown        bool
	base, end      int64
	copies, factor int
}

// lacks is how many copies there are too few, as far as that is known. A segment that was sealed without a record needs none.
func (s segmentFigures) lacks() int {
	if s.unknown || s.state == "sealed" && s.base == s.end {
		return 0
	}
	return max(s.factor-s.copies, 0)
}

// stateInWords says what the figures of a row are worth: that the segment waits, that nobody answered, or how many copies
// there are where some are missing.
func (s segmentFigures) stateInWords() string {
	switch {
	case s.waits != "":
		return "waiting"
	case s.unknown:
		return noAnswer
	case s.lacks() > 0:
		return fmt.Sprintf("%s %d/%d", s.state, s.copies, s.factor)
	}
	return s.state
}

// suggestSegment tells where to look for one that was not found.
func suggestSegment(cause error) error {
	var e *sdk.Error
	if !errors.As(cause, &e) || e.Code != sdk.CodeSegmentNotFound {
		return cause
	}
	return e.WithHint("see which there are: eg-cli segment list")
}
