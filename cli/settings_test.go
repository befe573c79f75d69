package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrecedence sets one source after the other, lowest first; each must win over those before it.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "cli.yaml")
	yaml := "current: prod\ncontexts: [{name: prod, seeds: [ctx:1]}]\ndefaults: {output: wide, timeout: 3s}\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		env, flags    []string
		prompt        map[string]string
		key           string
		value, source string
	}{
		{key: "seeds", value: defaultSeeds, source: "default"},
		{env: []string{"EG_CLI_CONFIG=" + config}, key: "seeds", value: "ctx:1", source: "context prod"},
		{env: []string{"EG_CLI_CONFIG=" + config, "EG_SEEDS=env:1"}, key: "seeds", value: "env:1", source: "environment EG_SEEDS"},
		{env: []string{"EG_CLI_CONFIG=" + config, "EG_SEEDS=env:1"}, prompt: map[string]string{"seeds": "set:1"}, key: "seeds", value: "set:1", source: "prompt :set"},
		{env: []string{"EG_SEEDS=env:1"}, prompt: map[string]string{"seeds": "set:1"}, flags: []string{"-s", "f:1,f:2"}, key: "seeds", value: "f:1,f:2", source: "flag --seeds"},
		{env: []string{"EG_CLI_CONFIG=" + config}, key: "output", value: "wide", source: "file " + config},
		{env: []string{"EG_CLI_CONFIG=" + config, "EG_OUTPUT=json"}, key: "output", value: "json", source: "environment EG_OUTPUT"},
		{env: []string{"EG_PAGER=more", "PAGER=less"}, key: "pager", value: "more", source: "environment EG_PAGER"},
	}
	for _, tt := range steps {
		s, _ := newTestSession(t, append(tt.env, "HOME="+dir)...)
		s.overrides.values = tt.prompt
		root := NewRoot(s)
		if err := root.ParseFlags(tt.flags); err != nil {
			t.Fatal(err)
		}
		set, err := s.resolve(root.Flags())
		if err != nil {
			t.Fatal(err)
		}
		if got := set.values[tt.key]; got.Value != tt.value || got.Source != tt.source {
			t.Errorf("%v %v: %s is %+v, want %q from %q", tt.env, tt.flags, tt.key, got, tt.value, tt.source)
		}
	}
}

func TestBadSettingsNameTheirSource(t *testing.T) {
	for env, says := range map[string]string{
		"EG_OUTPUT=xml":        "environment EG_OUTPUT",
		"EG_TIMEOUT=soon":      "environment EG_TIMEOUT",
		"EG_READ_ONLY=perhaps": "environment EG_READ_ONLY",
		"EG_SEEDS=,":           "no seeds",
		"EG_CONTEXT=nope":      "nope",
	} {
		_, errs, err := run(t, &fakeClient{}, "", false, []string{env, "HOME=" + t.TempDir()}, "version")
		if err == nil || !strings.Contains(errs, says) {
			t.Errorf("%s: %v, %q", env, err, errs)
		}
	}
}

func TestNoHome(t *testing.T) {
	out, errs, err := run(t, &fakeClient{}, "", false, []string{"HOME=", "XDG_CONFIG_HOME="}, "version")
	if err != nil || out == "" {
		t.Errorf("%v %s", err, errs)
	}
}

func TestTimeoutMeansWhatTheCommandSays(t *testing.T) {
	s, _ := newTestSession(t)
	for name, want := range map[string]bool{"topic list": true, "consume": false, "bench produce": false, "cluster health": false, "version": true} {
		root, app := newTree(s, s.IO)
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := app.prepare(cmd); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := app.deadline(t.Context(), cmd)
		if _, has := ctx.Deadline(); has != want {
			t.Errorf("%s: has a deadline %v, want %v", name, has, want)
		}
		cancel()
	}
}
