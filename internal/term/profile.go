package term

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"github.com/eastguard/eastguard/internal/base"
)

// File is the client's configuration file: named contexts, and defaults for all of them.
type File struct {
	Current  string       `yaml:"current,omitempty"`
	Previous string       `yaml:"previous,omitempty"` // what --context - means
	Contexts []Context    `yaml:"contexts,omitempty"`
	Defaults FileDefaults `yaml:"defaults,omitempty"`
	REPL     FileREPL     `yaml:"repl,omitempty"`
}

// Context is one cluster as this user sees it.
type Context struct {
	Name      string   `yaml:"name" json:"name"`
	Seeds     []string `yaml:"seeds" json:"seeds"`
	Color     string   `yaml:"color,omitempty" json:"color,omitempty"`
	Protected bool     `yaml:"protected,omitempty" json:"protected"`
	ReadOnly  bool     `yaml:"read_only,omitempty" json:"read_only"`
}

// FileDefaults are the global flags that a file may set.
type FileDefaults struct {
	Output  string `yaml:"output,omitempty"`
	Time    string `yaml:"time,omitempty"`
	Bytes   string `yaml:"bytes,omitempty"`
	Timeout string `yaml:"timeout,omitempty"`
	Color   string `yaml:"color,omitempty"`
}

// FileREPL is how the prompt behaves. Absent means the built-in default.
type FileREPL struct {
	Hints      *bool  `yaml:"hints,omitempty"`
	TimingOver string `yaml:"timing_over,omitempty"`
	Vi         bool   `yaml:"vi,omitempty"`
}

// ConfigPath is where the file is looked for: $XDG_CONFIG_HOME/eastguard/cli.yaml, else ~/.config; empty when
// there is no home at all.
func ConfigPath(getenv func(string) string) string {
	return homePath(getenv, "XDG_CONFIG_HOME", ".config", "cli.yaml")
}

// StatePath is where name of the client's state lies: $XDG_STATE_HOME/eastguard, else ~/.local/state; empty when
// there is no home at all.
func StatePath(getenv func(string) string, name string) string {
	return homePath(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state"), name)
}

func homePath(getenv func(string) string, env, under, name string) string {
	dir := getenv(env)
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, under)
	}
	return filepath.Join(dir, "eastguard", name)
}

// LoadFile reads the file at path. A file that is not there is an empty one, unless the user named it.
func LoadFile(path string, named bool) (File, error) {
	if path == "" {
		return File{}, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return File{}, nil
	}
	if err != nil {
		return File{}, base.Errorf(base.CodeInvalidArgument, "read the configuration", "%w", err)
	}
	return parseFile(path, b)
}

func parseFile(path string, b []byte) (File, error) {
	var f File
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return File{}, base.Errorf(base.CodeInvalidArgument, "", "%s: %s", path, oneLine(err)).
			WithHint("mend the file, or name another with -c")
	}
	return f, f.check(path)
}

// oneLine strips yaml's heading and layout from its message.
func oneLine(err error) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:")
	return strings.Join(strings.Fields(msg), " ")
}

func (f File) check(path string) error {
	seen := map[string]bool{}
	for _, c := range f.Contexts {
		switch {
		case c.Name == "" || c.Name == "-":
			return base.Errorf(base.CodeInvalidArgument, "", "%s: a context needs a name other than %q", path, c.Name)
		case seen[c.Name]:
			return base.Errorf(base.CodeInvalidArgument, "", "%s: two contexts are named %q", path, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// Find looks a context up by name; "-" is the previous one.
func (f File) Find(name string) (Context, error) {
	if name == "-" {
		if name = f.Previous; name == "" {
			return Context{}, base.Errorf(base.CodeInvalidArgument, "", "there is no previous context")
		}
	}
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return Context{}, &NoContextError{Name: name, Known: f.names()}
	}
	return f.Contexts[i], nil
}

func (f File) names() []string {
	names := make([]string, len(f.Contexts))
	for i, c := range f.Contexts {
		names[i] = c.Name
	}
	return names
}

// NoContextError says that the file has no context of that name.
type NoContextError struct {
	Name  string
	Known []string
}

// Error names the context.
func (e *NoContextError) Error() string {
	return "context " + strconv.Quote(e.Name) + " is not in the configuration"
}

// Save writes the file with mode 0600 by a rename, so that a crash leaves the old or the new one.
func (f File) Save(path string) error {
	if path == "" {
		return base.Errorf(base.CodeInvalidArgument, "save the configuration", "there is no home directory").WithHint("name a file with -c")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return base.Errorf(base.CodeInternal, "save the configuration", "%w", err)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(f); err != nil {
		return base.Errorf(base.CodeInternal, "save the configuration", "%w", err)
	}
	if err := renameio.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return base.Errorf(base.CodeInternal, "save the configuration", "%w", err)
	}
	return nil
}
