package shard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// manifest says which cluster a meta directory belongs to and which groups it has a replica of. It is written before a
// group is begun and after one is given up, so that a group runs only where the manifest says so.
type manifest struct {
	Cluster base.ClusterID `json:"cluster"`
	Shards  int            `json:"shards"` // of the cluster
	Done    bool           `json:"done"`   // false: a bootstrap that has not come to its end
	Hosted  []hosted       `json:"hosted"`
	Stubs   []hosted       `json:"stubs,omitempty"` // groups that were here once; their term and vote are in the log
}

// hosted is one group of the manifest.
type hosted struct {
	Shard      base.ShardID `json:"shard"`
	Generation uint64       `json:"generation,omitempty"` // raised when a group is rebuilt after the loss of its quorum
	// Index is that of the configuration which gave this node its replica, or took it; 0 for a founder. An order of an
	// older configuration is a late one.
	Index uint64 `json:"configuration_index,omitempty"`
}

const manifestName = "groups.json"

func readManifest(fsys vfs.FS, dir string) (manifest, error) {
	const op = "open shards"
	var m manifest
	name := filepath.Join(dir, manifestName)
	b, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, base.Wrap(base.CodeInternal, op, err)
	}
	text, ok := vfs.CutSum(b)
	if !ok {
		text = b // of a version that wrote no sum; with a sum that does not match it is no JSON
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Cluster.IsZero() || !validShards(m.Shards) {
		return m, base.Errorf(base.CodeCorruptData, op, "%s is damaged", name).WithHint("restore the meta directory, or give the node up for a new one")
	}
	if m.Hosted == nil { // of a version whose clusters had one node
		m.hostAll()
	}
	return m, nil
}

func validShards(n int) bool { return n >= 1 && n <= MaxShards && n&(n-1) == 0 }

// hostAll makes a founder: it has a replica of every group.
func (m *manifest) hostAll() {
	for i := range m.Shards {
		m.Hosted = append(m.Hosted, hosted{Shard: base.ShardID{Root: uint16(i)}})
	}
}

func (m manifest) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fsys, filepath.Join(dir, manifestName), vfs.AppendSum(append(b, '\n')), 0o600)
}

// find is the entry of a shard, hosted or a stub.
func find(list []hosted, shard base.ShardID) (hosted, bool) {
	if i := slices.IndexFunc(list, func(h hosted) bool { return h.Shard == shard }); i >= 0 {
		return list[i], true
	}
	return hosted{}, false
}

// with is the list with one shard's entry put in or replaced, without is the list with none of it. Both are copies.
func with(list []hosted, one hosted) []hosted {
	list = append(without(list, one.Shard), one)
	slices.SortFunc(list, func(a, b hosted) int { return a.Shard.Compare(b.Shard) })
	return list
}

func without(list []hosted, shard base.ShardID) []hosted {
	return slices.DeleteFunc(append([]hosted{}, list...), func(h hosted) bool { return h.Shard == shard })
}
