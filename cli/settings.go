package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/term"
)

const defaultSeeds = "127.0.0.1:2921"

// formatDot is the output format of those commands that draw for Graphviz.
const formatDot = "dot"

// sourcePrompt is the source of what :set changed, or the flags of a batch's or prompt's own line.
const sourcePrompt = "prompt :set"

// setting is one row of the table of global settings: where its value may come from, highest first: flag,
// prompt (:set), environment, context, file, built-in.
type setting struct {
	key     string
	flag    string
	env     []string
	def     string
	context func(term.Context) string
	file    func(term.File) string
	help    string
}

// globalSettings is that table. Flags are registered in globals.go; this says what they mean when absent.
var globalSettings = []setting{
	{
		key: "seeds", flag: "seeds", env: []string{"EG_SEEDS"}, def: defaultSeeds,
		context: func(c term.Context) string { return strings.Join(c.Seeds, ",") },
		help:    "brokers to start from",
	},
	{
		key: "output", flag: "output", env: []string{"EG_OUTPUT"}, def: string(term.FormatTable),
		file: func(f term.File) string { return f.Defaults.Output }, help: "output format",
	},
	{
		key: "timeout", flag: "timeout", env: []string{"EG_TIMEOUT"}, def: "10s",
		file: func(f term.File) string { return f.Defaults.Timeout }, help: "deadline of a whole command",
	},
	{
		key: "color", flag: "color", def: string(term.ColorAuto),
		file: func(f term.File) string { return f.Defaults.Color }, help: "colour: auto, always, never (also NO_COLOR, CLICOLOR, CLICOLOR_FORCE)",
	},
	{key: "ascii", flag: "ascii", env: []string{"EG_ASCII"}, def: "false", help: "no glyphs outside ASCII"},
	{
		key: "time", flag: "time", def: string(term.TimeLocal),
		file: func(f term.File) string { return f.Defaults.Time }, help: "times for people: local, utc, rel, ms",
	},
	{
		key: "bytes", flag: "bytes", def: string(term.BytesIEC),
		file: func(f term.File) string { return f.Defaults.Bytes }, help: "sizes for people: iec, si, raw",
	},
	{key: "no_input", flag: "no-input", env: []string{"EG_PROMPT_DISABLED"}, def: "false", help: "never ask a question"},
	{
		key: "read_only", flag: "read-only", env: []string{"EG_READ_ONLY"}, def: "false",
		context: func(c term.Context) string { return boolText(c.ReadOnly) }, help: "refuse every change",
	},
	{
		key: "protected", def: "false",
		context: func(c term.Context) string { return boolText(c.Protected) }, help: "ask before small changes too",
	},
	{key: "pager", env: []string{"EG_PAGER", "PAGER"}, def: "", help: "program for output taller than the screen"},
}

// boolText is empty for false, so that a context's silence is not an opinion.
func boolText(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// sourced is a value and where it came from.
type sourced struct {
	Value  string
	Source string
}

// settings are all values that hold for one command line.
type settings struct {
	values     map[string]sourced
	configPath sourced
	context    sourced // name of the context in use, empty for none
	file       term.File

	seeds     []string
	format    term.Format
	dot       bool // -o dot, which few commands take
	timeout   time.Duration
	colorMode term.ColorMode
	timeMode  term.TimeMode
	bytesMode term.BytesMode
	ascii     bool
	noInput   bool
	readOnly  bool
	protected bool
	pager     string
}

// overrides are what the prompt changed for the rest of its session.
type overrides struct {
	values  map[string]string
	context *string
}

func (o *overrides) set(key, value string) {
	if o.values == nil {
		o.values = make(map[string]string)
	}
	o.values[key] = value
}

// resolve gathers the settings of one command line from every source.
func (s *Session) resolve(flags *pflag.FlagSet) (settings, error) {
	var r settings
	changed := func(name string) (string, bool) {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return flagText(f), true
	}
	if err := s.resolveFile(&r, changed); err != nil {
		return r, err
	}
	ctx, err := s.resolveContext(&r, changed)
	if err != nil {
		return r, err
	}
	r.values = make(map[string]sourced, len(globalSettings))
	for _, g := range globalSettings {
		r.values[g.key] = s.resolveOne(g, &r, ctx, changed)
	}
	return r, r.parse()
}

// flagText is the flag's value as the user would write it: a list without pflag's brackets.
func flagText(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return f.Value.String()
}

func (s *Session) resolveFile(r *settings, changed func(string) (string, bool)) (err error) {
	r.configPath = sourced{term.ConfigPath(s.Getenv), "default"}
	if v := s.Getenv("EG_CLI_CONFIG"); v != "" {
		r.configPath = sourced{v, "environment EG_CLI_CONFIG"}
	}
	if s.configFlag != "" {
		r.configPath = sourced{s.configFlag, "flag --config"}
	}
	if v, ok := changed("config"); ok {
		r.configPath = sourced{v, "flag --config"}
	}
	r.file, err = term.LoadFile(r.configPath.Value, r.configPath.Source != "default")
	return err
}

func (s *Session) resolveContext(r *settings, changed func(string) (string, bool)) (term.Context, error) {
	if r.file.Current != "" {
		r.context = sourced{r.file.Current, "file " + r.configPath.Value}
	}
	if v := s.Getenv("EG_CONTEXT"); v != "" {
		r.context = sourced{v, "environment EG_CONTEXT"}
	}
	if s.overrides.context != nil {
		r.context = sourced{*s.overrides.context, "prompt :use"}
	}
	if v, ok := changed("context"); ok {
		r.context = sourced{v, "flag --context"}
	}
	if r.context.Value == "" {
		return term.Context{}, nil
	}
	ctx, err := r.file.Find(r.context.Value)
	r.context.Value = ctx.Name
	return ctx, err
}

func (s *Session) resolveOne(g setting, r *settings, ctx term.Context, changed func(string) (string, bool)) sourced {
	if v, ok := changed(g.flag); ok {
		return sourced{v, "flag --" + g.flag}
	}
	if v, ok := s.overrides.values[g.key]; ok {
		return sourced{v, sourcePrompt}
	}
	for _, name := range g.env {
		if v := s.Getenv(name); v != "" {
			return sourced{v, "environment " + name}
		}
	}
	if g.context != nil {
		if v := g.context(ctx); v != "" {
			return sourced{v, "context " + ctx.Name}
		}
	}
	if g.file != nil {
		if v := g.file(r.file); v != "" {
			return sourced{v, "file " + r.configPath.Value}
		}
	}
	return sourced{g.def, "default"}
}

// parse turns the texts into types. A bad value is the fault of its source, so the message names it.
func (r *settings) parse() (err error) {
	check := func(key string, e error) {
		if e != nil && err == nil {
			err = usagef("%s (from %s)", e.Error(), r.values[key].Source)
		}
	}
	var e error
	r.seeds, e = parseSeeds(r.values["seeds"].Value)
	check("seeds", e)
	if r.dot = r.values["output"].Value == formatDot; r.dot {
		r.format = term.FormatTable
	} else {
		r.format, e = term.ParseFormat(r.values["output"].Value)
		check("output", e)
	}
	r.timeout, e = term.ParseDuration(r.values["timeout"].Value)
	check("timeout", e)
	r.colorMode, e = term.ParseColorMode(r.values["color"].Value)
	check("color", e)
	r.timeMode, e = term.ParseTimeMode(r.values["time"].Value)
	check("time", e)
	r.bytesMode, e = term.ParseBytesMode(r.values["bytes"].Value)
	check("bytes", e)
	for key, to := range map[string]*bool{"ascii": &r.ascii, "no_input": &r.noInput, "read_only": &r.readOnly, "protected": &r.protected} {
		*to, e = parseBool(key, r.values[key].Value)
		check(key, e)
	}
	r.pager = r.values["pager"].Value
	return err
}

// parseBool takes any non-empty text but a clear no for yes: EG_PROMPT_DISABLED=true and =1 and =y are meant.
func parseBool(key, s string) (bool, error) {
	if b, err := strconv.ParseBool(s); err == nil {
		return b, nil
	}
	switch strings.ToLower(s) {
	case "y", "yes", "on":
		return true, nil
	case "n", "no", "off":
		return false, nil
	}
	return false, usagef("%s %q is not true or false", key, s)
}

func parseSeeds(s string) ([]string, error) {
	seeds := slices.DeleteFunc(strings.Split(s, ","), func(p string) bool { return strings.TrimSpace(p) == "" })
	for i := range seeds {
		seeds[i] = strings.TrimSpace(seeds[i])
	}
	if len(seeds) == 0 {
		return nil, usagef("no seeds are given")
	}
	return seeds, nil
}
