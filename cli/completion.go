package cli

import "github.com/spf13/cobra"

func newCompletionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a completion script for a shell",
		Example:   "  source <(eg-cli completion bash)\n  eg-cli completion zsh > ~/.zfunc/_eg-cli",
		Args:      argsBetween(1, 1),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), a.io.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usagef("no completion for the shell %q", args[0]).WithHint("there is bash, zsh, fish and powershell")
		},
	}
}
