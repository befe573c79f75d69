package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globalFlags are those flags of every command that are not settings with other sources (settings.go).
type globalFlags struct {
	columns   []string
	noHeaders bool
	sortBy    string
	limit     int
	jq        string
	template  string
	yes       bool
	confirm   string
	noPager   bool
	quiet     bool
	verbose   int
}

// register adds the global flags to the root. The values of settings are read by name, so they need no field.
func (g *globalFlags) register(f *pflag.FlagSet) {
	f.StringSliceP("seeds", "s", nil, "brokers to start from, as `host:port,…` (EG_SEEDS; default "+defaultSeeds+")")
	f.String("context", "", "use this `NAME` of the configuration; - is the previous one (EG_CONTEXT)")
	f.StringP("config", "c", "", "configuration `FILE` (EG_CLI_CONFIG; default $XDG_CONFIG_HOME/eastguard/cli.yaml)")
	f.StringP("output", "o", "", "`FORMAT`: table, wide, json, jsonl, yaml, csv, tsv or name (EG_OUTPUT)")
	f.StringSliceVar(&g.columns, "columns", nil, "only these columns, as `a,b`")
	f.BoolVar(&g.noHeaders, "no-headers", false, "leave the heading out")
	f.StringVar(&g.sortBy, "sort-by", "", "sort rows by `column[:desc]`")
	f.IntVar(&g.limit, "limit", 0, "at most `N` rows")
	f.StringVar(&g.jq, "jq", "", "filter the JSON form with this jq `EXPRESSION`")
	f.StringVar(&g.template, "template", "", "print the JSON form with this Go `TEMPLATE`")
	f.StringP("timeout", "t", "", "`DURATION` or seconds for the whole command (EG_TIMEOUT; default 10s)")
	f.BoolVarP(&g.yes, "yes", "y", false, "answer yes to questions")
	f.StringVar(&g.confirm, "confirm", "", "`NAME` of what is destroyed, needed besides --yes in protected contexts")
	f.Bool("no-input", false, "never ask a question (EG_PROMPT_DISABLED)")
	f.String("color", "", "`WHEN` to use colour: auto, always or never (NO_COLOR, CLICOLOR, CLICOLOR_FORCE)")
	f.Bool("ascii", false, "no glyphs outside ASCII (EG_ASCII)")
	f.String("time", "", "`FORM` of times for people: local, utc, rel or ms")
	f.String("bytes", "", "`FORM` of sizes for people: iec, si or raw")
	f.BoolVar(&g.noPager, "no-pager", false, "do not page output taller than the screen (EG_PAGER, PAGER)")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "no notes on stderr")
	f.CountVarP(&g.verbose, "verbose", "v", "log to stderr; -vv for more")
	f.Bool("read-only", false, "refuse every change (EG_READ_ONLY)")
	f.BoolP("help", "h", false, "help for this command")
}

// enumFlags are the flags with a fixed set of values, for completion.
var enumFlags = map[string][]string{
	"output":      {"table", "wide", "json", "jsonl", "yaml", "csv", "tsv", "name"},
	"color":       {"auto", "always", "never"},
	"time":        {"local", "utc", "rel", "ms"},
	"bytes":       {"iec", "si", "raw"},
	"strategy":    {"auto", "fixed"},
	"durability":  {"fsync", "replicated"},
	"compression": {"none", "lz4", "zstd"},
	"order":       {"arrival", "time"},
	"in":          {"lines", "jsonl", "bytes"},
	"binary":      {"auto", "b64", "hex"},
	"until":       {"latest"},
	"on-total-loss": {
		"wait", "replace",
	},
}

func (g *globalFlags) check() error {
	if g.limit < 0 {
		return usagef("--limit cannot be negative")
	}
	if g.jq != "" && g.template != "" {
		return usagef("--jq and --template exclude each other")
	}
	return nil
}

// completeEnums attaches the values of enumFlags to a command's own flags.
func completeEnums(cmd *cobra.Command) {
	attach := func(f *pflag.Flag) {
		if values, ok := enumFlags[f.Name]; ok {
			// The only error is a function registered twice, which a fresh tree cannot have.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().VisitAll(attach)
	cmd.PersistentFlags().VisitAll(attach)
	for _, sub := range cmd.Commands() {
		completeEnums(sub)
	}
}

// flagNameOf takes the flag out of pflag's messages, which are all it gives.
func flagNameOf(err error) (name string, unknown bool) {
	msg := err.Error()
	for _, prefix := range []string{"unknown flag: ", "unknown shorthand flag: "} {
		if rest, ok := strings.CutPrefix(msg, prefix); ok {
			return rest, true
		}
	}
	return "", false
}
