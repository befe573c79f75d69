package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// files is a file system of one directory.
func files(named ...string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for i := 0; i < len(named); i += 2 {
			if named[i] == name {
				return []byte(named[i+1]), nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

func TestDefaultsAreThoseOfTheDesign(t *testing.T) {
	c := Default()
	require.NoError(t, c.Validate())
	require.Equal(t, []int{2921, 2922, 2923, 2924}, []int{c.ClientPort, c.ClusterPort, c.DataPort, c.AdminPort})
	require.Equal(t, "./eastguard/data", c.DataDir)
	require.Equal(t, "./eastguard/meta", c.MetaDir)
	require.Equal(t, 32, c.Shards)
	require.Equal(t, 3, c.ShardVoters)
	require.EqualValues(t, 1<<30, c.SegmentSizeLimitBytes)
	require.Equal(t, 3600, c.MaxSegmentAgeSecs)
	require.EqualValues(t, 10<<20, c.BatchMaxBytes)
	require.Equal(t, 20000, c.BatchMaxRecords)
	require.Equal(t, 10, c.BatchLingerMs)
	require.Equal(t, 750, c.ReplicaTimeoutMs)
	require.Equal(t, 300, c.NodeOutSecs)
	require.EqualValues(t, 1<<20, c.MaxRecordBytes)
	require.Nil(t, c.Bootstrap)
	require.Equal(t, "127.0.0.1:2924", c.AdminAddress())
	require.Equal(t, "0.0.0.0:2921", c.ClientAddress())
}

// The table and the struct name the same keys; each row has help and a default of its kind within its bounds.
func TestTableAndStructAgree(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[Config]().Fields() {
		fields = append(fields, f.Tag.Get("koanf"))
	}
	var keys []string
	for _, s := range Settings() {
		keys = append(keys, s.Key)
		require.NotEmpty(t, s.Help, s.Key)
		require.False(t, strings.HasSuffix(s.Help, "."), s.Key)
		if s.Kind == KindInt {
			require.IsType(t, int64(0), s.Default, s.Key)
			require.LessOrEqual(t, s.Min, s.Default, s.Key)
			require.GreaterOrEqual(t, s.Max, s.Default, s.Key)
		}
		back, err := s.parse(Format(s.Default))
		require.NoError(t, err, s.Key)
		require.Equal(t, Format(s.Default), Format(back), "%s: a printed value must read back", s.Key)
	}
	require.ElementsMatch(t, fields, keys)
}

// Every key can be set in each of the four places, and each place wins over those before it.
func TestEachKeyFromEachSource(t *testing.T) {
	for _, s := range Settings() {
		t.Run(s.Key, func(t *testing.T) {
			v := sampleValues(s)
			bare, prefixed := s.Env()[1], s.Env()[0]
			if bare == "HOST" {
				v = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}
			}
			var args, env []string
			read := files(DefaultFile, "# a comment\n"+s.Key+": "+v[0]+"\n")
			expect := func(value, source string) {
				t.Helper()
				row := load(t, args, env, read, s.Key)
				want, err := s.parse(value)
				require.NoError(t, err)
				require.Equal(t, Format(want), Format(row.Value))
				require.Equal(t, source, row.Source)
			}
			expect(v[0], "./eastguard.yaml:2")
			env = []string{bare + "=" + v[1]}
			expect(v[1], "env "+bare)
			env = append(env, prefixed+"="+v[2])
			expect(v[2], "env "+prefixed)
			args = []string{"--" + s.Flag() + "=" + v[3]}
			expect(v[3], "flag --"+s.Flag())
		})
	}
}

// load merges without the checks across settings, which a single key set alone would often fail.
func load(t *testing.T, args, env []string, read func(string) ([]byte, error), key string) Source {
	t.Helper()
	file, err := func() (layer, error) {
		content, err := read(DefaultFile)
		require.NoError(t, err)
		return fileLayer(DefaultFile, content)
	}()
	require.NoError(t, err)
	environment, err := envLayer(env)
	require.NoError(t, err)
	flags := flagSet()
	require.NoError(t, flags.Parse(args))
	_, sources, err := merge(defaults(), file, environment, flagLayer(flags))
	require.NoError(t, err)
	row, ok := sources.Get(key)
	require.True(t, ok)
	return row
}

func sampleValues(s Setting) []string {
	switch {
	case s.OneOf != nil:
		return []string{s.OneOf[0], s.OneOf[1], s.OneOf[0], s.OneOf[1]}
	case s.Kind == KindInt:
		lo, hi := Format(s.Min), Format(s.Max)
		return []string{lo, hi, lo, hi}
	case s.Kind == KindTriBool:
		return []string{"true", "false", "auto", "true"}
	case s.Kind == KindMap:
		return []string{"a=1", "a=2,b=3", "c=4", "d=5"}
	}
	return []string{"one", "two", "three", "four"}
}

func TestLoadsWithoutFile(t *testing.T) {
	c, sources, err := Load(nil, nil, files())
	require.NoError(t, err)
	require.Equal(t, Default(), c)
	for _, row := range sources {
		require.Equal(t, "default", row.Source)
	}
	require.Len(t, sources, len(Settings()))
}

func TestWholeFile(t *testing.T) {
	c, _, err := Load([]string{"-c", "broker.yaml"}, nil, files("broker.yaml", `
node_id: n1
rack: &here rack-7
labels: {disk: ssd, zone: *here}
join_seed_nodes:
  - 10.0.0.1:2922
  - "[2001:db8::1]:2922"
segment_size_limit_bytes: 64MiB
max_segment_age_secs: 1h30m
batch_linger_ms: 0
bootstrap: false
advertise_host: ~
log_level: WARN
`))
	require.NoError(t, err)
	require.Equal(t, "n1", c.NodeID)
	require.Equal(t, map[string]string{"disk": "ssd", "zone": "rack-7"}, c.Labels)
	require.Equal(t, []string{"10.0.0.1:2922", "[2001:db8::1]:2922"}, c.JoinSeedNodes)
	require.EqualValues(t, 64<<20, c.SegmentSizeLimitBytes)
	require.Equal(t, 5400, c.MaxSegmentAgeSecs)
	require.Zero(t, c.BatchLinger())
	require.False(t, *c.Bootstrap)
	require.Equal(t, "warn", c.LogLevel)
}

func TestALayerReplacesListsAndLabels(t *testing.T) {
	c, _, err := Load([]string{"--labels", "a=1", "--labels", "b=2"}, []string{"JOIN_SEED_NODES=h3:1, h4:2"},
		files(DefaultFile, "labels: {z: 9}\njoin_seed_nodes: [h1:1, h2:2]\n"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, c.Labels, "given twice on one command line: both; from the file: replaced")
	require.Equal(t, []string{"h3:1", "h4:2"}, c.JoinSeedNodes)
}

func TestBareHostCountsOnlyAsAnAddress(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOST=my-laptop"}, "0.0.0.0"},
		{[]string{"HOST=10.1.2.3"}, "10.1.2.3"},
		{[]string{"HOST=::1"}, "::1"},
		{[]string{"EASTGUARD_HOST=my-laptop", "HOST=10.1.2.3"}, "my-laptop"},
		{[]string{"HOST="}, "0.0.0.0"},
	} {
		c, _, err := Load(nil, tc.env, files())
		require.NoError(t, err, tc.env)
		require.Equal(t, tc.want, c.Host, tc.env)
	}
}

func TestBootstrapFlagNeedsNoValue(t *testing.T) {
	c, _, err := Load([]string{"--bootstrap"}, nil, files())
	require.NoError(t, err)
	require.True(t, *c.Bootstrap)
}

// Every mistake gets one line that says where it is and one that says what to do.
func TestMistakes(t *testing.T) {
	cwd, err := os.Getwd()
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		args  string
		env   string
		file  string
		error string
		hint  string
	}{
		{name: "unknown key", file: "client_port: 1\nclient_prot: 2\n", error: `./eastguard.yaml:2: unknown setting "client_prot"`, hint: "did you mean client_port?"},
		{name: "flag spelling in the file", file: "client-port: 1\n", error: `unknown setting "client-port"`, hint: "did you mean client_port?"},
		{name: "camel case", file: "dataDir: x\n", error: `unknown setting "dataDir"`, hint: "did you mean data_dir?"},
		{name: "nothing near", file: "kafka.broker: 1\n", error: `:1: unknown setting "kafka.broker"`, hint: "eastguard --help lists the settings"},
		{name: "key twice", file: "rack: a\nrack: b\n", error: "./eastguard.yaml:2: rack is set already at ./eastguard.yaml:1"},
		{name: "not a number", file: "\nclient_port: many\n", error: `./eastguard.yaml:2: client_port: "many" is not a whole number`, hint: "client_port: TCP port for clients"},
		{name: "a list for a number", file: "client_port: [1]\n", error: "./eastguard.yaml:1: client_port: is not of type integer"},
		{name: "broken YAML", file: "client_port: 1\n  rack: [\n", error: "./eastguard.yaml:2: "},
		{name: "tab", file: "rack: a\n\tb: c\n", error: "./eastguard.yaml:2: "},
		{name: "not a mapping", file: "- a\n", error: "./eastguard.yaml:1: expected settings of the form key: value"},
		{name: "two documents", file: "rack: a\n---\nrack: b\n", error: "a second YAML document"},
		{name: "nested list", file: "join_seed_nodes:\n- a:1\n- [b]\n", error: "line 3 is not one plain value"},
		{name: "nested label", file: "labels:\n  a: {b: c}\n", error: "line 2 is not of the form name: value"},
		{name: "label twice", file: "labels:\n  a: b\n  a: c\n", error: `"a" is given twice, again at line 3`},
		{name: "missing file", args: "-c nowhere.yaml", error: "configuration file: open nowhere.yaml: file does not exist", hint: "check the path given with -c"},
		{name: "unknown flag", args: "--client-prot 1", error: "unknown flag: --client-prot", hint: "eastguard --help lists the flags"},
		{name: "flag without value", args: "--client-port", error: "flag needs an argument: --client-port"},
		{name: "bad flag value", args: "--client-port x", error: `invalid argument "x" for "--client-port" flag: "x" is not a whole number`},
		{name: "stray argument", args: "start", error: `unexpected argument "start"`},
		{name: "port too large", args: "--client-port 65536", error: "65536 is not between 0 and 65535"},
		{name: "negative", args: "--max-open-files=-1", error: "-1 is not between 16 and 1000000"},
		{name: "bad size", args: "--cache-budget-bytes 5furlongs", error: `"5furlongs" is not a number of bytes such as 10485760 or 10MiB`},
		{name: "size beyond int64", args: "--cache-budget-bytes 17EB", error: `"17EB" is not a number of bytes`},
		{name: "half a second", args: "--max-segment-age-secs 1500ms", error: `"1500ms" is not a number of seconds such as 90 or 1m30s`},
		{name: "bad choice", env: "EASTGUARD_LOG_LEVEL=loud", error: `environment: EASTGUARD_LOG_LEVEL: "loud" is not one of debug, info, warn, error`, hint: "mend or unset EASTGUARD_LOG_LEVEL"},
		{name: "bare name", env: "SHARDS=no", error: `environment: SHARDS: "no" is not a whole number`},
		{name: "bad label", env: "LABELS=a", error: `"a" is not of the form name=value`},
		{name: "bad bool", args: "--bootstrap=maybe", error: `"maybe" is not true, false or auto`},
		{name: "same port", args: "--data-port 2921", error: "client_port and data_port are both 2921"},
		{name: "host with port", args: "--host 1.2.3.4:2921", error: `host: "1.2.3.4:2921" is not a host`},
		{name: "empty host", args: "--host=", error: `host: "" is not a host`},
		{name: "url to advertise", args: "--advertise-host http://x", error: `advertise_host: "http://x" is not a host`},
		{name: "empty directory", args: "--data-dir=", error: "data_dir is empty"},
		{name: "same directory", args: "--data-dir ./d --meta-dir d/", error: "data_dir and meta_dir are both ./d"},
		{name: "same directory, one of them absolute", args: "--data-dir ./d --meta-dir " + filepath.Join(cwd, "d"), error: "data_dir and meta_dir are both ./d"},
		{name: "meta inside data", args: "--data-dir ./d --meta-dir d/x/../meta", error: "meta_dir d/x/../meta is inside data_dir ./d", hint: "put them side by side"},
		{name: "data inside meta", args: "--data-dir /srv/eg/data --meta-dir /srv/eg", error: "data_dir /srv/eg/data is inside meta_dir /srv/eg"},
		{name: "data in the root", args: "--data-dir / --meta-dir /meta", error: "meta_dir /meta is inside data_dir /"},
		{name: "node id", args: "--node-id a/b", error: `node_id: "a/b" cannot name a node`},
		{name: "labels too long", args: "--rack " + strings.Repeat("r", 300), error: "rack and labels have 300 bytes together"},
		{name: "shards", args: "--shards 12", error: "shards: 12 is not a power of two"},
		{name: "seed without brackets", args: "--join-seed-nodes ::1:2932", error: `join_seed_nodes: "::1:2932" has no port`, hint: "write [::1:2932]:2922, or [::1]:2932"},
		{name: "seed without port", args: "--join-seed-nodes n2", error: `join_seed_nodes: "n2" has no port`, hint: "write n2:2922"},
		{name: "seed with bad port", args: "--join-seed-nodes n2:0", error: `join_seed_nodes: "n2:0" is not host:port`},
		{name: "expect without seeds", args: "--bootstrap-expect 3", error: "bootstrap_expect 3 needs join_seed_nodes"},
		{name: "expect and bootstrap", args: "--bootstrap --bootstrap-expect 3", error: "bootstrap founds a cluster alone"},
		{name: "expect too many", args: "--bootstrap-expect 3 --join-seed-nodes a:1", error: "bootstrap_expect 3 is more than this node and the 1 others named"},
		{name: "expect a minority", args: "--bootstrap-expect 2 --join-seed-nodes a:1,b:1,c:1,d:1", error: "bootstrap_expect 2 is not more than half of the 4 nodes named"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := files()
			if tc.file != "" {
				read = files(DefaultFile, tc.file)
			}
			_, _, err := Load(strings.Fields(tc.args), []string{tc.env}, read)
			require.ErrorContains(t, err, tc.error)
			require.NotContains(t, err.Error(), "\n")
			var e *base.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, base.CodeInvalidArgument, e.Code)
			require.Contains(t, e.HintText(), tc.hint)
		})
	}
}

func TestUnreadableAndHugeFiles(t *testing.T) {
	_, _, err := Load([]string{"--config", "."}, nil, os.ReadFile)
	require.ErrorContains(t, err, "is a directory")
	_, _, err = Load(nil, nil, files(DefaultFile, strings.Repeat("#", MaxFileBytes+1)))
	require.ErrorContains(t, err, "at most 1048576 are read")
}

func TestEmptyFilesSetNothing(t *testing.T) {
	for _, content := range []string{"", "\n# only a comment\n", "---\n", "~\n", "--- {}\n"} {
		c, _, err := Load(nil, nil, files(DefaultFile, content))
		require.NoError(t, err, "%q", content)
		require.Equal(t, Default(), c)
	}
}

func TestSourcesInBothForms(t *testing.T) {
	_, sources, err := Load([]string{"--rack", "a\x1b[31m"}, []string{"LABELS=k=v"}, files(DefaultFile, "join_seed_nodes: [a:1]\n"))
	require.NoError(t, err)

	var out bytes.Buffer
	require.NoError(t, sources.WriteTable(&out))
	table := out.String()
	require.Regexp(t, `(?m)^KEY +VALUE +SOURCE$`, table)
	require.Regexp(t, `(?m)^client_port +2921 +default$`, table)
	require.Regexp(t, `(?m)^join_seed_nodes +a:1 +./eastguard.yaml:1$`, table)
	require.Regexp(t, `(?m)^labels +k=v +env LABELS$`, table)
	require.Regexp(t, `(?m)^bootstrap +auto +default$`, table)
	require.Regexp(t, `(?m)^node_id +- +default$`, table)
	require.NotContains(t, table, "\x1b", "a value must not reach the terminal as a control sequence")

	out.Reset()
	require.NoError(t, sources.WriteJSON(&out))
	var rows []map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	require.Len(t, rows, len(Settings()))
	byKey := map[string]map[string]any{}
	for _, row := range rows {
		require.Len(t, row, 3)
		byKey[row["key"].(string)] = row
	}
	require.Equal(t, map[string]any{"key": "client_port", "value": 2921.0, "source": "default"}, byKey["client_port"])
	require.Equal(t, []any{"a:1"}, byKey["join_seed_nodes"]["value"])
	require.Equal(t, map[string]any{"k": "v"}, byKey["labels"]["value"])
	require.Nil(t, byKey["bootstrap"]["value"])
}

// Beside ESC there are the C1 controls, of which U+009B begins a sequence too, and what reorders text.
func TestPrintable(t *testing.T) {
	require.Equal(t, "a?b?c?d?é 日", printable("a\u009bb\u202ec\u200bd\né 日"))
	require.Equal(t, "\uFFFD[2J", printable("\x9b[2J"), "not UTF-8: the byte does not go out as it is")
}
