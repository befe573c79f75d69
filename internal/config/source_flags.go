package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// AddFlags defines one flag for each setting, and -c, --config.
func AddFlags(fs *pflag.FlagSet) {
	fs.StringP("config", "c", "", "YAML file of settings (default "+DefaultFile+", when it exists)")
	for _, s := range settings {
		f := fs.VarPF(&flagValue{setting: s}, s.Flag(), "", s.usage())
		if s.Kind == KindTriBool {
			f.NoOptDefVal = "true"
		}
	}
}

// usage is the help text of the flag, with the default where the help does not speak of it.
func (s Setting) usage() string {
	if s.Default == nil || Format(s.Default) == "" {
		return s.Help
	}
	return fmt.Sprintf("%s (default %s)", s.Help, Format(s.Default))
}

// hint points at the setting's help in one line.
func (s Setting) hint() string { return s.Key + ": " + s.Help }

// flagValue keeps the text of a flag. A list or mapping that is given several times grows; of others the last wins.
type flagValue struct {
	setting Setting
	raw     string
	value   any
	given   bool
}

func (f *flagValue) String() string { return f.raw }

// Type is what help shows after the flag's name.
func (f *flagValue) Type() string {
	if f.setting.Unit != "" {
		return f.setting.Unit
	}
	return f.setting.Kind.String()
}

func (f *flagValue) Set(raw string) error {
	if f.given && (f.setting.Kind == KindList || f.setting.Kind == KindMap) {
		raw = f.raw + "," + raw
	}
	v, err := f.setting.parse(raw)
	if err != nil {
		return err
	}
	f.raw, f.value, f.given = raw, v, true
	return nil
}

// flagLayer collects what was given on the command line.
func flagLayer(fs *pflag.FlagSet) layer {
	l := layer{values: map[string]any{}, from: map[string]string{}}
	for _, s := range settings {
		f := fs.Lookup(s.Flag())
		if v, ok := f.Value.(*flagValue); ok && v.given {
			l.values[s.Key], l.from[s.Key] = v.value, "flag --"+s.Flag()
		}
	}
	return l
}
