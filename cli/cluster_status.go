package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type statusReader interface {
	ClusterStatus(ctx context.Context) (sdk.ClusterStatus, error)
}

const schemaClusterStatus = "cluster.status/1"

// clusterDocument is the document of cluster status.
type clusterDocument struct {
	Schema          string     `json:"schema"`
	Cluster         string     `json:"cluster"`
	Observer        string     `json:"observer" doc:"the node that answered"`
	ObservedAt      term.Time  `json:"observed_at"`
	Nodes           []nodeRow  `json:"nodes"`
	Shards          []shardRow `json:"shards"`
	Topics          int        `json:"topics"`
	Ranges          int        `json:"ranges"`
	Segments        int        `json:"segments"`
	Records         int64      `json:"records"`
	Bytes           int64      `json:"bytes"`
	UnderReplicated int        `json:"under_replicated"`
	Leaderless      int        `json:"leaderless_shards"`
	InPerSec        int64      `json:"in_bytes_per_sec"`
	OutPerSec       int64      `json:"out_bytes_per_sec"`
	RecordsIn       int64      `json:"in_records_per_sec"`
	RecordsOut      int64      `json:"out_records_per_sec"`
	Events          []eventRow `json:"events"`
}

func newClusterStatusCommand(a *app, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "One screen: nodes, shards, topics, throughput, last events",
		Example: `  cluster status
  cluster status -w
  cluster status -o json --jq '.nodes[].state'`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "cluster.status", noteExits: "8"},
	}
	a.watchable(cmd, func(ctx context.Context, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runClusterStatus(ctx, a, admin)
	})
	return cmd
}

func runClusterStatus(ctx context.Context, a *app, admin statusReader) error {
	status, err := admin.ClusterStatus(ctx)
	if err != nil {
		return err
	}
	doc := newClusterDocument(status)
	if err := a.output().Object(doc, func(p *term.Page) { clusterPage(p, doc) }); err != nil {
		return err
	}
	return a.incomplete(status.Missing)
}

func newClusterDocument(s sdk.ClusterStatus) clusterDocument {
	doc := clusterDocument{
		Schema: schemaClusterStatus, Cluster: s.Cluster.String(), Observer: string(s.Observer), ObservedAt: timeOf(s.ObservedMs),
		Nodes: []nodeRow{}, Shards: []shardRow{}, Events: []eventRow{},
		Topics: s.Topics, Ranges: s.Ranges, Segments: s.Segments, Records: s.Records, Bytes: s.Bytes,
		UnderReplicated: s.UnderReplicated, Leaderless: s.Leaderless,
		InPerSec: s.InBytesPerSec, OutPerSec: s.OutBytesPerSec, RecordsIn: s.InRecordsPerSec, RecordsOut: s.OutRecordsPerSec,
	}
	for _, n := range s.Nodes {
		doc.Nodes = append(doc.Nodes, newNodeRow(n, s.ObservedMs))
	}
	for _, sh := range s.Shards {
		doc.Shards = append(doc.Shards, newShardRow(sh))
	}
	for _, e := range s.Events {
		doc.Events = append(doc.Events, newEventRow(e.Node, 0, e))
	}
	return doc
}

func clusterPage(p *term.Page, doc clusterDocument) {
	h := p.Human()
	p.Fields(
		"Cluster", doc.Cluster+"  seen from "+orDash(doc.Observer),
		"Nodes", nodeCounts(doc.Nodes),
		"Shards", shardCounts(doc.Shards),
		"Topics", fmt.Sprintf("%s, %s, %s", plural(int64(doc.Topics), "topic"), plural(int64(doc.Ranges), "range"), plural(int64(doc.Segments), "segment")),
		"Data", plural(doc.Records, "record")+", "+h.Bytes.Format(doc.Bytes),
		"In", h.Bytes.Format(doc.InPerSec)+"/s  "+term.FormatRate(float64(doc.RecordsIn))+" records/s",
		"Out", h.Bytes.Format(doc.OutPerSec)+"/s  "+term.FormatRate(float64(doc.RecordsOut))+" records/s",
	)
	if doc.UnderReplicated > 0 {
		p.Line("%s", p.Style().Warn(plural(int64(doc.UnderReplicated), "segment")+" with fewer copies than the replication factor"))
	}
	p.Line("")
	p.Table(doc.Nodes)
	if len(doc.Events) > 0 {
		p.Heading("Last events")
		p.Table(doc.Events)
	}
}

// nodeCounts prints "3: 2 alive, 1 suspect".
func nodeCounts(nodes []nodeRow) string {
	by := map[string]int{}
	for _, n := range nodes {
		by[n.State]++
	}
	return fmt.Sprintf("%d: %s", len(nodes), countsText(by))
}

func shardCounts(shards []shardRow) string {
	by := map[string]int{}
	for _, s := range shards {
		by[strings.ReplaceAll(s.State, "_", " ")]++
	}
	return fmt.Sprintf("%d: %s", len(shards), countsText(by))
}

func countsText(by map[string]int) string {
	words := make([]string, 0, len(by))
	for w, n := range by {
		words = append(words, fmt.Sprintf("%d %s", n, w))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
