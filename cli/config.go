package cli

import (
	"github.com/spf13/cobra"
)

// sourceRow is a row of config sources.
type sourceRow struct {
	Key    string `json:"key" col:"KEY"`
	Value  string `json:"value" col:"VALUE"`
	Source string `json:"source" col:"SOURCE"`
	Help   string `json:"description" col:"DESCRIPTION,wide"`
}

func newConfigCommand(a *app) *cobra.Command {
	sources := &cobra.Command{
		Use:         "sources",
		Short:       "Each setting of this client, and where its value came from",
		Example:     "  config sources\n  config sources -o json",
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "config.sources"},
		RunE:        func(*cobra.Command, []string) error { return runConfigSources(a) },
	}
	return newGroup("config", "The settings of this client", sources)
}

func runConfigSources(a *app) error {
	rows := []sourceRow{
		{Key: "config", Value: a.set.configPath.Value, Source: a.set.configPath.Source, Help: "the configuration file"},
		{Key: "context", Value: a.set.context.Value, Source: orDefault(a.set.context.Source), Help: "the named context in use"},
	}
	for _, g := range globalSettings {
		v := a.set.values[g.key]
		rows = append(rows, sourceRow{Key: g.key, Value: v.Value, Source: v.Source, Help: g.help})
	}
	return a.output().List(rows)
}

func orDefault(s string) string {
	if s == "" {
		return "default"
	}
	return s
}
