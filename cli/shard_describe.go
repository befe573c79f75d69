package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type shardDescriber interface {
	DescribeShard(ctx context.Context, id sdk.ShardID) (sdk.ShardDetail, error)
}

type shardLocator interface {
	LocateShard(ctx context.Context, topic string) (sdk.LocatedShard, error)
}

const schemaShardDescribe = "shard.describe/1"

// shardDocument is the document of shard describe.
type shardDocument struct {
	Schema string `json:"schema"`
	shardRow
	Observer      string           `json:"observer" doc:"the leader, or the replica that answered"`
	Members       []shardMemberRow `json:"members"`
	FirstIndex    uint64           `json:"first_index" doc:"of the log"`
	LastIndex     uint64           `json:"last_index"`
	SnapshotIndex uint64           `json:"snapshot_index"`
	SnapshotBytes int64            `json:"snapshot_bytes"`
	Seats         string           `json:"seats" doc:"what the leader does about its voters, or waits for"`
	Events        []eventRow       `json:"events" doc:"the last of this shard, newest last"`
}

type shardMemberRow struct {
	Node     string `json:"node" col:"NODE"`
	Role     string `json:"role" col:"ROLE" doc:"leader, voter, joining"`
	Match    uint64 `json:"match" col:"MATCH" doc:"the last entry that it is known to hold"`
	Trails   uint64 `json:"trails" col:"TRAILS"`
	Intended bool   `json:"intended" col:"INTENDED" doc:"the ring puts the shard there"`
	Link     string `json:"link" col:"LINK" doc:"what the observer's connection to it says"`
	Server   string `json:"server" col:"SERVER,wide" doc:"id of its metadata directory"`
}

func newShardDescribeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe <shard>",
		Short: "Show one shard: members and how far each is, log, snapshot, last events",
		Example: `  shard describe 12
  shard describe 12 -w
  shard describe 12 -o json --jq '.members[] | select(.trails > 0)'`,
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteSchema: "shard.describe", noteExits: "4"},
		ValidArgsFunction: a.completeShard,
	}
	a.watchable(cmd, func(ctx context.Context, args []string) error {
		id, err := sdk.ParseShardID(args[0])
		if err != nil {
			return err
		}
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardDescribe(ctx, a, admin, id)
	})
	return cmd
}

func runShardDescribe(ctx context.Context, a *app, admin shardDescriber, id sdk.ShardID) error {
	s, err := admin.DescribeShard(ctx, id)
	if err != nil {
		return suggestShard(err)
	}
	doc := newShardDocument(s)
	return a.output().Object(doc, func(p *term.Page) { shardPage(p, doc) })
}

func newShardDocument(s sdk.ShardDetail) shardDocument {
	doc := shardDocument{
		Schema: schemaShardDescribe, shardRow: newShardRow(s.Status), Observer: string(s.Observer), Members: []shardMemberRow{},
		FirstIndex: s.FirstIndex, LastIndex: s.LastIndex, SnapshotIndex: s.SnapshotIndex, SnapshotBytes: s.SnapshotBytes,
		Seats: s.Seats, Events: []eventRow{},
	}
	if s.Generation > doc.Generation {
		doc.Generation = s.Generation
	}
	for _, m := range s.Members {
		row := shardMemberRow{Node: string(m.Node), Role: "joining", Match: m.Match, Intended: m.Intended, Link: m.State, Server: m.Server.String()}
		switch {
		case m.Leader:
			row.Role = "leader"
		case m.Voter:
			row.Role = "voter"
		}
		if s.LastIndex > m.Match {
			row.Trails = s.LastIndex - m.Match
		}
		doc.Members = append(doc.Members, row)
	}
	for _, e := range s.Events {
		doc.Events = append(doc.Events, newEventRow(e.Node, 0, e))
	}
	return doc
}

func shardPage(p *term.Page, doc shardDocument) {
	h := p.Human()
	snapshot := "none"
	if doc.SnapshotIndex > 0 {
		snapshot = fmt.Sprintf("at %d, %s", doc.SnapshotIndex, h.Bytes.Format(doc.SnapshotBytes))
	}
	leader := "none"
	if doc.Leader != "" {
		leader = doc.Leader
	}
	if !doc.Since.IsZero() {
		leader += ", for " + term.FormatAge(h.Now.Sub(doc.Since.Time))
	}
	pairs := []string{
		"Shard", doc.ID, "State", doc.State, "Leader", leader, "Term", strconv.FormatUint(doc.Term, 10),
		"Log", fmt.Sprintf("%d to %d, committed %d, applied %d", doc.FirstIndex, doc.LastIndex, doc.Commit, doc.Applied),
		"Snapshot", snapshot, "Topics", itoa(int64(doc.Topics)),
	}
	if doc.Seats != "" {
		pairs = append(pairs, "Seats", doc.Seats)
	}
	if doc.Generation > 0 {
		pairs = append(pairs, "Recovered", plural(int64(doc.Generation), "time")+", accepting a loss of metadata")
	}
	p.Fields(pairs...)
	p.Heading("Members, seen from " + orDash(doc.Observer))
	p.Table(doc.Members)
	if len(doc.Events) > 0 {
		p.Heading("Last events")
		p.Table(doc.Events)
	}
}

const schemaShardLocate = "shard.locate/1"

// locatedShard is the document of shard locate.
type locatedShard struct {
	Schema string    `json:"schema"`
	Topic  string    `json:"topic" col:"TOPIC"`
	Hash   term.Hash `json:"hash" col:"HASH"`
	Shard  string    `json:"shard" col:"SHARD"`
	Voters []string  `json:"voters" col:"MEMBERS"`
	Leader string    `json:"leader" col:"LEADER"`
}

func newShardLocateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "locate <topic>",
		Short:             "Which shard holds a topic of this name, whether there is one or not",
		Example:           "  shard locate my_topic\n  shard locate my_topic -o json --jq .leader",
		Args:              argsBetween(1, 1),
		Annotations:       map[string]string{noteSchema: "shard.locate"},
		ValidArgsFunction: a.completeTopics,
	}
	a.watchable(cmd, func(ctx context.Context, args []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runShardLocate(ctx, a, admin, args[0])
	})
	return cmd
}

func runShardLocate(ctx context.Context, a *app, admin shardLocator, topic string) error {
	s, err := admin.LocateShard(ctx, topic)
	if err != nil {
		return err
	}
	doc := locatedShard{
		Schema: schemaShardLocate, Topic: topic, Hash: term.Hash(s.Hash), Shard: s.Shard.String(), Voters: nodeIDs(s.Voters), Leader: string(s.Leader),
	}
	return a.output().Object(doc, func(p *term.Page) { p.Table([]locatedShard{doc}) })
}
