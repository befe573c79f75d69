package cli

import "github.com/spf13/cobra"

func newClusterCommand(a *app) *cobra.Command {
	return newGroup("cluster", "Status and health of the whole cluster",
		newClusterStatusCommand(a, "status"),
		newClusterHealthCommand(a),
	)
}
