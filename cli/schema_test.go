package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eastguard/eastguard/internal/term"
)

// TestSchemasAreGolden makes a removed or renamed field a failure. Fields may be added: -update writes the files,
// and the difference belongs in the review.
func TestSchemasAreGolden(t *testing.T) {
	for name, d := range documents {
		got, err := term.Schema(name+"/1", d.kind, d.value)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "schema", name+".json")
		if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test ./cli -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-golden +got)\n%s", name, diff)
		}
	}
	files, err := filepath.Glob("testdata/schema/*.json")
	if err != nil || len(files) != len(documents) {
		t.Errorf("%d golden files for %d documents, %v", len(files), len(documents), err)
	}
}

// promised are the fields that scripts may rely on from the first version.
var promised = map[string]string{
	"topic.list":    "name id replication_factor ranges strategy",
	"consume":       "topic range offset timestamp key value headers",
	"publish":       "topic range offset",
	"bench.produce": "records bytes records_per_sec bytes_per_sec p50_us p99_us errors",
	"bench.consume": "records bytes records_per_sec bytes_per_sec p50_us p99_us errors",
	"node.list":     "id boot state status client_address rack leaders segments",
	"shard.list":    "id state leader term commit applied voters",
	"events":        "seq time node type subject cause gap_ms",
	"bench.e2e":     "acked delivered lost duplicates reordered records bytes records_per_sec bytes_per_sec p50_us p99_us errors",
}

func TestPromisedFieldsAreThere(t *testing.T) {
	for name, fields := range promised {
		have := fieldNames(reflect.TypeOf(documents[name].value))
		for _, f := range strings.Fields(fields) {
			if !slices.Contains(have, f) {
				t.Errorf("%s has no %s", name, f)
			}
		}
	}
	for _, f := range strings.Fields("id state start end load leader") {
		if !slices.Contains(fieldNames(reflect.TypeFor[rangeRow]()), f) {
			t.Errorf("ranges have no %s", f)
		}
	}
	for _, f := range strings.Fields("id topic range state cause base end bytes replicas gap_ms") {
		if !slices.Contains(fieldNames(reflect.TypeFor[segmentRow]()), f) {
			t.Errorf("segments have no %s", f)
		}
	}
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			names = append(names, fieldNames(f.Type)...)
		} else if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// TestWideIsASubsetOfJSON renders every document both ways from one value.
func TestWideIsASubsetOfJSON(t *testing.T) {
	for name, d := range documents {
		rows := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(d.value)), 1, 1)
		var table, doc bytes.Buffer
		if err := (&term.Output{W: &table, Format: term.FormatCSV}).List(rows.Interface()); err != nil {
			t.Fatal(name, err)
		}
		if err := (&term.Output{W: &doc, Format: term.FormatJSON}).List(rows.Interface()); err != nil {
			t.Fatal(name, err)
		}
		header, err := csv.NewReader(&table).Read()
		if err != nil {
			t.Fatal(name, err)
		}
		schema, err := term.Schema(name, "object", d.value)
		if err != nil {
			t.Fatal(err)
		}
		var s struct{ Properties map[string]any }
		if err := json.Unmarshal(schema, &s); err != nil {
			t.Fatal(err)
		}
		for _, column := range header {
			if _, ok := s.Properties[column]; !ok {
				t.Errorf("%s: column %s is not in JSON (%v)", name, column, slices.Sorted(maps.Keys(s.Properties)))
			}
		}
	}
}

// TestNamesCarryUnits keeps field names in snake case.
func TestNamesCarryUnits(t *testing.T) {
	for name, d := range documents {
		for _, f := range fieldNames(reflect.TypeOf(d.value)) {
			if strings.ToLower(f) != f || strings.ContainsAny(f, "- .") {
				t.Errorf("%s: %s is not snake_case", name, f)
			}
		}
	}
}
