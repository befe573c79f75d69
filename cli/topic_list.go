package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/sdk"
)

type topicLister interface {
	ListTopics(ctx context.Context, r sdk.ListTopics) (sdk.TopicList, error)
}

type topicListOptions struct {
	*app
	request sdk.ListTopics
	regex   string
	label   string
}

func newTopicListCommand(a *app, use string) *cobra.Command {
	o := &topicListOptions{app: a}
	cmd := &cobra.Command{
		Use:   use,
		Short: "List topics",
		Example: `  topic list
  topic list 'ord*' --sort-by in_per_sec:desc
  topic list -o json | jq '.[].name'`,
		Args:              argsBetween(0, 1),
		Annotations:       map[string]string{noteSchema: "topic.list", noteExits: "8"},
		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().StringVar(&o.regex, "regex", "", "only names that match this `EXPRESSION` from end to end")
	cmd.Flags().BoolVar(&o.request.Internal, "internal", false, "system topics too")
	cmd.Flags().StringVar(&o.label, "label", "", "only topics with label `k=v`, or with label k")
	o.watchable(cmd, func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			o.request.Glob = args[0]
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runTopicList(ctx, o, admin)
	})
	return cmd
}

func runTopicList(ctx context.Context, o *topicListOptions, admin topicLister) error {
	keep, err := o.filter()
	if err != nil {
		return err
	}
	found, err := admin.ListTopics(ctx, o.request)
	if err != nil {
		return err
	}
	rows := make([]topicRow, 0, len(found.Topics))
	for _, t := range found.Topics {
		if keep(t) {
			rows = append(rows, newTopicRow(t))
		}
	}
	if len(rows) == 0 && len(found.Missing) == 0 && !o.machine() {
		o.note("no topics%s. create one: create-topic NAME 1", o.scope())
		return nil
	}
	if err := o.output().List(rows); err != nil {
		return err
	}
	o.notePartial(rows)
	return o.incomplete(found.Missing)
}

// notePartial tells which sizes are too small. The list is whole all the same.
func (o *topicListOptions) notePartial(rows []topicRow) {
	n := int64(0)
	for _, r := range rows {
		if r.Partial {
			n++
		}
	}
	if n > 0 && !o.machine() {
		o.note("the size of %s lacks segments of which no replica answered: eg-cli node list", plural(n, "topic"))
	}
}

func (o *topicListOptions) scope() string {
	if o.request.Glob != "" || o.regex != "" || o.label != "" {
		return " match"
	}
	return ""
}

// filter does what the broker does not: regular expressions and labels.
func (o *topicListOptions) filter() (func(sdk.TopicSummary) bool, error) {
	var re *regexp.Regexp
	if o.regex != "" {
		var err error
		if re, err = compileAnchored(o.regex); err != nil {
			return nil, err
		}
	}
	key, value, withValue := strings.Cut(o.label, "=")
	return func(t sdk.TopicSummary) bool {
		if re != nil && !re.MatchString(t.Name) {
			return false
		}
		if key == "" {
			return true
		}
		v, ok := t.Labels[key]
		return ok && (!withValue || v == value)
	}, nil
}

// compileAnchored compiles an expression that must match from end to end.
func compileAnchored(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return nil, usagef("--regex %q: %v", text, err)
	}
	return re, nil
}

// incomplete fails with PARTIAL when parts of the metadata did not answer: a short list must not look whole.
func (a *app) incomplete(missing []sdk.ShardID) error {
	if len(missing) == 0 {
		return nil
	}
	missing = slices.Clone(missing)
	slices.SortFunc(missing, func(a, b sdk.ShardID) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), strings.Compare(a.String(), b.String()))
	})
	names := make([]string, 0, shardsNamed)
	for _, m := range missing[:min(len(missing), shardsNamed)] {
		names = append(names, m.String())
	}
	text := strings.Join(names, ", ")
	if more := len(missing) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return errorf(sdk.CodePartial, "the list is not complete: %s did not answer: %s", plural(int64(len(missing)), "shard"), text).
		WithHint("see: eg-cli shard list")
}

// shardsNamed is how many shards an error names.
const shardsNamed = 8
