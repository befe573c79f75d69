package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
)

// document is one shape of machine output, generated from the struct that is printed.
type document struct {
	kind  string // list, object or stream
	value any
}

// documents are all of them, by the name that the command carries in its noteSchema.
var documents = map[string]document{
	"topic.create":     {"object", createdTopic{}},
	"topic.list":       {"list", topicRow{}},
	"topic.describe":   {"object", topicDocument{}},
	"topic.alter":      {"object", alteredTopic{}},
	"topic.delete":     {"list", deletedTopic{}},
	"publish":          {"stream", ackDocument{}},
	"consume":          {"stream", recordDocument{}},
	"route":            {"object", routeDocument{}},
	"node.list":        {"list", nodeRow{}},
	"node.describe":    {"object", nodeDocument{}},
	"node.ring":        {"object", ringDocument{}},
	"node.verify":      {"object", verifyDocument{}},
	"node.ping":        {"list", pingRow{}},
	"node.logs":        {"stream", logRow{}},
	"node.change":      {"object", changedNode{}},
	"shard.list":       {"list", shardRow{}},
	"shard.leaders":    {"list", leaderRow{}},
	"shard.describe":   {"object", shardDocument{}},
	"shard.locate":     {"object", locatedShard{}},
	"shard.move":       {"list", moveRow{}},
	"shard.recover":    {"object", recoveredShard{}},
	"segment.list":     {"list", segmentListRow{}},
	"segment.describe": {"object", segmentDocument{}},
	"segment.seal":     {"object", sealedSegment{}},
	"segment.dump":     {"object", dumpDocument{}},
	"events":           {"stream", eventRow{}},
	"wait":             {"object", waitDocument{}},
	"cluster.status":   {"object", clusterDocument{}},
	"cluster.health":   {"object", healthDocument{}},
	"bench.produce":    {"object", produceReport{}},
	"bench.consume":    {"object", consumeReport{}},
	"bench.e2e":        {"object", e2eReport{}},
	"version":          {"object", versionDocument{}},
	"config.sources":   {"list", sourceRow{}},
	"context.list":     {"list", contextRow{}},
	"context.show":     {"object", contextDocument{}},
	"explain":          {"object", explainDocument{}},
	"cheat":            {"object", cheatDocument{}},
	"schema.list":      {"list", schemaRow{}},
	"error":            {"object", errorDocument{}},
}

type schemaRow struct {
	Name string `json:"name" col:"NAME"`
	Kind string `json:"kind" col:"KIND"`
}

func newSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "schema [name]",
		Short:       "Print the JSON Schema of a command's -o json, or list the names",
		Example:     "  schema\n  schema topic.list",
		Args:        argsBetween(0, 1),
		Annotations: map[string]string{noteExits: "4", noteSchema: "schema.list"},
		ValidArgs:   slices.Sorted(maps.Keys(documents)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return runSchemaList(a)
			}
			return runSchema(a, args[0])
		},
	}
}

func runSchemaList(a *app) error {
	var rows []schemaRow
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		rows = append(rows, schemaRow{Name: name, Kind: documents[name].kind})
	}
	return a.output().List(rows)
}

func runSchema(a *app, name string) error {
	d, ok := documents[name]
	if !ok {
		f := &failure{name: "SCHEMA_NOT_FOUND", exit: ExitNotFound, msg: "there is no schema \"" + name + "\"", hint: "see: eg-cli schema"}
		if best := suggest(strings.ReplaceAll(name, " ", "."), slices.Sorted(maps.Keys(documents))); best != "" {
			f.hint = "did you mean " + best + "?"
		}
		return f
	}
	text, err := term.Schema(name+"/1", d.kind, d.value)
	if err != nil {
		return err
	}
	_, err = a.io.Out.Write(text)
	return err
}
