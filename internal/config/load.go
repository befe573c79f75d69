package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// MaxFileBytes is the largest configuration file that is read.
const MaxFileBytes = 1 << 20

// layer is what one source sets: typed values by key, and where each stands.
type layer struct {
	values map[string]any
	from   map[string]string
}

// Load reads the configuration from a command line (without the program's name), an environment (NAME=value)
// and the file that the command line names. readFile is os.ReadFile outside tests.
func Load(args, env []string, readFile func(string) ([]byte, error)) (Config, Sources, error) {
	flags := pflag.NewFlagSet("eastguard", pflag.ContinueOnError)
	flags.Usage = func() {}
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return Config{}, nil, usageError("eastguard --help lists the flags", "%s", err)
	}
	if flags.NArg() > 0 {
		return Config{}, nil, usageError("flags begin with --; eastguard --help lists them", "unexpected argument %q", flags.Arg(0))
	}
	return LoadFlags(flags, env, readFile)
}

// LoadFlags is [Load] for a command line that was parsed already, into flags defined by [AddFlags].
func LoadFlags(flags *pflag.FlagSet, env []string, readFile func(string) ([]byte, error)) (Config, Sources, error) {
	file, err := loadFile(flags, readFile)
	if err != nil {
		return Config{}, nil, err
	}
	environment, err := envLayer(env)
	if err != nil {
		return Config{}, nil, err
	}
	c, sources, err := merge(defaults(), file, environment, flagLayer(flags))
	if err != nil {
		return Config{}, nil, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, nil, err
	}
	return c, sources, nil
}

// Default is the configuration with nothing given.
func Default() Config {
	c, _, err := merge(defaults())
	if err != nil {
		panic(err) // the table and the struct disagree; every test meets it
	}
	return c
}

func loadFile(flags *pflag.FlagSet, readFile func(string) ([]byte, error)) (layer, error) {
	name, err := flags.GetString("config")
	if err != nil {
		return layer{}, err
	}
	chosen := name != ""
	if !chosen {
		name = DefaultFile
	}
	content, err := readFile(name)
	switch {
	case err != nil && !chosen && errors.Is(err, fs.ErrNotExist):
		return layer{}, nil
	case err != nil:
		return layer{}, usageError("check the path given with -c", "configuration file: %s", err)
	case len(content) > MaxFileBytes:
		return layer{}, usageError("check the path given with -c", "configuration file %s has %d bytes, at most %d are read", name, len(content), MaxFileBytes)
	}
	return fileLayer(name, content)
}

func defaults() layer {
	l := layer{values: map[string]any{}, from: map[string]string{}}
	for _, s := range settings {
		l.values[s.Key], l.from[s.Key] = s.Default, "default"
	}
	return l
}

// merge lays the layers over one another, the last on top, and fills the struct.
func merge(layers ...layer) (Config, Sources, error) {
	k := koanf.New(".")
	from := make(map[string]string, len(settings))
	for _, l := range layers {
		if err := k.Load(confmap.Provider(l.values, ""), nil); err != nil {
			return Config{}, nil, fmt.Errorf("merge settings: %w", err)
		}
		for key, at := range l.from {
			from[key] = at
		}
	}
	var c Config
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", Result: &c, ErrorUnused: true, ErrorUnset: true,
	}})
	if err != nil {
		return Config{}, nil, fmt.Errorf("fill the configuration: %w", err)
	}
	sources := make(Sources, 0, len(settings))
	for _, s := range settings {
		sources = append(sources, Source{Key: s.Key, Value: k.Get(s.Key), Source: from[s.Key]})
	}
	return c, sources, nil
}
