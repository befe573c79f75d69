package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type topicAlterer interface {
	AlterTopic(ctx context.Context, r sdk.AlterTopic) (sdk.AlteredTopic, error)
}

type topicAlterOptions struct {
	*app
	name     string
	set      map[string]string
	unset    []string
	dryRun   bool
	detailed bool
}

const schemaTopicAlter = "topic.alter/1"

// alteredTopic is the document of topic alter.
type alteredTopic struct {
	Schema            string       `json:"schema"`
	Topic             string       `json:"topic"`
	ID                string       `json:"id"`
	Version           uint64       `json:"version"`
	DryRun            bool         `json:"dry_run"`
	ReplicationFactor int          `json:"replication_factor" doc:"after the change"`
	Copies            int          `json:"copies" doc:"of what was written just before it, in the range with the fewest; below the factor the active segments get successors that have more"`
	Changes           []settingDif `json:"changes"`
}

type settingDif struct {
	Key    string `json:"key" col:"KEY"`
	Before string `json:"before" col:"BEFORE"`
	After  string `json:"after" col:"AFTER"`
}

func newTopicAlterCommand(a *app) *cobra.Command {
	o := &topicAlterOptions{app: a}
	cmd := &cobra.Command{
		Use:   "alter <topic> key=value… key-…",
		Short: "Change a topic's settings; key- sets one back to its default",
		Example: `  topic alter my_topic retention=3d
  topic alter my_topic retention=3d label.team- --dry-run`,
		Args:              argsAtLeast(2),
		Annotations:       map[string]string{noteChanges: "yes", noteSchema: "topic.alter", noteExits: "4 5 12"},
		ValidArgsFunction: a.completeAlter,
	}
	addPlanFlags(cmd.Flags(), &o.dryRun, &o.detailed)
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, args []string) error {
		if err := o.parse(args); err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runTopicAlter(ctx, o, admin)
	})
	return cmd
}

func (o *topicAlterOptions) parse(args []string) error {
	o.name, o.set = args[0], map[string]string{}
	// What the settings mean is checked against a scratch config, so that a slip never reaches the broker.
	var scratch sdk.TopicConfig
	for _, arg := range args[1:] {
		key, value, isSet := strings.Cut(arg, "=")
		var err error
		switch {
		case isSet:
			o.set[key] = value
			err = scratch.Set(key, value)
		case strings.HasSuffix(arg, "-"):
			key = strings.TrimSuffix(arg, "-")
			o.unset = append(o.unset, key)
			err = scratch.Unset(key)
		default:
			return usagef("%q is neither key=value nor key-", arg).WithHint("for example: topic alter %s retention=3d", o.name)
		}
		if err != nil {
			return settingHint(key, err)
		}
	}
	return nil
}

func settingHint(key string, err error) error {
	if best := suggest(key, sdk.TopicConfig{}.Keys()); best != "" && best != key {
		return usagef("%s", describe(err).Message).WithHint("did you mean %q?", best)
	}
	return err
}

func runTopicAlter(ctx context.Context, o *topicAlterOptions, admin interface {
	topicAlterer
	topicDescriber
	topicLister
},
) error {
	request := sdk.AlterTopic{Name: o.name, Set: o.set, Unset: o.unset, DryRun: true}
	before, err := admin.DescribeTopic(ctx, o.name)
	if err != nil {
		return o.suggestExisting(ctx, admin, o.name, err)
	}
	plan, err := admin.AlterTopic(ctx, request)
	if err != nil {
		return err
	}
	doc := o.document(before, plan)
	if o.dryRun || len(doc.Changes) == 0 {
		return o.planned(doc)
	}
	if narrows(before.Config, o.set, o.unset) {
		err := o.confirmL1(ctx, o.name, func(p *term.Page) { p.Table(changesInWords(doc.Changes)) },
			"records that the new retention does not keep are deleted for good")
		if err != nil {
			return err
		}
	}
	// The plan's version is the precondition: whatever happened while the question stood there wins.
	request.DryRun, request.ExpectVersion, request.ExpectTopic = false, uint64(before.Summary.Version), before.Summary.ID
	done, err := admin.AlterTopic(ctx, request)
	if err != nil {
		return err
	}
	return unprinted(o.print(o.document(before, done)))
}

// narrows reports whether the change lets records be deleted earlier.
func narrows(config sdk.TopicConfig, set map[string]string, unset []string) bool {
	next := config.Clone()
	if err := next.Alter(set, unset); err != nil {
		return false
	}
	return config.NarrowsRetention(next)
}

func (o *topicAlterOptions) document(before sdk.TopicDetail, r sdk.AlteredTopic) alteredTopic {
	doc := alteredTopic{
		Schema: schemaTopicAlter, Topic: o.name, ID: r.Topic.String(), Version: uint64(r.Version), DryRun: o.dryRun,
		ReplicationFactor: factorAfter(before.Config, r.After), Changes: []settingDif{},
	}
	doc.Copies = copiesOf(before, doc.ReplicationFactor)
	keys := map[string]bool{}
	for k := range r.Before {
		keys[k] = true
	}
	for k := range r.After {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if r.Before[k] != r.After[k] {
			doc.Changes = append(doc.Changes, settingDif{Key: k, Before: r.Before[k], After: r.After[k]})
		}
	}
	return doc
}

func (o *topicAlterOptions) planned(doc alteredTopic) error {
	if err := o.print(doc); err != nil {
		return err
	}
	if o.dryRun && len(doc.Changes) > 0 {
		o.note("would change topic %s; nothing has been changed", term.Escape(doc.Topic))
	}
	if o.dryRun && o.detailed && len(doc.Changes) > 0 {
		return notMet("the topic would be changed")
	}
	return nil
}

func (o *topicAlterOptions) print(doc alteredTopic) error {
	out := o.output()
	switch {
	case !out.Machine() && len(doc.Changes) > 0:
		if doc.Copies < doc.ReplicationFactor {
			o.note("%d of %d copies so far: what is written gets the others as its segments are ended and the next ones open; what is sealed keeps its own", doc.Copies, doc.ReplicationFactor)
		}
		return out.List(changesInWords(doc.Changes))
	case out.Machine() && !out.JSON():
		return out.List(doc.Changes)
	}
	return out.Object(doc, func(p *term.Page) { p.Line("topic %s is like that already", term.Escape(doc.Topic)) })
}
