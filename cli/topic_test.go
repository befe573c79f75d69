package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

func TestCreateTopicFlagsToRequest(t *testing.T) {
	tests := map[string]struct {
		args string
		want sdk.CreateTopic
	}{
		"argument": {"t 3", sdk.CreateTopic{Name: "t", Config: sdk.TopicConfig{ReplicationFactor: 3}}},
		"flag":     {"t --rf 2", sdk.CreateTopic{Name: "t", Config: sdk.TopicConfig{ReplicationFactor: 2}}},
		"both":     {"t 2 --rf 2", sdk.CreateTopic{Name: "t", Config: sdk.TopicConfig{ReplicationFactor: 2}}},
		"default":  {"t", sdk.CreateTopic{Name: "t"}},
		"settings": {
			"t 3 --ranges 4 --strategy fixed --retention 7d --retention-bytes 1GiB --segment-size 64MiB --segment-age 1h --compression zstd " +
				"--durability replicated --min-replicas 2 --spread-by rack --split-rate 20MB --on-total-loss replace --label a=b --label c=d=e --allow-under-replicated",
			sdk.CreateTopic{Name: "t", Ranges: 4, AllowUnderReplicated: true, Config: sdk.TopicConfig{
				ReplicationFactor: 3, MinReplicas: 2, Strategy: sdk.StrategyFixed, Durability: sdk.DurabilityReplicated, OnTotalLoss: base.OnTotalLossReplace,
				Retention: 7 * 24 * time.Hour, RetentionBytes: 1 << 30, SegmentBytes: 64 << 20, SegmentAge: time.Hour, Compression: "zstd",
				SpreadBy: "rack", SplitRate: 20e6, Labels: map[string]string{"a": "b", "c": "d=e"},
			}},
		},
		"split": {"t 1 --split-at 0x40,0xC0", sdk.CreateTopic{Name: "t", SplitAt: []uint64{0x40 << 56, 0xc0 << 56}, Config: sdk.TopicConfig{ReplicationFactor: 1}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestSession(t)
			_, a := newTree(s, s.IO)
			o := &createTopicOptions{app: a}
			cmd := newCreateTopicCommand(a, "create <topic> [rf]")
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				rf, _ := cmd.Flags().GetInt("rf")
				split, _ := cmd.Flags().GetStringSlice("split-at")
				o.request.Ranges, _ = cmd.Flags().GetInt("ranges")
				o.request.AllowUnderReplicated, _ = cmd.Flags().GetBool("allow-under-replicated")
				return o.parse(cmd, args, rf, split)
			}
			cmd.SetArgs(strings.Fields(tt.args))
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.request); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCreateTopicOutput(t *testing.T) {
	for _, tty := range []bool{true, false} {
		out, errs, err := run(t, &fakeClient{}, "", tty, nil, "create-topic", "my_topic", "3")
		want := "created topic my_topic  replication factor 3  1 range  shard 12 (leader n2)  0.00 ms\n"
		if err != nil || out != want || errs != "" {
			t.Errorf("tty %v: %v\n got  %q %q\n want %q", tty, err, out, errs, want)
		}
	}
	out, errs, err := run(t, &fakeClient{}, "", false, nil, "topic", "create", "t", "3")
	if ExitCode(err) != 5 || out != "" || !strings.Contains(errs, "  created 2026-11-29 11:04:31 UTC, replication factor 3, 1 range\n") {
		t.Errorf("exists: %v, %q %q", err, out, errs)
	}
}

func TestTopicListReportsMissingShards(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("t"), missing: []sdk.ShardID{{Root: 3}, {Root: 12}}}
	out, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, "topic", "list")
	if ExitCode(err) != ExitPartial || !strings.Contains(out, "t ") || !strings.Contains(errs, "2 shards did not answer: 3, 12 [PARTIAL]") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

func TestTopicListOutput(t *testing.T) {
	want := "NAME  RANGES  RF  STRATEGY  IN/s     SIZE  RETENTION  AGE\nt          1   3  auto       0 B  2.0 KiB         7d  1h00m\n"
	if out, _, err := run(t, &fakeClient{}, "", true, nil, "topic", "list"); err != nil || out != want {
		t.Errorf("%v\ngot\n%swant\n%s", err, out, want)
	}
}

func TestDidYouMeanTopic(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("orders", "audit")}
	for _, args := range [][]string{{"topic", "describe", "ordres"}, {"topic", "alter", "ordres", "retention=1d"}, {"topic", "delete", "ordres", "--yes"}} {
		_, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, args...)
		if ExitCode(err) != ExitNotFound || !strings.Contains(errs, `hint: did you mean "orders"?`) {
			t.Errorf("%v: %v, %q", args, err, errs)
		}
	}
}

func TestDeleteAsksForTheName(t *testing.T) {
	tests := map[string]struct {
		answer  string
		env     []string
		args    []string
		tty     bool
		exit    int
		deleted int
		says    string
	}{
		"typed":                {answer: "t\n", tty: true, deleted: 1, says: "Type t to confirm: "},
		"two topics":           {args: []string{"u"}, answer: "2 topics\n", tty: true, deleted: 2, says: `Type "2 topics" to confirm: `},
		"typed wrongly":        {answer: "y\n", tty: true, exit: 1, says: "nothing was changed"},
		"end of input":         {answer: "", tty: true, exit: 1},
		"no terminal":          {exit: 2, says: "refusing"},
		"yes":                  {args: []string{"--yes"}, deleted: 1},
		"-y on a terminal":     {args: []string{"-y"}, tty: true, deleted: 1},
		"no input":             {args: []string{"--no-input"}, tty: true, exit: 2},
		"prompts disabled":     {env: []string{"EG_PROMPT_DISABLED=1"}, tty: true, exit: 2},
		"dry run needs no yes": {args: []string{"--dry-run"}},
		"read only":            {args: []string{"--yes", "--read-only"}, exit: 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			admin := &fakeAdmin{topics: topicsOf("t", "u")}
			out, errs, err := run(t, &fakeClient{admin: admin}, tt.answer, tt.tty, tt.env, append([]string{"topic", "delete", "t"}, tt.args...)...)
			if ExitCode(err) != tt.exit || len(admin.deleted) != tt.deleted || !strings.Contains(errs, tt.says) {
				t.Errorf("exit %d, %d deleted\n%s%s", ExitCode(err), len(admin.deleted), out, errs)
			}
		})
	}
}

// TestPlansAreApplied checks that what is confirmed is what happens: the plan's version and topic go with the change.
func TestPlansCarryTheirVersion(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("t")}
	if _, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, "topic", "delete", "t", "--yes"); err != nil {
		t.Fatal(err, errs)
	}
	if d := admin.deleted[0]; d.ExpectVersion != 7 || d.ExpectTopic != (base.UUID{1}) {
		t.Errorf("delete sent %+v", d)
	}
	if _, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, "topic", "alter", "t", "retention=1d", "--yes"); err != nil {
		t.Fatal(err, errs)
	}
	if a := admin.altered; a.ExpectVersion != 7 || a.ExpectTopic != (base.UUID{1}) || a.Set["retention"] != "1d" {
		t.Errorf("alter sent %+v", a)
	}
}

func TestAlterAsksOnlyWhenRetentionNarrows(t *testing.T) {
	tests := map[string]struct {
		args   []string
		answer string
		exit   int
		asks   bool
	}{
		"wider":            {[]string{"retention=30d"}, "", 0, false},
		"for ever":         {[]string{"retention-"}, "", 0, false},
		"other setting":    {[]string{"compression=zstd"}, "", 0, false},
		"narrower, yes":    {[]string{"retention=1d"}, "y\n", 0, true},
		"narrower, no":     {[]string{"retention=1d"}, "n\n", 1, true},
		"narrower, Enter":  {[]string{"retention=1d"}, "\n", 1, true},
		"a limit in bytes": {[]string{"retention_bytes=1GiB"}, "y\n", 0, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs, err := run(t, &fakeClient{}, tt.answer, true, nil, append([]string{"topic", "alter", "t"}, tt.args...)...)
			if ExitCode(err) != tt.exit || strings.Contains(errs, "Proceed? [y/N]") != tt.asks {
				t.Errorf("exit %d\n%s", ExitCode(err), errs)
			}
		})
	}
}

func TestDeleteManyReportsEach(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("a", "b")}
	out, _, err := run(t, &fakeClient{admin: admin}, "", false, nil, "topic", "delete", "a", "b", "c", "--yes", "--if-exists", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Topic, Result string }
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 3 || rows[0].Result != "deleted" || rows[2].Result != "absent" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDeleteByPatternSparesInternalTopics(t *testing.T) {
	admin := &fakeAdmin{topics: topicsOf("a", "__eastguard_offsets")}
	if _, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, "topic", "delete", "--regex", ".*", "--yes"); err != nil {
		t.Fatal(err, errs)
	}
	if len(admin.deleted) != 1 || admin.deleted[0].Name != "a" {
		t.Errorf("deleted %v", admin.deleted)
	}
}

func TestParseHash(t *testing.T) {
	for in, want := range map[string]uint64{"0x40": 0x40 << 56, "0x8": 0x8 << 60, "0xFFFFFFFFFFFFFFFF": 1<<64 - 1, "0x0": 0} {
		if got, err := parseHash(in); err != nil || got != want {
			t.Errorf("%q = %x, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "40", "0x", "0xg", "0x00000000000000000"} {
		if got, err := parseHash(in); err == nil {
			t.Errorf("%q = %x, want an error", in, got)
		}
	}
}

func TestKeyspaceBar(t *testing.T) {
	rows := []rangeRow{{State: "active"}, {State: "active", Start: 1 << 62}, {State: "active", Start: 1 << 63}, {State: "sealed", Start: 1 << 61}}
	got := keyspaceBar(rows, 29, true)
	if got != "0x0 -----|----|--------- 2^64" {
		t.Errorf("got %q", got)
	}
}

func TestHealth(t *testing.T) {
	good := sdk.ClusterHealth{Nodes: 3, Observer: "n1", Checks: []sdk.HealthCheck{{ID: "EG120", Name: "leaders"}}}
	warn := sdk.ClusterHealth{Nodes: 3, Checks: []sdk.HealthCheck{{ID: "EG120", Result: sdk.HealthWarn, Name: "leaders", Detail: "slow"}}}
	bad := sdk.ClusterHealth{Nodes: 1, Checks: []sdk.HealthCheck{{ID: "EG120", Result: sdk.HealthFail, Name: "leaders", Detail: "2 missing", Next: "eg-cli shard list"}}}
	tests := map[string]struct {
		answers []sdk.ClusterHealth
		err     error
		args    string
		exit    int
		says    string
	}{
		"good":                {answers: []sdk.ClusterHealth{good}, says: "healthy: 3 nodes alive, seen from n1\n"},
		"bad":                 {answers: []sdk.ClusterHealth{bad}, exit: 10, says: "EG120 next: eg-cli shard list\nnot healthy"},
		"warn":                {answers: []sdk.ClusterHealth{warn}, says: "with warnings"},
		"warn exit":           {answers: []sdk.ClusterHealth{warn}, args: "--warn-exit", exit: 11},
		"becomes good":        {answers: []sdk.ClusterHealth{bad, bad, good}, args: "--wait", says: "healthy: 3 nodes"},
		"never good":          {answers: []sdk.ClusterHealth{bad}, args: "--wait -t 0.3", exit: 12, says: "not healthy"},
		"too few":             {answers: []sdk.ClusterHealth{good}, args: "--min-nodes 5", exit: 10, says: "3 alive, at least 5 wanted"},
		"nobody":              {err: errorf(sdk.CodeUnreachable, "refused"), exit: 3},
		"nobody, waiting":     {err: errorf(sdk.CodeUnreachable, "refused"), args: "--wait -t 0.3", exit: 3},
		"not worth waiting":   {err: errorf(sdk.CodeDenied, "no"), args: "--wait -t 60", exit: 6},
		"nagios":              {answers: []sdk.ClusterHealth{bad}, args: "--nagios", exit: 2, says: "EASTGUARD CRITICAL - EG120 leaders: 2 missing | nodes=1\n"},
		"nagios warning":      {answers: []sdk.ClusterHealth{warn}, args: "--nagios", exit: 1, says: "EASTGUARD WARNING"},
		"nagios, unreachable": {err: errorf(sdk.CodeUnreachable, "refused"), args: "--nagios", exit: 3, says: "EASTGUARD UNKNOWN - refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			admin := &fakeAdmin{health: slices.Clone(tt.answers), err: tt.err}
			out, errs, err := run(t, &fakeClient{admin: admin}, "", false, nil, append([]string{"cluster", "health"}, strings.Fields(tt.args)...)...)
			if ExitCode(err) != tt.exit || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d\n%s%s", ExitCode(err), out, errs)
			}
		})
	}
}

// The plan was a table; the result of one topic is a line, and a table again for several and for whoever is no person.
func TestDeleteResult(t *testing.T) {
	const line = "deleted t  1 range  2.0 KiB\n"
	table := "TOPIC  RANGES  SEGMENTS    BYTES  RESULT\nt           1         2  2.0 KiB  deleted\n"
	for name, tt := range map[string]struct {
		tty  bool
		args []string
		want string
	}{
		"terminal":    {true, nil, line},
		"no terminal": {false, []string{"--yes"}, table},
		"columns":     {true, []string{"--columns", "topic,result"}, "TOPIC  RESULT\nt      deleted\n"},
		"two":         {true, []string{"u", "--yes"}, "u           1         2  2.0 KiB  deleted\n"},
		"absent":      {true, []string{"--yes", "x", "--if-exists"}, "absent\n"},
	} {
		admin := &fakeAdmin{topics: topicsOf("t", "u")}
		out, errs, err := run(t, &fakeClient{admin: admin}, "t\n", tt.tty, nil, append([]string{"topic", "delete", "t"}, tt.args...)...)
		if err != nil || !strings.HasSuffix(out, tt.want) {
			t.Errorf("%s: %v\n%s%s", name, err, out, errs)
		}
	}
}
