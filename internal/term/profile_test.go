package term

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eastguard/eastguard/internal/base"
)

func TestFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eastguard", "cli.yaml")
	f := File{
		Current: "local", Contexts: []Context{{Name: "local", Seeds: []string{"127.0.0.1:2921"}}, {Name: "prod", Seeds: []string{"a:1", "b:2"}, Protected: true}},
		Defaults: FileDefaults{Output: "wide"},
	}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := LoadFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	f := File{Previous: "a", Contexts: []Context{{Name: "a"}, {Name: "b"}}}
	if c, err := f.Find("-"); err != nil || c.Name != "a" {
		t.Errorf("- is %q, %v", c.Name, err)
	}
	var missing *NoContextError
	if _, err := f.Find("c"); !errors.As(err, &missing) || len(missing.Known) != 2 {
		t.Errorf("err = %v", err)
	}
	if _, err := (File{}).Find("-"); err == nil {
		t.Error("no previous context, and no error")
	}
}

func TestLoadFileRefusesWhatItDoesNotKnow(t *testing.T) {
	tests := map[string]struct{ text, says string }{
		"unknown key": {"currnt: x\n", "currnt"},
		"not yaml":    {"a: [\n", "line"},
		"two alike":   {"contexts: [{name: a, seeds: [x]}, {name: a, seeds: [y]}]\n", `"a"`},
		"no name":     {"contexts: [{seeds: [x]}]\n", "needs a name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cli.yaml")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadFile(path, false)
			if !errors.Is(err, base.CodeInvalidArgument) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("err = %v, want one line with %q and the path", err, tt.says)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cli.yaml")
	if f, err := LoadFile(path, false); err != nil || f.Current != "" {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := LoadFile(path, true); err == nil {
		t.Error("a file the user named is not there, and no error")
	}
	if f, err := LoadFile("", false); err != nil || f.Current != "" {
		t.Errorf("no home: %v", err)
	}
}

func TestPaths(t *testing.T) {
	if got := ConfigPath(environ("HOME=/h")); got != "/h/.config/eastguard/cli.yaml" {
		t.Error(got)
	}
	if got := ConfigPath(environ("HOME=/h XDG_CONFIG_HOME=/x")); got != "/x/eastguard/cli.yaml" {
		t.Error(got)
	}
	if got := StatePath(environ("HOME=/h"), "history"); got != "/h/.local/state/eastguard/history" {
		t.Error(got)
	}
	if got := ConfigPath(environ("")); got != "" {
		t.Error(got)
	}
}
