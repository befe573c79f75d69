package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type topicDeleter interface {
	DeleteTopic(ctx context.Context, r sdk.DeleteTopic) (sdk.DeletedTopic, error)
	TopicRemoved(ctx context.Context, name string, id sdk.TopicID) (bool, error)
}

type topicDeleteOptions struct {
	*app
	names    []string
	regex    string
	ifExists bool
	wait     bool
	dryRun   bool
	detailed bool
}

// deletedTopic is a row of topic delete.
type deletedTopic struct {
	Topic    string   `json:"topic" col:"TOPIC"`
	ID       string   `json:"id"`
	Version  uint64   `json:"version,omitempty" doc:"of the topic as the plan found it: it is deleted as long as it is at that"`
	Ranges   int      `json:"ranges" col:"RANGES"`
	Segments int      `json:"segments" col:"SEGMENTS"`
	Bytes    int64    `json:"bytes" col:"BYTES" as:"bytes"`
	Groups   []string `json:"groups" col:"GROUPS,wide"`
	Result   string   `json:"result" col:"RESULT" doc:"deleted, would delete, absent, or an error code"`
	Message  string   `json:"message,omitempty"`

	topic sdk.TopicID
}

func newTopicDeleteCommand(a *app) *cobra.Command {
	o := &topicDeleteOptions{app: a}
	cmd := &cobra.Command{
		Use:   "delete <topic>…",
		Short: "Delete topics and their data, for good",
		Long: "Deletes topics. The names are free at once, the disk space as each broker removes its files: --wait waits for\n" +
			"that, within --timeout, and exits 12 when it was not over by then.",
		Example: `  topic delete my_topic
  topic delete my_topic --yes
  topic delete --regex 'tmp-.*' --dry-run`,
		Args:              cobra.ArbitraryArgs,
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "topic.delete", noteExits: "4 5 8 12"},
		ValidArgsFunction: a.completeTopicsMany,
	}
	cmd.Flags().StringVar(&o.regex, "regex", "", "all topics that match this `EXPRESSION` from end to end; never internal ones")
	cmd.Flags().BoolVar(&o.ifExists, "if-exists", false, "succeed for topics that do not exist")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the data is gone from every disk")
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		if (len(args) == 0) == (o.regex == "") {
			return usagef("name the topics to delete, or give --regex").WithHint("see: eg-cli topic delete --help")
		}
		o.names = args
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runTopicDelete(ctx, o, admin)
	})
	return cmd
}

type topicDeleteAdmin interface {
	topicDeleter
	topicLister
}

func runTopicDelete(ctx context.Context, o *topicDeleteOptions, admin topicDeleteAdmin) error {
	if err := o.expand(ctx, admin); err != nil {
		return err
	}
	plan, err := o.plan(ctx, admin)
	if err != nil {
		return err
	}
	doomed := 0
	for _, row := range plan {
		if row.Result == "" {
			doomed++
		}
	}
	if o.dryRun {
		return o.printPlan(plan, doomed)
	}
	if doomed > 0 {
		if err := o.confirm(ctx, plan, doomed); err != nil {
			return err
		}
	}
	return o.apply(ctx, admin, plan)
}

// expand turns --regex into names. Internal topics are never matched.
func (o *topicDeleteOptions) expand(ctx context.Context, admin topicLister) error {
	if o.regex == "" {
		return nil
	}
	re, err := compileAnchored(o.regex)
	if err != nil {
		return err
	}
	found, err := admin.ListTopics(ctx, sdk.ListTopics{})
	if err != nil {
		return err
	}
	for _, t := range found.Topics {
		if re.MatchString(t.Name) && !strings.HasPrefix(t.Name, "__") {
			o.names = append(o.names, t.Name)
		}
	}
	if len(o.names) == 0 && !o.ifExists {
		return errorf(sdk.CodeTopicNotFound, "no topic matches %q", o.regex).WithHint("see what exists: eg-cli topic list")
	}
	return o.incomplete(found.Missing)
}

// plan asks what would go with each topic. A topic that is not there ends the command, unless --if-exists.
func (o *topicDeleteOptions) plan(ctx context.Context, admin topicDeleteAdmin) ([]deletedTopic, error) {
	var rows []deletedTopic
	for _, name := range o.names {
		r, err := admin.DeleteTopic(ctx, sdk.DeleteTopic{Name: name, DryRun: true})
		switch {
		case errors.Is(err, sdk.CodeTopicNotFound) && o.ifExists:
			rows = append(rows, deletedTopic{Topic: name, Groups: []string{}, Result: "absent"})
			continue
		case errors.Is(err, sdk.CodeTopicNotFound):
			return nil, o.suggestExisting(ctx, admin, name, err)
		case err != nil:
			return nil, err
		}
		row := deletedTopic{
			Topic: name, ID: r.Topic.String(), Ranges: r.Ranges, Segments: r.Segments, Bytes: r.Bytes, Groups: r.Groups,
			Version: uint64(r.Version), topic: r.Topic,
		}
		if row.Groups == nil {
			row.Groups = []string{}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (o *topicDeleteOptions) printPlan(plan []deletedTopic, doomed int) error {
	for i := range plan {
		if plan[i].Result == "" {
			plan[i].Result = "would delete"
		}
	}
	if err := o.output().List(plan); err != nil {
		return err
	}
	if o.detailed && doomed > 0 {
		return notMet("topics would be deleted")
	}
	return nil
}

func (o *topicDeleteOptions) confirm(ctx context.Context, plan []deletedTopic, doomed int) error {
	name := plan[0].Topic
	for _, row := range plan {
		if row.Result == "" {
			name = row.Topic
			break
		}
	}
	if doomed > 1 {
		name = plural(int64(doomed), "topic")
	}
	shown := slices.Clone(plan)
	for i := range shown {
		if shown[i].Result == "" {
			shown[i].Result = "to delete"
		}
	}
	return o.confirmL2(ctx, name, func(p *term.Page) { p.Table(shown) }, "the data is deleted for good")
}

// apply deletes topic by topic, each against the version its plan was made from.
func (o *topicDeleteOptions) apply(ctx context.Context, admin topicDeleter, plan []deletedTopic) error {
	var failed []error
	for i := range plan {
		row := &plan[i]
		if row.Result != "" {
			continue
		}
		_, err := admin.DeleteTopic(ctx, sdk.DeleteTopic{Name: row.Topic, ExpectVersion: row.Version, ExpectTopic: row.topic})
		if row.Result = "deleted"; err != nil {
			r := describe(err)
			row.Result, row.Message = r.Code, r.Message
			failed = append(failed, err)
		}
	}
	if len(failed) == 1 && len(plan) == 1 {
		return failed[0]
	}
	var late error
	if o.wait {
		late = o.awaitRemoval(ctx, admin, plan)
	}
	if err := o.printResult(plan); err != nil {
		if len(failed) < len(plan) {
			return unprinted(err)
		}
		return err
	}
	o.Session.names.forget()
	if len(failed) > 0 {
		return partly(unknown(mostTelling(failed...)), "%d of %s could not be deleted", len(failed), plural(int64(len(plan)), "topic")).WithHint("see RESULT of each; the others are gone")
	}
	return late
}

// awaitRemoval waits until the data of the deleted topics is gone. What is not gone in time is said of its row.
func (o *topicDeleteOptions) awaitRemoval(ctx context.Context, admin topicDeleter, plan []deletedTopic) error {
	o.note("waiting until the data is gone from every disk")
	var first error
	for i := range plan {
		row := &plan[i]
		if row.Result != "deleted" {
			continue
		}
		err := untilRemoved(ctx, admin, row)
		if errors.Is(err, context.DeadlineExceeded) {
			row.Message = "its data is not gone from every disk yet"
			err = errorf(sdk.CodeNotMet, "topic %s is deleted, but %s", row.Topic, row.Message).
				WithHint("it goes when the brokers that hold it are up; a longer --timeout waits longer")
		}
		first = firstError(first, unprinted(err))
	}
	return first
}

// untilRemoved asks until the topic is gone or the time is up. A broker that does not answer is not yet a failure.
func untilRemoved(ctx context.Context, admin topicDeleter, row *deletedTopic) error {
	for wait := removalPoll; ; wait = min(2*wait, removalPollMost) {
		gone, err := admin.TopicRemoved(ctx, row.Topic, row.topic)
		if gone || err != nil && !worthWaiting(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// removalPoll is the first pause between two looks at whether a topic is gone, which then doubles up to removalPollMost.
const (
	removalPoll     = 20 * time.Millisecond
	removalPollMost = time.Second
)

// printResult prints the table of results; at a terminal, where the plan was a table already, one topic takes a line.
func (o *topicDeleteOptions) printResult(rows []deletedTopic) error {
	if o.machine() || o.set.format == term.FormatWide || len(o.flags.columns) > 0 || !o.io.IsOutTTY() || len(rows) != 1 || rows[0].Result != "deleted" {
		return o.output().List(rows)
	}
	row := rows[0]
	return o.output().Object(row, func(p *term.Page) {
		p.Line("deleted %s  %s  %s", term.Escape(row.Topic), plural(int64(row.Ranges), "range"), p.Human().Bytes.Format(row.Bytes))
	})
}
