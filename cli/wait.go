package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const (
	schemaWait = "wait/1"
	waitFor    = 60 * time.Second       // unless --timeout says otherwise
	waitFirst  = 50 * time.Millisecond  // between the first two looks; it doubles
	waitMost   = 500 * time.Millisecond // between looks later on
)

// waitDocument is the document of every wait.
type waitDocument struct {
	Schema    string  `json:"schema"`
	What      string  `json:"what" doc:"cluster, node, shard, topic, range or segment"`
	Subject   string  `json:"subject"`
	Condition string  `json:"condition"`
	Met       bool    `json:"met"`
	Observed  string  `json:"observed" doc:"what was seen last"`
	Looks     int     `json:"looks" doc:"answers that were had"`
	TookMs    float64 `json:"took_ms"`
}

// condition is what a wait waits for. look says what is to be seen now and whether that is it.
type condition struct {
	what, subject, text string
	look                func(ctx context.Context) (met bool, observed string, err error)
}

func newWaitCommand(a *app) *cobra.Command {
	cmd := newGroup("wait", "Wait until something is so; exit 12 when it is not in time",
		newWaitClusterCommand(a),
		newWaitNodeCommand(a),
		newWaitShardCommand(a),
		newWaitTopicCommand(a),
		newWaitRangeCommand(a),
		newWaitSegmentCommand(a),
	)
	cmd.Long = "Waits until something is so, for 60 s unless --timeout says otherwise, and exits 12 when it was not by then. What\n" +
		"was seen last is printed. Nobody answering is not a failure before the time is up; then it is exit 3."
	return cmd
}

// newWaitVerb is a wait that may exit with what exits lists.
func newWaitVerb(a *app, exits string, cmd *cobra.Command, parse func(admin Admin, args []string) (condition, error)) *cobra.Command {
	cmd.Annotations = map[string]string{noteSchema: "wait", noteExits: exits, noteDeadline: deadlineOwn}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		c, err := parse(admin, args)
		if err != nil {
			return err
		}
		return runWait(cmd.Context(), a, c)
	}
	return cmd
}

// runWait looks until the condition is met or the time is up.
func runWait(ctx context.Context, a *app, c condition) error {
	limit := waitFor
	if a.timeoutGiven() && a.set.timeout > 0 {
		limit = a.set.timeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeUp)
	defer cancel()
	began := time.Now()
	doc := waitDocument{Schema: schemaWait, What: c.what, Subject: c.subject, Condition: c.text}
	var lastErr error
	for pause := waitFirst; ; pause = min(2*pause, waitMost) {
		once, stop := context.WithTimeout(ctx, healthAsk)
		met, observed, err := c.look(once)
		stop()
		switch {
		case err == nil:
			doc.Met, doc.Observed, lastErr = met, observed, nil
			doc.Looks++
		case ctx.Err() == nil && !worthWaiting(err):
			return err
		case ctx.Err() == nil || lastErr == nil:
			lastErr = err
		}
		if doc.Met {
			doc.TookMs = millis(time.Since(began))
			return a.output().Object(doc, func(p *term.Page) { waitPage(p, doc) })
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errTimeUp) {
				return context.Cause(ctx)
			}
			doc.TookMs = millis(time.Since(began))
			return a.notInTime(doc, lastErr)
		}
	}
}

// notInTime prints the last observation. When there never was one, nobody answered, and that is the error.
func (a *app) notInTime(doc waitDocument, lastErr error) error {
	if doc.Looks == 0 && lastErr != nil {
		return lastErr
	}
	if err := a.output().Object(doc, func(p *term.Page) { waitPage(p, doc) }); err != nil {
		return err
	}
	return notMet("%s %s did not become %s in time", doc.What, doc.Subject, doc.Condition)
}

func waitPage(p *term.Page, doc waitDocument) {
	name := strings.TrimSpace(doc.What + " " + doc.Subject)
	verdict := p.Style().OK("met")
	if !doc.Met {
		verdict = p.Style().Bad("not met")
	}
	p.Line("%s: %s %s  %s  %s", verdict, term.Escape(name), term.Escape(doc.Condition), orDash(doc.Observed), took(doc.TookMs))
}

func newWaitClusterCommand(a *app) *cobra.Command {
	var minNodes int
	cmd := newWaitVerb(a, "12", &cobra.Command{
		Use:     "cluster healthy",
		Short:   "Wait until no health check fails",
		Example: "  wait cluster healthy --min-nodes 3\n  wait cluster healthy --timeout 2m",
		Args:    argsBetween(1, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return words(len(args) == 0, "healthy"), cobra.ShellCompDirectiveNoFileComp
		},
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "cluster", text: args[0]}
		if args[0] != "healthy" {
			return c, badCondition(args[0], "healthy")
		}
		if minNodes < 0 {
			return c, usagef("--min-nodes cannot be negative")
		}
		o := &clusterHealthOptions{app: a, minNodes: minNodes}
		c.look = func(ctx context.Context) (bool, string, error) {
			h, err := admin.ClusterHealth(ctx)
			if err != nil {
				return false, "", err
			}
			doc := o.document(h)
			observed := doc.Result + ", " + plural(int64(doc.Nodes), "node") + " alive"
			if why := firstDetail(doc.Checks, sdk.HealthFail.String()); why != "" {
				observed += ", " + why
			}
			return doc.Result != sdk.HealthFail.String(), observed, nil
		}
		return c, nil
	})
	cmd.Flags().IntVar(&minNodes, "min-nodes", 0, "and until at least `N` nodes are alive")
	return cmd
}

func newWaitNodeCommand(a *app) *cobra.Command {
	states := []string{"alive", "admitted", "suspect", "dead", "left", "out", "gone"}
	return newWaitVerb(a, "12", &cobra.Command{
		Use:   "node <node> alive|admitted|suspect|dead|left|out|gone",
		Short: "Wait until a node is in a state; dead includes left, gone is not listed any more",
		Long: "Waits until the nodes believe one to be in a state. dead is also met by left and by out. admitted is alive, and\n" +
			"accepted by the root shard. gone is met when it is not listed any more. A node that nobody has heard of is waited for.",
		Example: "  wait node n4 alive\n  wait node n4 dead --timeout 20s",
		Args:    argsBetween(2, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeNode(cmd, args, to)
			}
			return words(len(args) == 1, states...), cobra.ShellCompDirectiveNoFileComp
		},
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "node", subject: args[0], text: args[1]}
		if !slices.Contains(states, args[1]) {
			return c, badCondition(args[1], states...)
		}
		c.look = func(ctx context.Context) (bool, string, error) {
			list, err := admin.ListNodes(ctx)
			if err != nil {
				return false, "", err
			}
			met, observed := nodeIs(list, args[0], args[1])
			return met, observed, nil
		}
		return c, nil
	})
}

func nodeIs(list sdk.NodeList, id, want string) (met bool, observed string) {
	i := slices.IndexFunc(list.Nodes, func(n sdk.NodeStatus) bool { return string(n.ID) == id })
	if i < 0 {
		return want == "gone", "not listed"
	}
	n := list.Nodes[i]
	observed = n.State
	if n.Status != "" && n.Status != "normal" {
		observed += ", " + n.Status
	}
	switch want {
	case "out":
		return n.Status == "out", observed
	case "dead":
		return n.State == "dead" || n.State == "left" || n.Status == "out", observed
	case "admitted":
		if !n.Admitted {
			observed += ", not admitted"
		}
		return n.State == "alive" && n.Admitted, observed
	}
	return n.State == want, observed
}

func newWaitShardCommand(a *app) *cobra.Command {
	return newWaitVerb(a, "4 12", &cobra.Command{
		Use:               "shard <shard> ok|led|leader=NODE",
		Short:             "Wait until a shard has a leader, a certain one, or all its voters caught up",
		Example:           "  wait shard 12 leader=n1\n  wait shard 12 ok",
		Args:              argsBetween(2, 2),
		ValidArgsFunction: a.completeShard,
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "shard", subject: args[0], text: args[1]}
		id, err := sdk.ParseShardID(args[0])
		if err != nil {
			return c, err
		}
		leader, named := strings.CutPrefix(args[1], "leader=")
		if !named && args[1] != "ok" && args[1] != "led" || named && leader == "" {
			return c, badCondition(args[1], "ok", "led", "leader=NODE")
		}
		c.look = func(ctx context.Context) (bool, string, error) {
			s, err := admin.DescribeShard(ctx, id)
			if err != nil {
				return false, "", suggestShard(err)
			}
			observed := fmt.Sprintf("%s, leader %s, term %d", s.Status.State, orDash(string(s.Status.Leader)), s.Status.Term)
			switch {
			case named:
				return string(s.Status.Leader) == leader, observed, nil
			case args[1] == "led":
				return s.Status.Leader != "", observed, nil
			}
			return s.Status.State == "ok" && s.Status.Leader != "", observed, nil
		}
		return c, nil
	})
}

func newWaitTopicCommand(a *app) *cobra.Command {
	return newWaitVerb(a, "12", &cobra.Command{
		Use:   "topic <topic> ready|gone",
		Short: "Wait until a topic takes records in every range, or until it is gone with its data",
		Example: `  wait topic my_topic ready
  wait topic my_topic gone`,
		Args: argsBetween(2, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeTopics(cmd, args, to)
			}
			return words(len(args) == 1, "ready", "gone"), cobra.ShellCompDirectiveNoFileComp
		},
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "topic", subject: args[0], text: args[1]}
		switch args[1] {
		case "ready", "gone":
		default:
			return c, badCondition(args[1], "ready", "gone")
		}
		c.look = func(ctx context.Context) (bool, string, error) {
			t, err := admin.DescribeTopic(ctx, args[0])
			if errors.Is(err, sdk.CodeTopicNotFound) {
				return args[1] == "gone", "there is none", nil
			}
			if err != nil {
				return false, "", err
			}
			ready, observed := topicReady(t)
			return args[1] == "ready" && ready, observed, nil
		}
		return c, nil
	})
}

// topicReady reports whether every active range has somebody to write to.
func topicReady(t sdk.TopicDetail) (bool, string) {
	active, led := 0, 0
	for _, r := range t.Ranges {
		if r.State.String() != "active" {
			continue
		}
		if active++; r.Leader != "" {
			led++
		}
	}
	return active > 0 && led == active, fmt.Sprintf("%s, %d of %s take records", t.Summary.State, led, plural(int64(active), "range"))
}

func newWaitRangeCommand(a *app) *cobra.Command {
	return newWaitVerb(a, "4 12", &cobra.Command{
		Use:               "range <topic> <range> active|sealed",
		Short:             "Wait until a range takes records, or until it is sealed",
		Example:           "  wait range my_topic r17 sealed",
		Args:              argsBetween(3, 3),
		ValidArgsFunction: a.completeTopics,
	}, func(admin Admin, args []string) (condition, error) {
		c := condition{what: "range", subject: args[0] + "/" + args[1], text: args[2]}
		id, err := sdk.ParseRangeID(args[1])
		if err != nil {
			return c, err
		}
		if args[2] != "active" && args[2] != "sealed" {
			return c, badCondition(args[2], "active", "sealed")
		}
		c.look = func(ctx context.Context) (bool, string, error) {
			t, err := admin.DescribeTopic(ctx, args[0])
			if err != nil {
				return false, "", err
			}
			for _, r := range t.Ranges {
				if r.ID == id {
					return r.State.String() == args[2] && (args[2] == "sealed" || r.Leader != ""), r.State.String() + ", leader " + orDash(string(r.Leader)), nil
				}
			}
			return false, "there is none", nil
		}
		return c, nil
	})
}

func badCondition(got string, known ...string) error {
	return usagef("%q is nothing to wait for here", got).WithHint("there is %s", strings.Join(known, ", "))
}

// words are completions, where they belong.
func words(here bool, list ...string) []cobra.Completion {
	if !here {
		return nil
	}
	return list
}
