package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/sim/procs"
	"github.com/eastguard/eastguard/sdk"
)

// Losses are what costs a node its disk, or a part of it. They happen to the last node alone, whichever was chosen: the
// sealed copies of a node that lost its disk are not made anew, and those of two may be all.
func Losses() []Fault {
	return []Fault{
		{Name: "data_dir lost", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lost(func(n *procs.Node) error { return os.RemoveAll(filepath.Join(n.Dir, "data")) })
		}},
		{Name: "meta_dir lost", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lost(func(n *procs.Node) error { return os.RemoveAll(filepath.Join(n.Dir, "meta")) })
		}},
		{Name: "bits flipped in the log", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lost(func(n *procs.Node) error { return r.flip(n, filepath.Join("data", "wal"), ".wal") })
		}},
		{Name: "bits flipped in segments", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lost(func(n *procs.Node) error { return r.flip(n, filepath.Join("data", "topics"), ".log") })
		}},
		{Name: "bits flipped in the catalogue", All: true, Do: func(r *Run, _ *procs.Node) error {
			return r.lost(func(n *procs.Node) error { return r.flip(n, "data", "catalogue") })
		}},
	}
}

// lost kills the last node, does something to its directories and starts it again. Where the broker refuses to start
// it is done as its hint says: the directories are emptied, and the node is replaced.
func (r *Run) lost(damage func(n *procs.Node) error) error {
	n := r.Cluster.Nodes[len(r.Cluster.Nodes)-1]
	if err := n.Kill(); err != nil {
		return err
	}
	if err := damage(n); err != nil {
		return err
	}
	err := r.start(n)
	if err == nil {
		return nil
	}
	code, ended := n.Exited(patience)
	if ended != nil || code == 0 {
		return errors.Join(err, ended)
	}
	r.logf("%s refuses to start, and is replaced", n.Name)
	for _, dir := range []string{"data", "meta"} {
		if err := os.RemoveAll(filepath.Join(n.Dir, dir)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := r.client.Admin().ChangeNode(ctx, sdk.ChangeNode{Node: base.NodeID(n.Name), Change: sdk.ReplaceNode}); err != nil {
		return fmt.Errorf("replace %s: %w", n.Name, err)
	}
	return r.start(n)
}

// flip turns a bit over in a few places of a file of a node, which is chosen from those below a directory whose names end
// so. What nothing was written to yet stays as it is. Where there is no such file nothing happens.
func (r *Run) flip(n *procs.Node, dir, suffix string) error {
	var names []string
	err := filepath.WalkDir(filepath.Join(n.Dir, dir), func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		return err
	}
	name := names[r.rand.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	written := len(bytes.TrimRight(b, "\x00"))
	r.logf("%d bits of %d bytes of %s", flips, written, filepath.Base(name))
	for range min(flips, written) {
		b[r.rand.IntN(written)] ^= 1 << r.rand.IntN(8)
	}
	return os.WriteFile(name, b, 0o600)
}

const flips = 3
