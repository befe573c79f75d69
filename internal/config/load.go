package config

// Load is filled in next.
func Load(args, env []string, readFile func(string) ([]byte, error)) (Config, Sources, error) {
	return Config{}, nil, nil
}
// Default is the configuration with nothing given.
func Default() Config { return Config{} }
// Sources says for each key where its value came from.
type Sources []Source
// Source is one row.
type Source struct{ Key, Value, Source string }
