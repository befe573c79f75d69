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

// nameCache remembers the topic names that completion and did-you-mean saw last.
type nameCache struct {
	mu     sync.Mutex
	seeds  string
	topics []string
	at     time.Time
}

func (c *nameCache) get(seeds string, now time.Time) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics, c.seeds == seeds && now.Sub(c.at) < completionKeep
}

func (c *nameCache) put(seeds string, topics []string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeds, c.topics, c.at = seeds, topics, now
}

// forget makes the next completion ask again, after a command that created or deleted topics.
func (c *nameCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

// topicNames lists topics from the cache or the cluster. Failure is an answer of none.
func (s *Session) topicNames(ctx context.Context, admin topicLister, seeds string) []string {
	if names, fresh := s.names.get(seeds, s.Now()); fresh {
		return names
	}
	ctx, cancel := context.WithTimeout(ctx, completionWait)
	defer cancel()
	found, err := admin.ListTopics(ctx, sdk.ListTopics{Limit: completionTopics})
	names := make([]string, len(found.Topics))
	for i, t := range found.Topics {
		names[i] = t.Name
	}
	if err == nil || s.lost {
		// A broker that does not answer is not asked again at every keystroke either.
		s.names.put(seeds, names, s.Now())
	}
	return names
}

// knownTopics is topicNames for the completion functions of commands, which run without prepare.
func (a *app) knownTopics(cmd *cobra.Command) []string {
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
	return a.topicNames(ctx, admin, strings.Join(a.set.seeds, ","))
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
	var out []cobra.Completion
	for _, name := range a.knownTopics(cmd) {
		if strings.HasPrefix(name, toComplete) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
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
	if best := suggest(name, a.topicNames(ctx, admin, strings.Join(a.set.seeds, ","))); best != "" && best != name {
		return e.WithHint("did you mean %q?", best)
	}
	return e.WithHint("%s", otherwise)
}
