package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
)

const schemaCheat = "cheat/1"

// cheatDocument is the document of cheat.
type cheatDocument struct {
	Schema string     `json:"schema"`
	Topic  string     `json:"topic"`
	Lines  []cheatRow `json:"lines"`
}

type cheatRow struct {
	Command string `json:"command" col:"COMMAND"`
	What    string `json:"what" col:"WHAT"`
}

// cheats are what people type most, by what they are about. A test parses each line.
var cheats = map[string][]cheatRow{
	"start": {
		{`create-topic my_topic 3`, "three copies of each record"},
		{`publish my_topic user123 "Hello EastGuard!"`, "one record"},
		{`consume my_topic earliest 10`, "up to ten, then stop"},
		{`consume my_topic -f`, "new ones, as they come"},
		{`topic describe my_topic`, "ranges, segments, settings"},
	},
	"publish": {
		{`publish t key value`, "one record, taken literally"},
		{`publish t -K : `, "lines of key:value from stdin"},
		{`publish t --in jsonl`, "what consume -o jsonl printed"},
		{`publish t k v -H trace=1 -H hop=2`, "with headers"},
		{`publish t k v --trace`, "where the time went"},
		{`publish t k --tombstone`, "a record whose value is null"},
		{`publish t 'k{{.Count}}' '{{.Random 10 100}}' -n 1000 --rate 100/s`, "made up, at a pace"},
	},
	"consume": {
		{`consume t -10`, "the last ten of each range"},
		{`consume t @-10m`, "from ten minutes ago"},
		{`consume t earliest -k user123`, "one key's range only"},
		{`consume t r2:1200 -n 5`, "from an offset of a range"},
		{`consume t earliest --expect 100 -t 30`, "in a test: exit 12 if there are fewer"},
		{`consume t -o jsonl`, "lossless, for programs"},
	},
	"nodes": {
		{`node list -w`, "who is there, repainted"},
		{`node ring --verify`, "do all believe the same? exit 12 if not"},
		{`node ping --indirect`, "who reaches whom"},
		{`node describe n2 --changed`, "settings that are not at their default"},
		{`node leave n3 --wait --yes`, "stop it in good order"},
		{`wait node n3 alive`, "until it is back"},
	},
	"outage": {
		{`cluster health`, "what is wrong; exit 10 if anything is"},
		{`explain EG120`, "a page on a check or an error"},
		{`events --since 15m`, "what happened, on all nodes"},
		{`segment list --state under-replicated`, "what has lost copies"},
		{`segment describe s907`, "each replica's own word on its copy"},
		{`shard list --state no_leader`, "whose topics cannot be changed"},
		{`shard describe 12`, "which voters are missing"},
		{`node forget n3 --dry-run`, "what it would mean to give a dead node up"},
		{`shard recover 12 --dry-run`, "a majority is lost for good: which log would win"},
	},
	"scripts": {
		{`wait cluster healthy --min-nodes 3 --timeout 2m`, "until all are there"},
		{`wait topic t ready`, "until it takes records"},
		{`topic list -o json --jq '.[] | select(.replication_factor < 3) | .name'`, "filter without jq"},
		{`cluster health --nagios`, "one line, exit 0, 1, 2 or 3"},
		{`events -f --type DISK --exec 'logger -t eastguard'`, "run a program for each"},
		{`topic delete --regex 'tmp-.*' --dry-run --detailed-exitcode`, "exit 12 if there is something to do"},
	},
	"bench": {
		{`bench produce t --duration 30s --size 1KiB --max`, "how much it takes"},
		{`bench produce t --rate 10k/s --max-p99 20ms`, "exit 12 if it is slower"},
		{`bench e2e t --records 100000`, "nothing lost, doubled or out of order; exit 9 if so"},
	},
}

func newCheatCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "cheat [topic]",
		Short:       "What people type most, by what it is about",
		Example:     "  cheat\n  cheat outage",
		Args:        argsBetween(0, 1),
		Annotations: map[string]string{noteSchema: "cheat", noteExits: "4"},
		ValidArgs:   slices.Sorted(maps.Keys(cheats)),
		RunE: func(_ *cobra.Command, args []string) error {
			topics := slices.Sorted(maps.Keys(cheats))
			if len(args) == 0 {
				_, err := a.io.Out.Write([]byte("There is a page on: " + strings.Join(topics, ", ") + ". See: eg-cli cheat " + topics[0] + "\n"))
				return err
			}
			rows, ok := cheats[args[0]]
			if !ok {
				f := &failure{name: "HELP_NOT_FOUND", exit: ExitNotFound, msg: "there is no cheat sheet on \"" + args[0] + "\"", hint: "there is " + strings.Join(topics, ", ")}
				if best := suggest(args[0], topics); best != "" {
					f.hint = "did you mean \"cheat " + best + "\"?"
				}
				return f
			}
			return a.output().Object(cheatDocument{schemaCheat, args[0], rows}, func(p *term.Page) { cheatPage(p, rows) })
		},
	}
}

// cheatPage prints commands and what they are for, below each other where they do not fit side by side.
func cheatPage(p *term.Page, rows []cheatRow) {
	width := 0
	for _, r := range rows {
		width = max(width, term.Width(r.Command))
	}
	for _, r := range rows {
		if width > 60 {
			p.Line("%s\n    %s", r.Command, p.Style().Dim(r.What))
			continue
		}
		p.Line("%s  %s", term.Pad(r.Command, width, false), p.Style().Dim(r.What))
	}
}
