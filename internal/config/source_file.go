package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/eastguard/eastguard/internal/base"
)

// DefaultFile is read when no -c is given; it need not exist.
const DefaultFile = "./eastguard.yaml"

// fileLayer reads a YAML file of settings. Unknown and repeated keys are errors: a mistyped key that silently
// left the default in force would be found much later, in production.
func fileLayer(name string, content []byte) (layer, error) {
	l := layer{values: map[string]any{}, from: map[string]string{}}
	root, err := yamlRoot(name, content)
	if root == nil || err != nil {
		return l, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], deref(root.Content[i+1])
		at := fmt.Sprintf("%s:%d", name, key.Line)
		s, ok := find(key.Value)
		if !ok {
			return l, unknownKey(at, key.Value)
		}
		if first, twice := l.from[s.Key]; twice {
			return l, usageError("remove one of the two", "%s: %s is set already at %s", at, s.Key, first)
		}
		v, set, err := s.fromYAML(value)
		if err != nil {
			return l, usageError(s.hint(), "%s: %s: %s", at, s.Key, err)
		}
		if set {
			l.values[s.Key], l.from[s.Key] = v, at
		}
	}
	return l, nil
}

// yamlRoot returns the file's one mapping, nil when the file is empty.
func yamlRoot(name string, content []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, yamlError(name, err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, yamlError(name, err)
	default:
		return nil, usageError("keep one document in the file", "%s:%d: a second YAML document begins here", name, second.Line)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := deref(doc.Content[0])
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, usageError("write one setting a line, such as client_port: 2921", "%s:%d: expected settings of the form key: value", name, root.Line)
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// yamlError turns the library's "yaml: line 3: text" into "file:3: text".
func yamlError(name string, err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return usageError("mend the YAML there", "%s:%s: %s", name, m[1], text[len(m[0]):])
	}
	return usageError("mend the YAML", "%s: %s", name, text)
}

func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// fromYAML reads a value node. A null counts as not set.
func (s Setting) fromYAML(n *yaml.Node) (value any, set bool, err error) {
	if n.Kind == yaml.ScalarNode {
		if n.Tag == "!!null" {
			return nil, false, nil
		}
		value, err = s.parse(n.Value)
		return value, true, err
	}
	switch {
	case s.Kind == KindList && n.Kind == yaml.SequenceNode:
		value, err = yamlList(n)
	case s.Kind == KindMap && n.Kind == yaml.MappingNode:
		value, err = yamlMap(n)
	default:
		err = fmt.Errorf("is not of type %s", s.Kind)
	}
	return value, true, err
}

func yamlList(n *yaml.Node) ([]string, error) {
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		item = deref(item)
		if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
			return nil, fmt.Errorf("line %d is not one plain value", item.Line)
		}
		list = append(list, item.Value)
	}
	return list, nil
}

func yamlMap(n *yaml.Node) (map[string]string, error) {
	m := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := deref(n.Content[i]), deref(n.Content[i+1])
		if k.Kind != yaml.ScalarNode || v.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d is not of the form name: value", k.Line)
		}
		if _, twice := m[k.Value]; twice {
			return nil, fmt.Errorf("%q is given twice, again at line %d", k.Value, k.Line)
		}
		m[k.Value] = v.Value
	}
	return m, nil
}

func unknownKey(at, key string) error {
	if s, ok := nearest(key); ok {
		return usageError("did you mean "+s+"?", "%s: unknown setting %q", at, key)
	}
	return usageError("eastguard --help lists the settings", "%s: unknown setting %q", at, key)
}

// usageError is a one-line error with the next step.
func usageError(hint, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidArgument, "", format, args...).WithHint("%s", hint)
}
