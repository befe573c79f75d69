package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type keyRouter interface {
	RouteKey(ctx context.Context, topic string, key []byte) (sdk.KeyRoute, error)
}

const schemaRoute = "route/1"

// routeDocument is the document of route.
type routeDocument struct {
	Schema      string      `json:"schema"`
	Topic       string      `json:"topic"`
	ID          string      `json:"topic_id"`
	Version     uint64      `json:"version" doc:"of the topic's metadata"`
	Key         term.Text   `json:"key"`
	Hash        term.Hash   `json:"hash" col:"HASH"`
	Range       string      `json:"range" col:"RANGE"`
	Start       term.Hash   `json:"start"`
	End         string      `json:"end" doc:"exclusive; 2^64 is 0x10000000000000000"`
	Shard       string      `json:"shard" col:"SHARD" doc:"metadata shard of the topic"`
	ShardLeader string      `json:"shard_leader" col:"SHARD-LEADER"`
	Segment     string      `json:"segment" col:"SEGMENT"`
	Epoch       int32       `json:"epoch"`
	Leader      string      `json:"write_leader" col:"WRITE-LEADER"`
	Replicas    []string    `json:"replicas" col:"REPLICAS" doc:"any of them serves reads"`
	ReadFrom    string      `json:"read_from" col:"READ-FROM" doc:"the replica that a consumer here would ask first; those equally near are spread"`
	Trace       []traceStep `json:"trace,omitempty"`
}

type traceStep struct {
	Step   string  `json:"step" col:"STEP"`
	TookMs float64 `json:"took_ms" col:"TOOK" as:"ms"`
	Detail string  `json:"detail" col:"DETAIL"`
}

type routeOptions struct {
	*app
	trace bool
}

func newRouteCommand(a *app) *cobra.Command {
	o := &routeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "route <topic> <key>",
		Short: "Where a record with this key goes: hash, range, segment, nodes",
		Long: "Finds what a producer would: the key's hash, the range whose slice of the hash space holds it, the range's active\n" +
			"segment and the nodes with a copy. --trace asks step by step, reaches the nodes, and says how long each step took.",
		Example: `  route my_topic user123
  route my_topic user123 --trace`,
		Args:              argsBetween(2, 2),
		Annotations:       map[string]string{noteSchema: "route", noteExits: "4"},
		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().BoolVar(&o.trace, "trace", false, "reach each node on the way, and time each step")
	o.watchable(cmd, func(ctx context.Context, args []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runRoute(ctx, o, admin, args[0], args[1])
	})
	return cmd
}

type routeAdmin interface {
	keyRouter
	shardLocator
	nodePinger
	topicLister
}

func runRoute(ctx context.Context, o *routeOptions, admin routeAdmin, topic, key string) error {
	t := &tracer{now: o.Now, last: o.Now()}
	located, err := admin.LocateShard(ctx, topic)
	if err != nil {
		return err
	}
	t.step("locate shard", "shard %s by the hash of the name, led by %s", located.Shard, orDash(string(located.Leader)))
	r, err := admin.RouteKey(ctx, topic, []byte(key))
	if err != nil {
		return o.suggestTopic(ctx, admin, topic, err)
	}
	t.step("route", "version %d of the topic's metadata", r.Version)
	doc := routeDocument{
		Schema: schemaRoute, Topic: topic, ID: r.Topic.String(), Version: r.Version, Key: term.String(key), Hash: term.Hash(r.Hash),
		Range: r.Range.String(), Start: term.Hash(r.Start), End: spanEnd(r.End), Shard: located.Shard.String(), ShardLeader: string(located.Leader),
		Segment: r.Segment.String(), Epoch: int32(r.Epoch), Replicas: []string{}, ReadFrom: string(r.ReadFrom),
	}
	for i, n := range r.Replicas {
		if doc.Replicas = append(doc.Replicas, string(n.ID)); i == 0 {
			doc.Leader = string(n.ID)
		}
	}
	if o.trace {
		o.reachReplicas(ctx, admin, t, r)
		doc.Trace = t.steps
	}
	return o.output().Object(doc, func(p *term.Page) {
		p.Table([]routeDocument{doc})
		if o.trace {
			p.Line("")
			p.Table(doc.Trace)
		}
	})
}

// reachReplicas pings the nodes that would take or serve the record, the leader first.
func (o *routeOptions) reachReplicas(ctx context.Context, admin nodePinger, t *tracer, r sdk.KeyRoute) {
	for i, n := range r.Replicas {
		role := "replica"
		if i == 0 {
			role = "write leader"
		}
		_, err := admin.Ping(ctx, n.ID)
		result := "answers"
		if err != nil {
			result = describe(err).Message
		}
		t.step("reach "+string(n.ID), "%s at %s: %s", role, n.Address, result)
	}
}

// tracer times steps, each from the end of the one before.
type tracer struct {
	now   func() time.Time
	last  time.Time
	steps []traceStep
}

func (t *tracer) step(name, format string, args ...any) {
	now := t.now()
	t.steps = append(t.steps, traceStep{Step: name, TookMs: millis(now.Sub(t.last)), Detail: fmt.Sprintf(format, args...)})
	t.last = now
}
