package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type nodeDescriber interface {
	DescribeNode(ctx context.Context, id sdk.NodeID) (sdk.NodeDetail, error)
}

const schemaNodeDescribe = "node.describe/1"

// nodeDocument is the document of node describe.
type nodeDocument struct {
	Schema string `json:"schema"`
	nodeRow
	Cluster        string           `json:"cluster"`
	Disk           string           `json:"disk" doc:"id of the data directory"`
	Meta           string           `json:"meta" doc:"id of the metadata directory"`
	ClusterAddress string           `json:"cluster_address"`
	DataAddress    string           `json:"data_address"`
	AdminAddress   string           `json:"admin_address"`
	GoVersion      string           `json:"go_version"`
	Platform       string           `json:"platform"`
	Pid            int              `json:"pid"`
	DataDir        string           `json:"data_dir"`
	MetaDir        string           `json:"meta_dir"`
	RssBytes       int64            `json:"rss_bytes"`
	WalBytes       int64            `json:"wal_bytes"`
	WalFiles       int              `json:"wal_files"`
	Config         []nodeSettingRow `json:"config"`
	Counters       map[string]int64 `json:"counters" doc:"all else that is a number, by metric name"`
}

type nodeSettingRow struct {
	Key     string `json:"key" col:"KEY"`
	Value   string `json:"value" col:"VALUE"`
	Default string `json:"default" col:"DEFAULT,wide"`
	Source  string `json:"source" col:"SOURCE" doc:"default, file, env, flag"`
	Reload  string `json:"reload" col:"RELOAD,wide" doc:"live, restart"`
	Help    string `json:"description" col:"DESCRIPTION,wide"`
}

type counterRow struct {
	Name  string `json:"name" col:"COUNTER"`
	Value int64  `json:"value" col:"VALUE" as:"count"`
}

type nodeDescribeOptions struct {
	*app
	config, counters, changed bool
}

func newNodeDescribeCommand(a *app) *cobra.Command {
	o := &nodeDescribeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "describe [node]",
		Short: "Everything a node knows about itself; without a name, the one that answers",
		Example: `  node describe n1
  node describe n1 --counters
  node describe n1 -o json --jq '.config[] | select(.source != "default")'`,
		Args:              argsBetween(0, 1),
		Annotations:       map[string]string{noteSchema: "node.describe", noteExits: "4"},
		ValidArgsFunction: a.completeNode,
	}
	cmd.Flags().BoolVar(&o.config, "config-only", false, "only the settings")
	cmd.Flags().BoolVar(&o.counters, "counters", false, "only the counters")
	cmd.Flags().BoolVar(&o.changed, "changed", false, "only settings that are not at their default")
	o.watchable(cmd, func(ctx context.Context, args []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return runNodeDescribe(ctx, o, admin, name)
	})
	return cmd
}

func runNodeDescribe(ctx context.Context, o *nodeDescribeOptions, admin interface {
	nodeDescriber
	nodeLister
}, name string,
) error {
	n, err := admin.DescribeNode(ctx, sdk.NodeID(name))
	if err != nil {
		return o.suggestNode(ctx, admin, name, err)
	}
	doc := newNodeDocument(n, o.Now().UnixMilli())
	if o.changed {
		doc.Config = slices.DeleteFunc(doc.Config, func(s nodeSettingRow) bool { return s.Source == "default" })
	}
	return o.output().Object(doc, func(p *term.Page) { o.page(p, doc) })
}

func newNodeDocument(n sdk.NodeDetail, nowMs int64) nodeDocument {
	doc := nodeDocument{
		Schema: schemaNodeDescribe, nodeRow: newNodeRow(n.Status, nowMs), Cluster: n.Cluster.String(), Disk: n.Disk.String(),
		Meta: n.Meta.String(), ClusterAddress: n.ClusterAddress, DataAddress: n.DataAddress, AdminAddress: n.AdminAddress,
		GoVersion: n.GoVersion, Platform: n.Platform, Pid: n.Pid, DataDir: n.DataDir, MetaDir: n.MetaDir, RssBytes: n.RssBytes,
		WalBytes: n.WalBytes, WalFiles: n.WalFiles, Config: []nodeSettingRow{}, Counters: n.Counters,
	}
	if n.StartedMs > 0 {
		doc.StartedAt = timeOf(n.StartedMs)
	}
	if n.RingHash != 0 {
		doc.RingHash, doc.RingVersion = term.Hash(n.RingHash), n.RingVersion
	}
	if doc.Counters == nil {
		doc.Counters = map[string]int64{}
	}
	for _, s := range n.Settings {
		doc.Config = append(doc.Config, nodeSettingRow{Key: s.Key, Value: s.Value, Default: s.Default, Source: s.Source, Reload: s.Reload, Help: s.Help})
	}
	return doc
}

func (o *nodeDescribeOptions) page(p *term.Page, doc nodeDocument) {
	all := !o.config && !o.counters
	if all {
		o.summary(p, doc)
	}
	if (all || o.config) && len(doc.Config) > 0 {
		section(p, all, "Settings")
		p.Table(doc.Config)
	}
	if o.counters {
		rows := []counterRow{}
		for _, name := range slices.Sorted(maps.Keys(doc.Counters)) {
			rows = append(rows, counterRow{name, doc.Counters[name]})
		}
		p.Table(rows)
	}
}

func (o *nodeDescribeOptions) summary(p *term.Page, doc nodeDocument) {
	h := p.Human()
	pairs := []string{
		"Node", doc.ID + ", start " + strconv.FormatUint(doc.Boot, 10),
		"State", doc.State + ", " + cmp.Or(doc.Status, "normal") + admittedWord(doc.Admitted),
		"Cluster", doc.Cluster,
		"Started", h.Time.FormatDate(doc.StartedAt.Time, h.Now),
		"Version", fmt.Sprintf("%s, %s, %s, pid %d", cmp.Or(doc.Version, "-"), doc.GoVersion, doc.Platform, doc.Pid),
		"Clients", cmp.Or(doc.ClientAddress, "-") + ", " + plural(int64(doc.Connections), "connection"),
		"Cluster port", cmp.Or(doc.ClusterAddress, "-"),
		"Data port", cmp.Or(doc.DataAddress, "-"),
		"Admin port", cmp.Or(doc.AdminAddress, "-"),
		"Ring", fmt.Sprintf("%.1f%% in %s, hash %s, version %d", doc.Owns, plural(int64(doc.Vnodes), "token"), doc.RingHash, doc.RingVersion),
		"Shards", plural(int64(doc.Replicas), "replica") + ", leads " + itoa(int64(doc.ShardLeaders)),
		"Segments", plural(int64(doc.Segments), "segment") + ", leads " + itoa(int64(doc.Leaders)),
		"Disk", diskText(doc, h),
		"Log", h.Bytes.Format(doc.WalBytes) + " in " + plural(int64(doc.WalFiles), "file") + ", fsync p99 " + term.FormatTook(microseconds(doc.FsyncP99Us)),
		"Memory", h.Bytes.Format(doc.RssBytes),
		"In", h.Bytes.Format(doc.InPerSec) + "/s  " + term.FormatRate(float64(doc.RecordsIn)) + " records/s",
		"Out", h.Bytes.Format(doc.OutPerSec) + "/s  " + term.FormatRate(float64(doc.RecordsOut)) + " records/s",
		"Data", doc.DataDir + "  id " + doc.Disk,
		"Metadata", doc.MetaDir + "  id " + doc.Meta,
	}
	if doc.Rack != "" {
		pairs = append(pairs, "Rack", doc.Rack)
	}
	for _, k := range slices.Sorted(maps.Keys(doc.Labels)) {
		pairs = append(pairs, "Label", k+"="+doc.Labels[k])
	}
	p.Fields(pairs...)
}

func admittedWord(yes bool) string {
	if yes {
		return ""
	}
	return ", not admitted"
}

func diskText(doc nodeDocument, h term.Human) string {
	if doc.DiskTotal <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%% of %s used", 100*float64(doc.DiskUsed)/float64(doc.DiskTotal), h.Bytes.Format(doc.DiskTotal))
}
