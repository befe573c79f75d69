package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/sdk"
)

// Completion asks the cluster, but never for long and never loudly: it is cut off after completionWait and its
// answer is kept for completionKeep.
const (
	completionWait   = 500 * time.Millisecond
	completionKeep   = 5 * time.Second
	completionTopics = 1000
)

// kind is what names are of.
type kind uint8

const (
	kindTopic kind = iota
	kindNode
	kindShard
	kindSegment
	kindActiveSegment
)

// nameCache remembers the names that completion and did-you-mean saw last.
type nameCache struct {
	mu    sync.Mutex
	seeds string
	seen  map[kind]seenNames
}

type seenNames struct {
	names []string
	at    time.Time
}

func (c *nameCache) get(k kind, seeds string, now time.Time) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen[k]
	return seen.names, c.seeds == seeds && now.Sub(seen.at) < completionKeep
}

func (c *nameCache) put(k kind, seeds string, names []string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || c.seeds != seeds {
		c.seeds, c.seen = seeds, make(map[kind]seenNames)
	}
	c.seen[k] = seenNames{names, now}
}

// forget makes the next completion ask again, after a command that changed what there is.
func (c *nameCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
}

// names lists what there is, from the cache or the cluster. Failure is an answer of none.
func (a *app) names(ctx context.Context, k kind, list func(ctx context.Context) ([]string, error)) []string {
	seeds := strings.Join(a.set.seeds, ",")
	if names, fresh := a.Session.names.get(k, seeds, a.Now()); fresh {
		return names
	}
	ctx, cancel := context.WithTimeout(ctx, completionWait)
	defer cancel()
	names, err := list(ctx)
	if err == nil || a.lost {
		// A broker that does not answer is not asked again at every keystroke either.
		a.Session.names.put(k, seeds, names, a.Now())
	}
	return names
}

func (a *app) topicNames(ctx context.Context, admin topicLister) []string {
	return a.names(ctx, kindTopic, func(ctx context.Context) ([]string, error) {
		found, err := admin.ListTopics(ctx, sdk.ListTopics{Limit: completionTopics})
		names := make([]string, len(found.Topics))
		for i, t := range found.Topics {
			names[i] = t.Name
		}
		return names, err
	})
}

func (a *app) nodeNames(ctx context.Context, admin nodeLister) []string {
	return a.names(ctx, kindNode, func(ctx context.Context) ([]string, error) {
		found, err := admin.ListNodes(ctx)
		names := make([]string, len(found.Nodes))
		for i, n := range found.Nodes {
			names[i] = string(n.ID)
		}
		return names, err
	})
}

func (a *app) shardNames(ctx context.Context, admin shardLister) []string {
	return a.names(ctx, kindShard, func(ctx context.Context) ([]string, error) {
		found, err := admin.ListShards(ctx)
		names := make([]string, len(found.Shards))
		for i, s := range found.Shards {
			names[i] = s.ID.String()
		}
		return names, err
	})
}

// segmentNames lists segments, or only the active ones.
func (a *app) segmentNames(ctx context.Context, admin segmentLister, activeOnly bool) []string {
	k, r := kindSegment, sdk.ListSegments{Limit: completionTopics}
	if activeOnly {
		k, r.State = kindActiveSegment, "active"
	}
	return a.names(ctx, k, func(ctx context.Context) ([]string, error) {
		found, err := admin.ListSegments(ctx, r)
		names := make([]string, len(found.Segments))
		for i, s := range found.Segments {
			names[i] = s.Segment.ID.String()
		}
		return names, err
	})
}

// known asks for names on behalf of a completion function, which runs without prepare.
func (a *app) known(cmd *cobra.Command, list func(ctx context.Context, admin Admin) []string) []string {
	if err := a.prepare(cmd); err != nil {
		return nil
	}
	admin, err := a.admin()
	if err != nil {
		return nil
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return list(ctx, admin)
}

// matching are the names that begin as what is typed does, but for those that are there already.
func matching(names, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, toComplete) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeWith gives a command's flag a completion.
func completeWith(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	// The only error is a flag that is not there or has one already, which a test of the tree would meet.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f(cmd, nil, toComplete)
	})
}

// oneOfWords completes one of a few words.
func oneOfWords(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return matching(list, nil, toComplete)
	}
}

// completeNode completes a node as the first argument.
func (a *app) completeNode(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNodesMany(cmd, nil, toComplete)
}

// completeNodesMany completes nodes in every place.
func (a *app) completeNodesMany(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return matching(a.known(cmd, func(ctx context.Context, admin Admin) []string { return a.nodeNames(ctx, admin) }), args, toComplete)
}

// completeShard completes a shard as the first argument.
func (a *app) completeShard(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return matching(a.known(cmd, func(ctx context.Context, admin Admin) []string { return a.shardNames(ctx, admin) }), nil, toComplete)
}

// completeShardThenNode completes shard transfer.
func (a *app) completeShardThenNode(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeShard(cmd, args, toComplete)
	case 1:
		return a.completeNodesMany(cmd, nil, toComplete)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeSegment completes a segment as the first argument.
func (a *app) completeSegment(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.completeSegments(cmd, args, toComplete, false)
}

// completeActiveSegment completes what can be sealed.
func (a *app) completeActiveSegment(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.completeSegments(cmd, args, toComplete, true)
}

func (a *app) completeSegments(cmd *cobra.Command, args []string, toComplete string, activeOnly bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return matching(a.known(cmd, func(ctx context.Context, admin Admin) []string { return a.segmentNames(ctx, admin, activeOnly) }), args, toComplete)
}

// completeTopics completes a topic as the first argument.
func (a *app) completeTopics(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeTopicsMany(cmd, nil, toComplete)
}

// completeTopicsMany completes topics in every place.
func (a *app) completeTopicsMany(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return matching(a.known(cmd, func(ctx context.Context, admin Admin) []string { return a.topicNames(ctx, admin) }), args, toComplete)
}

// completeStart completes consume: a topic, then a place to start.
func (a *app) completeStart(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return []cobra.Completion{
			cobra.CompletionWithDesc("earliest", "the first record there is"),
			cobra.CompletionWithDesc("latest", "new records only; follows"),
			cobra.CompletionWithDesc("@-10m", "ten minutes ago"),
			cobra.CompletionWithDesc("-10", "the last ten of each range"),
		}, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeTopics(cmd, args, toComplete)
}

// completeFrom completes --from: a rule, or a node.
func (a *app) completeFrom(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := a.known(cmd, func(ctx context.Context, admin Admin) []string { return a.nodeNames(ctx, admin) })
	return matching(append([]string{"nearest", "leader"}, names...), nil, toComplete)
}

// completeAlter completes topic alter: a topic, then settings.
func (a *app) completeAlter(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeTopics(cmd, args, toComplete)
	}
	var out []cobra.Completion
	for _, key := range (sdk.TopicConfig{}).Keys() {
		out = append(out, key+"=")
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// suggestTopic adds the nearest topic's name to a "not found".
func (a *app) suggestTopic(ctx context.Context, admin topicLister, name string, cause error) error {
	var e *sdk.Error
	if !errors.As(cause, &e) || e.Code != sdk.CodeTopicNotFound {
		return cause
	}
	return a.nearTopic(ctx, admin, name, e, "see what exists: eg-cli topic list, or create it: eg-cli create-topic "+name+" 1")
}

// suggestExisting is suggestTopic for a change of what exists, where creating the topic is no way out.
func (a *app) suggestExisting(ctx context.Context, admin topicLister, name string, cause error) error {
	var e *sdk.Error
	if !errors.As(cause, &e) || e.Code != sdk.CodeTopicNotFound {
		return cause
	}
	return a.nearTopic(ctx, admin, name, e, "see what exists: eg-cli topic list")
}

func (a *app) nearTopic(ctx context.Context, admin topicLister, name string, e *sdk.Error, otherwise string) error {
	if best := suggest(name, a.topicNames(ctx, admin)); best != "" && best != name {
		return e.WithHint("did you mean %q?", best)
	}
	return e.WithHint("%s", otherwise)
}
