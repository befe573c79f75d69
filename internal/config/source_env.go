package config

import (
	"net/netip"
	"strings"
)

// envLayer reads the settings' names from an environment of "NAME=value" strings. An empty value counts as not
// set, so that a wrapper may pass a name through without knowing whether it has a value.
func envLayer(env []string) (layer, error) {
	vars := make(map[string]string, len(env))
	for _, pair := range env {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			vars[name] = value
		}
	}
	l := layer{values: map[string]any{}, from: map[string]string{}}
	for _, s := range settings {
		for _, name := range s.Env() {
			raw, ok := vars[name]
			if !ok || foreign(name, raw) {
				continue
			}
			v, err := s.parse(raw)
			if err != nil {
				return l, usageError("mend or unset "+name+"; "+s.hint(), "environment: %s: %s", name, err)
			}
			l.values[s.Key], l.from[s.Key] = v, "env "+name
			break
		}
	}
	return l, nil
}

// UnknownEnv says which variables look like a mistyped setting's: a broker takes no notice of a variable that it does
// not know, and whoever set one waits for its effect. Only near misses count, since scripts use the prefix too.
func UnknownEnv(env []string) []string {
	known := map[string]bool{}
	for _, s := range settings {
		for _, name := range s.Env() {
			known[name] = true
		}
	}
	var warnings []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		typed, ours := strings.CutPrefix(name, "EASTGUARD_")
		if !ours || known[name] {
			continue
		}
		if key, ok := nearest(strings.ToLower(typed)); ok {
			warnings = append(warnings, "the environment's "+printable(name)+" is no setting and has no effect; did you mean EASTGUARD_"+strings.ToUpper(key)+"?")
		}
	}
	return warnings
}

// foreign tells a variable that is not meant for us: many shells export HOST as the machine's name, which is
// rarely an address to bind. So a bare HOST counts only when it is an IP address.
func foreign(name, raw string) bool {
	if name != "HOST" {
		return false
	}
	_, err := netip.ParseAddr(raw)
	return err != nil
}
