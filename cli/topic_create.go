package cli

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type topicCreator interface {
	CreateTopic(ctx context.Context, r sdk.CreateTopic) (sdk.CreatedTopic, error)
}

type createTopicOptions struct {
	*app
	request     sdk.CreateTopic
	ifNotExists bool
	explain     bool
	dryRun      bool
	detailed    bool
}

// createdTopic is the document of topic create.
type createdTopic struct {
	Schema            string        `json:"schema"`
	Topic             string        `json:"topic"`
	ID                string        `json:"id"`
	ReplicationFactor int           `json:"replication_factor"`
	Copies            int           `json:"copies" doc:"of what is written now, in the range with the fewest; below the factor while too few nodes can take one"`
	Ranges            int           `json:"ranges"`
	Strategy          string        `json:"strategy"`
	Shard             string        `json:"shard"`
	ShardLeader       string        `json:"shard_leader"`
	Created           bool          `json:"created" doc:"false when it existed, or for a dry run"`
	DryRun            bool          `json:"dry_run"`
	TookMs            float64       `json:"took_ms"`
	Placement         []placedRange `json:"placement,omitempty" doc:"with --explain"`
	Reasons           []string      `json:"reasons,omitempty" doc:"with --explain: why each node was chosen or not, for the first ranges"`
}

// placedRange is where a range of a new topic begins.
type placedRange struct {
	Range    string    `json:"range" col:"RANGE"`
	Start    term.Hash `json:"start" col:"START" as:"hash"`
	End      string    `json:"end" col:"END" as:"hash" doc:"exclusive; 2^64 is 0x10000000000000000"`
	Leader   string    `json:"leader" col:"LEADER" doc:"takes the writes"`
	Replicas []string  `json:"replicas" col:"REPLICAS"`
}

const schemaTopicCreate = "topic.create/1"

// settingFlags maps flags of create-topic to keys of the topic's settings, which parse and check them.
var settingFlags = []struct{ flag, key, help string }{
	{"strategy", "strategy", "who decides the ranges: `auto` splits and merges with load, fixed keeps them"},
	{"retention", "retention", "keep records this `DURATION`, such as 7d (default: for ever)"},
	{"retention-bytes", "retention_bytes", "keep at most this `SIZE` in each range"},
	{"segment-size", "segment_bytes", "seal a segment at this `SIZE` (default: the brokers' setting)"},
	{"segment-age", "segment_age", "seal a segment after this `DURATION` (default: the brokers' setting)"},
	{"compression", "compression", "`CODEC` of producers that name none: none, lz4 or zstd"},
	{"durability", "durability", "what an ack promises: `fsync` (the default), or replicated for in memory on all replicas"},
	{"min-replicas", "min_replicas", "never open a segment on fewer than `N` replicas (default: a majority)"},
	{"spread-by", "spread_by", "spread replicas over this node `LABEL`, or rack"},
	{"split-rate", "split_rate", "split a range that is written faster than this `SIZE` a second"},
	{"on-total-loss", "on_total_loss", "when no replica is left: `wait` (the default), or replace and accept the loss"},
}

func newCreateTopicCommand(a *app, use string) *cobra.Command {
	o := &createTopicOptions{app: a}
	var rf int
	var splitAt []string
	cmd := &cobra.Command{
		Use:   use,
		Short: "Create a topic; the number is its replication factor",
		Long: "Creates a topic. The second argument is the replication factor: how many nodes hold each record.\n" +
			"Without it the factor is the smaller of 3 and the number of nodes; the topic begins with those that are live.",
		Example: `  create-topic my_topic 3
  create-topic my_topic --rf 1 --ranges 4 --retention 7d
  create-topic my_topic 3 --explain --dry-run
  create-topic my_topic 1 --if-not-exists -o json`,
		Args:        argsBetween(1, 2),
		Annotations: map[string]string{noteChanges: "yes", noteSchema: "topic.create", noteExits: "5 12"},
	}
	f := cmd.Flags()
	f.IntVar(&rf, "rf", 0, "replication factor `N`, the same as the second argument")
	f.IntVar(&o.request.Ranges, "ranges", 0, "begin with `N` ranges, a power of two (default 1)")
	f.StringSliceVar(&splitAt, "split-at", nil, "cut the key space at these `0x40,0x80,…` in place of --ranges")
	for _, s := range settingFlags {
		f.String(s.flag, "", s.help)
	}
	f.StringArray("label", nil, "label `k=v`; may be repeated")
	f.BoolVar(&o.request.AllowUnderReplicated, "allow-under-replicated", false, "create it though fewer nodes live than the factor asks for")
	f.BoolVar(&o.ifNotExists, "if-not-exists", false, "succeed when the topic exists already")
	f.BoolVar(&o.explain, "explain", false, "show which nodes each range begins on; goes well with --dry-run")
	f.Bool("wait", false, "wait until it takes records, which is what it does whenever this command succeeds")
	addPlanFlags(f, &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if err := o.parse(cmd, args, rf, splitAt); err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runCreateTopic(ctx, o, admin)
	})
	return cmd
}

func (o *createTopicOptions) parse(cmd *cobra.Command, args []string, rf int, splitAt []string) error {
	o.request.Name = args[0]
	if err := sdk.CheckTopicName(args[0]); err != nil {
		return err
	}
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return usagef("the replication factor %q is not a number", args[1]).WithHint("create-topic %s 3 makes three copies; --ranges N pre-splits", args[0])
		}
		if rf != 0 && rf != n {
			return usagef("two replication factors are given: %d and --rf %d", n, rf)
		}
		rf = n
	}
	if rf < 0 || len(args) == 2 && rf == 0 {
		return usagef("the replication factor must be at least 1")
	}
	o.request.Config.ReplicationFactor = rf
	if n := o.request.Ranges; n < 0 || n > 0 && bits.OnesCount(uint(n)) != 1 {
		return usagef("--ranges must be a power of two: 1, 2, 4, 8 …; it is %d", n)
	}
	if err := o.parseSplit(splitAt); err != nil {
		return err
	}
	return o.parseSettings(cmd)
}

func (o *createTopicOptions) parseSplit(points []string) error {
	if len(points) > 0 && o.request.Ranges > 0 {
		return usagef("--ranges and --split-at exclude each other")
	}
	for _, p := range points {
		h, err := parseHash(p)
		if err != nil {
			return err
		}
		o.request.SplitAt = append(o.request.SplitAt, h)
	}
	return nil
}

func (o *createTopicOptions) parseSettings(cmd *cobra.Command) error {
	for _, s := range settingFlags {
		v, err := cmd.Flags().GetString(s.flag)
		if err != nil || !cmd.Flags().Changed(s.flag) {
			continue
		}
		if err := o.request.Config.Set(s.key, v); err != nil {
			return flagValueError(s.flag, err)
		}
	}
	labels, err := cmd.Flags().GetStringArray("label")
	if err != nil {
		return err
	}
	for _, l := range labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return usagef("--label %q is not k=v", l)
		}
		if err := o.request.Config.Set("label."+k, v); err != nil {
			return flagValueError("label", err)
		}
	}
	return nil
}

// flagValueError names the flag in an error about its value.
func flagValueError(flag string, err error) error {
	var e *sdk.Error
	if errors.As(err, &e) {
		w := *e
		w.Msg, w.Err = "--"+flag+": "+rootMessage(e), nil
		return &w
	}
	return usagef("--%s: %v", flag, err)
}

// parseHash reads a point of the key space. Digits stand for the most significant ones, so 0x40 is a quarter of
// the way.
func parseHash(s string) (uint64, error) {
	digits, ok := strings.CutPrefix(strings.ToLower(s), "0x")
	if !ok || digits == "" || len(digits) > 16 {
		return 0, usagef("%q is not a point of the key space such as 0x40", s)
	}
	h, err := strconv.ParseUint(digits+strings.Repeat("0", 16-len(digits)), 16, 64)
	if err != nil {
		return 0, usagef("%q is not a point of the key space such as 0x40", s)
	}
	return h, nil
}

func runCreateTopic(ctx context.Context, o *createTopicOptions, admin interface {
	topicCreator
	topicDescriber
},
) error {
	o.request.DryRun = o.dryRun
	start := o.Now()
	made, err := admin.CreateTopic(ctx, o.request)
	if errors.Is(err, sdk.CodeTopicExists) {
		return o.exists(ctx, admin, err)
	}
	if err != nil {
		return err
	}
	t := made.Topic.Summary
	doc := createdTopic{
		Schema: schemaTopicCreate, Topic: t.Name, ID: t.ID.String(), ReplicationFactor: t.ReplicationFactor, Ranges: t.Ranges,
		Copies: copiesOf(made.Topic, t.ReplicationFactor), Strategy: t.Strategy.String(), Shard: made.Shard.String(), ShardLeader: string(made.ShardLeader),
		Created: !o.dryRun, DryRun: o.dryRun, TookMs: millis(o.Now().Sub(start)),
	}
	if o.explain {
		doc.Placement, doc.Reasons = placementOf(made.Topic), made.Explain
	}
	if err := o.printCreated(doc); err != nil {
		if doc.Created {
			return unprinted(err)
		}
		return err
	}
	if o.dryRun && o.detailed {
		return notMet("the topic would be created")
	}
	return nil
}

func (o *createTopicOptions) printCreated(doc createdTopic) error {
	verb := "created"
	if doc.DryRun {
		verb = "would create"
	}
	return o.output().Object(doc, func(p *term.Page) {
		p.Line("%s topic %s  replication factor %d  %s  shard %s (leader %s)  %s", verb, term.Escape(doc.Topic), doc.ReplicationFactor,
			plural(int64(doc.Ranges), "range"), doc.Shard, orDash(doc.ShardLeader), took(doc.TookMs))
		doc.shortOfCopies(p)
		if o.explain {
			p.Line("")
			p.Table(doc.Placement)
			for i, reason := range doc.Reasons {
				if i == 0 {
					p.Line("")
				}
				p.Line("%s", term.Escape(reason))
			}
		}
	})
}

// shortOfCopies says how many copies there are where the factor asks for more.
func (d *createdTopic) shortOfCopies(p *term.Page) {
	if text := fewerCopies(d.Copies, d.ReplicationFactor); text != "" {
		p.Line("%s", p.Style().Warn(text))
	}
}

func placementOf(t sdk.TopicDetail) []placedRange {
	rows := []placedRange{}
	for _, r := range t.Ranges {
		row := placedRange{Range: r.ID.String(), Start: term.Hash(r.Span.Start), End: spanEnd(r.Span.End), Replicas: []string{}}
		for _, s := range r.Segments {
			row.Replicas = row.Replicas[:0] // of the last segment, which is the active one
			for _, rep := range s.Replicas {
				row.Replicas = append(row.Replicas, string(rep.Node))
			}
		}
		if len(row.Replicas) > 0 {
			row.Leader = row.Replicas[0]
		}
		rows = append(rows, row)
	}
	return rows
}

// exists answers for a topic that is there already: fine with --if-not-exists, else an error with its facts.
func (o *createTopicOptions) exists(ctx context.Context, admin topicDescriber, cause error) error {
	name := o.request.Name
	found, err := admin.DescribeTopic(ctx, name)
	t := found.Summary
	if o.ifNotExists {
		if err != nil {
			return err
		}
		doc := createdTopic{
			Schema: schemaTopicCreate, Topic: name, ID: t.ID.String(), ReplicationFactor: t.ReplicationFactor, Ranges: t.Ranges,
			Copies: copiesOf(found, t.ReplicationFactor), Strategy: t.Strategy.String(), Shard: t.Shard.String(), ShardLeader: string(t.ShardLeader), DryRun: o.dryRun,
		}
		return o.output().Object(doc, func(p *term.Page) {
			p.Line("topic %s exists  replication factor %d  %s", name, t.ReplicationFactor, plural(int64(t.Ranges), "range"))
			doc.shortOfCopies(p)
		})
	}
	var e *sdk.Error
	if errors.As(cause, &e) {
		cause = e.WithHint("pass --if-not-exists, or see: eg-cli topic describe %s", name)
	}
	if err != nil {
		return cause
	}
	return detailed{cause, []string{fmt.Sprintf("created %s, replication factor %d, %s",
		term.TimeUTC.FormatDate(timeOf(t.CreatedMs).Time, o.Now()), t.ReplicationFactor, plural(int64(t.Ranges), "range"))}}
}
