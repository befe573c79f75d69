package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force, or check them",
		Args:  unexpected,
		RunE: func(*cobra.Command, []string) error {
			return usage("config needs a verb: print or check")
		},
	}
	var output string
	print := &cobra.Command{
		Use:   "print",
		Short: "Print each setting, its value and where it came from",
		Args:  unexpected,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, sources, err := config.LoadFlags(cmd.Flags(), a.env, a.readFile)
			if err != nil {
				return err
			}
			return a.printSources(sources, output)
		},
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the settings on this machine, and print them",
		Args:  unexpected,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, sources, err := config.LoadFlags(cmd.Flags(), a.env, a.readFile)
			if err != nil {
				return err
			}
			_, warning, err := cfg.Advertise(a.interfaces)
			if err != nil {
				return err
			}
			if _, err := clusterKey(cfg.ClusterKeyFile); err != nil {
				return err
			}
			for _, w := range config.UnknownEnv(a.env) {
				fmt.Fprintln(a.stderr, "warning:", w)
			}
			if warning != "" {
				fmt.Fprintln(a.stderr, "warning:", warning)
			}
			if err := a.printSources(sources, output); err != nil || output == "json" {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, "\nthe configuration is valid")
			return err
		},
	}
	for _, verb := range []*cobra.Command{print, check} {
		verb.Flags().StringVarP(&output, "output", "o", "table", "table or json")
		cmd.AddCommand(verb)
	}
	return cmd
}

func (a *app) printSources(sources config.Sources, output string) error {
	switch output {
	case "table":
		return sources.WriteTable(a.stdout)
	case "json":
		return sources.WriteJSON(a.stdout)
	}
	return usage("--output: %q is not table or json", output)
}
