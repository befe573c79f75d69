package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
)

type versionOptions struct {
	*app
	cluster bool
	check   bool
}

const schemaVersion = "version/1"

// versionDocument is the document of version.
type versionDocument struct {
	Schema   string           `json:"schema"`
	Client   string           `json:"client"`
	Go       string           `json:"go"`
	Platform string           `json:"platform"`
	Nodes    []nodeVersionRow `json:"nodes,omitempty"`
	Skew     bool             `json:"skew" doc:"client and nodes are not all of one version"`
}

type nodeVersionRow struct {
	Node    string `json:"node" col:"NODE"`
	Address string `json:"address" col:"ADDRESS"`
	State   string `json:"state" col:"STATE"`
	Version string `json:"version" col:"VERSION" doc:"empty when nobody has heard it yet"`
}

func newVersionCommand(a *app) *cobra.Command {
	o := &versionOptions{app: a}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the client, and of each node with --cluster",
		Example: `  version
  version --cluster --check`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "version", noteExits: "12"},
	}
	cmd.Flags().BoolVar(&o.cluster, "cluster", false, "ask the nodes too")
	cmd.Flags().BoolVar(&o.check, "check", false, "exit 12 when versions differ; implies --cluster")
	cmd.RunE = a.withDeadline(func(ctx context.Context, _ *cobra.Command, _ []string) error { return runVersion(ctx, o) })
	return cmd
}

func runVersion(ctx context.Context, o *versionOptions) error {
	doc := versionDocument{Schema: schemaVersion, Client: o.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if o.cluster || o.check {
		admin, err := o.admin()
		if err != nil {
			return err
		}
		list, err := admin.ListNodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range list.Nodes {
			doc.Nodes = append(doc.Nodes, nodeVersionRow{Node: string(n.ID), Address: n.Address, State: n.State, Version: n.Version})
			// What a node that has gone for good ran is no skew of the cluster.
			gone := n.State == "left" || n.State == "dead"
			doc.Skew = doc.Skew || n.Version != doc.Client && n.Version != "" && !gone
		}
	}
	err := o.output().Object(doc, func(p *term.Page) {
		p.Line("eg-cli %s  %s  %s", doc.Client, doc.Go, doc.Platform)
		if len(doc.Nodes) > 0 {
			p.Table(doc.Nodes)
		}
	})
	if err == nil && o.check && doc.Skew {
		return notMet("the versions differ")
	}
	return err
}
