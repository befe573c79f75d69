package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Every node keeps the root shard's list of nodes, on disk too: the ring is made of it, addresses are found in it, and
// when the root has no leader the newest copy among the peers judges who may start.

// nodeTable is that list. It does not change; the next one does.
type nodeTable struct {
	Cluster    base.ClusterID `cbor:"1,keyasint" json:"cluster"`
	Generation uint64         `cbor:"2,keyasint,omitempty" json:"generation,omitempty"` // of the root shard: its versions may go back when it is rebuilt
	Version    base.Version   `cbor:"3,keyasint" json:"version"`
	Nodes      []*meta.Node   `cbor:"4,keyasint" json:"nodes"` // by id
}

// tableVersion orders tables.
type tableVersion struct {
	Generation uint64       `cbor:"1,keyasint,omitempty"`
	Version    base.Version `cbor:"2,keyasint"`
}

func (t *nodeTable) at() tableVersion { return tableVersion{t.Generation, t.Version} }

func (v tableVersion) newerThan(o tableVersion) bool {
	return v.Generation > o.Generation || v.Generation == o.Generation && v.Version > o.Version
}

// node finds one; nil when it is not listed.
func (t *nodeTable) node(id base.NodeID) *meta.Node {
	i, ok := slices.BinarySearchFunc(t.Nodes, id, func(n *meta.Node, id base.NodeID) int { return strings.Compare(string(n.ID), string(id)) })
	if !ok {
		return nil
	}
	return t.Nodes[i]
}

// sound reports whether every node is there, once and in order: a table comes from other nodes, or from a file.
func (t *nodeTable) sound() bool {
	for i, n := range t.Nodes {
		if n == nil || i > 0 && t.Nodes[i-1].ID >= n.ID {
			return false
		}
	}
	return true
}

// nodeOfServer names the node whose meta directory a Raft server id is.
func (t *nodeTable) nodeOfServer(server base.UUID) (base.NodeID, bool) {
	for _, n := range t.Nodes {
		if n.Meta == server {
			return n.ID, true
		}
	}
	return "", false
}

// tableMessage tells a table, asks for a newer one, or both. It is its own answer.
type tableMessage struct {
	Have  tableVersion `cbor:"1,keyasint"`
	Table *nodeTable   `cbor:"2,keyasint,omitempty"`
}

const (
	tableFile = "nodes.json"
	pullEvery = 10 * time.Second // on average
	pullWait  = 2 * time.Second
)

// savedTable is the file: the table, and where members were last reached.
type savedTable struct {
	Table     *nodeTable             `json:"table"`
	Addresses map[base.NodeID]string `json:"addresses"`
}

func (s *Server) tablePath() string { return filepath.Join(s.cfg.MetaDir, tableFile) }

// loadTable reads the copy of an earlier start. One that cannot be read is as good as none: it is a copy.
func (s *Server) loadTable() error {
	b, err := vfs.ReadFile(s.deps.FS, s.tablePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var saved savedTable
	if err == nil {
		saved, err = parseTable(b)
	}
	if err != nil {
		s.deps.Logger.Warn("the copy of the node table cannot be read, and is made anew", "file", s.tablePath(), "error", err)
		return nil
	}
	s.members.restore(saved, s.id.Cluster)
	return nil
}

// parseTable reads what saveTable has written. A number with another digit may be of a newer table than any that there is.
func parseTable(b []byte) (saved savedTable, err error) {
	text, ok := vfs.CutSum(b)
	if !ok {
		text = b // of a version that wrote no sum; with a sum that does not match it is no JSON
	}
	err = json.Unmarshal(text, &saved)
	return saved, err
}

// saveTable writes the file anew. A failure is not one of the node: the next change tries again.
func (s *Server) saveTable() {
	b, err := json.MarshalIndent(s.members.saved(), "", "  ")
	if err == nil {
		err = vfs.WriteFileAtomic(s.deps.FS, s.tablePath(), vfs.AppendSum(append(b, '\n')), 0o600)
	}
	if err != nil {
		s.deps.Logger.Warn("the copy of the node table cannot be written", "file", s.tablePath(), "error", err)
	}
}

// readRoot takes the table from the root's replica here, if there is one.
func (s *Server) readRoot() {
	if !s.host.Hosts(base.RootShard) {
		return
	}
	t := &nodeTable{Generation: s.host.Generation(base.RootShard)}
	err := s.host.ViewStale(base.RootShard, func(st *meta.State) error {
		root := st.Root()
		t.Cluster, t.Version, t.Nodes = root.Cluster, root.Version, root.Nodes
		return nil
	})
	if err == nil && !t.Cluster.IsZero() {
		s.takeTable(t)
	}
}

// takeTable adopts a table that is newer than the one here.
func (s *Server) takeTable(t *nodeTable) {
	if t.Cluster == s.clusterID() && t.sound() && s.members.setTable(t) {
		s.members.wakeUp()
	}
}

// serveTable takes what a peer tells and answers with what is newer here.
func (s *Server) serveTable(_ context.Context, _ *peer.Request, m tableMessage) (tableMessage, error) {
	if m.Table != nil {
		s.takeTable(m.Table)
	}
	t := s.members.nodeTable()
	answer := tableMessage{Have: t.at()}
	if t.at().newerThan(m.Have) {
		answer.Table = t
	}
	return answer, nil
}

// pushTable tells everybody who is reachable. What is lost is pulled later.
func (s *Server) pushTable(t *nodeTable) {
	msg := wire.Encode(tableMessage{Have: t.at(), Table: t})
	for _, node := range s.reachablePeers() {
		if err := s.peers.Send(node, kindTable, msg); err != nil {
			s.deps.Logger.Debug("node table not told", "node", node, "error", err)
		}
	}
}

// pullTable asks one node for a newer table.
func (s *Server) pullTable(ctx context.Context, from base.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	answer, err := callPeer[tableMessage](ctx, s.peers, from, kindTable, tableMessage{Have: s.members.nodeTable().at()})
	if err == nil && answer.Table != nil {
		s.takeTable(answer.Table)
	}
	return err
}

// pullTables asks a random node now and then: pushes may be lost.
func (s *Server) pullTables(ctx context.Context) error {
	for {
		wait := pullEvery/2 + rand.N(pullEvery)
		from := base.NodeID("")
		select {
		case <-time.After(wait):
			if list := s.reachablePeers(); len(list) > 0 {
				from = list[rand.IntN(len(list))]
			}
		case from = <-s.members.pull: // it has said that it knows a newer one
		case <-ctx.Done():
			return nil
		}
		if from == "" {
			continue
		}
		if err := s.pullTable(ctx, from); err != nil {
			s.deps.Logger.Debug("node table not pulled", "node", from, "error", err)
		}
	}
}
