package store

import (
	"strings"

	"github.com/eastguard/eastguard/sdk"
)

// What is remembered is bounded: so many names, after which they are learned anew, and none that is longer than any name of
// a topic or a node.
const (
	maxNames = 1 << 15
	maxName  = 256
)

// names has one copy of each name and word that stands in many rows. A message brings its own, which may be a part of a
// longer text: a row that took it would keep all of that.
type names map[string]string

// of is the copy of a name.
func (n names) of(name string) string {
	if name == "" {
		return ""
	}
	if known, ok := n[name]; ok {
		return known
	}
	name = strings.Clone(name)
	if len(name) > maxName {
		return name
	}
	if len(n) >= maxNames {
		clear(n)
	}
	n[name] = name
	return name
}

func (n names) node(id sdk.NodeID) sdk.NodeID { return sdk.NodeID(n.of(string(id))) }

func (n names) key(k RangeKey) RangeKey { return RangeKey{Topic: n.of(k.Topic), Range: k.Range} }
