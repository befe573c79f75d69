package gossip

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// life is one presence of a node in the membership. A later one always wins over an earlier one.
type life struct {
	Boot   uint64 `cbor:"1,keyasint"`
	Rename uint32 `cbor:"2,keyasint,omitempty"`
}

func (l life) compare(o life) int {
	return cmp.Or(cmp.Compare(l.Boot, o.Boot), cmp.Compare(l.Rename, o.Rename))
}

func (l life) name(id base.NodeID) string { return fmt.Sprintf("%s#%d.%d", id, l.Boot, l.Rename) }

// parseName is the inverse of life.name.
func parseName(name string) (base.NodeID, life, error) {
	id, rest, ok := strings.Cut(name, "#")
	boot, rename, ok2 := strings.Cut(rest, ".")
	b, err := strconv.ParseUint(boot, 10, 64)
	r, err2 := strconv.ParseUint(rename, 10, 32)
	l := life{b, uint32(r)}
	if !ok || !ok2 || err != nil || err2 != nil || base.NodeID(id).Check() != nil || l.name(base.NodeID(id)) != name {
		return "", life{}, base.Errorf(base.CodeInvalidArgument, "parse member name", "%q is not of the form node#boot.rename", name)
	}
	return base.NodeID(id), l, nil
}
