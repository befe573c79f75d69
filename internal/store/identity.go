package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/pledge"
	"github.com/eastguard/eastguard/internal/vfs"
)

// FormatVersion is the version of the layout of a data directory.
const FormatVersion = 1

// anew is the way out where what was lost or damaged cannot be brought back: one half of a node is worth nothing.
const anew = "; if it is lost for good, empty data_dir and meta_dir and start the node under a new node id, or under its old one after: " +
	"eg-cli node replace NODE"

// hintNoIdentity is for a node whose data_dir, or the file of its identity, is lost while something of it is left.
const hintNoIdentity = "restore the file from a backup" + anew

// Identity is who this node is and which disk it has. It is bound to the data directory: a copy, an older image or an
// empty disk is not the same node.
type Identity struct {
	Cluster       base.ClusterID // zero until SetCluster
	Node          base.NodeID
	Disk          base.DiskID
	Meta          base.UUID
	Boot          uint64 // starts of this node, this one included
	FormatVersion uint32
	Pledge        pledge.Pledge // to found a cluster with others; zero = none was made
}

// IdentityRequest is what the configuration wants the identity to be.
type IdentityRequest struct {
	Node base.NodeID // configured; empty = what the directory says, or a minted one
	Rand io.Reader   // nil = crypto/rand
}

const opIdentity = "open identity"

// OpenIdentity locks both directories and reads who this node is; in empty directories it mints that. The boot counter
// is raised, durably, before it returns. closer gives the locks back; it outlives the store. Directories that are
// somebody else's, in use or damaged are refused with one sentence and a hint.
func OpenIdentity(fsys vfs.FS, dataDir, metaDir string, want IdentityRequest) (*Identity, io.Closer, error) {
	o := opener{fs: fsys, dataDir: filepath.Clean(dataDir), metaDir: filepath.Clean(metaDir), want: want}
	if o.want.Rand == nil {
		o.want.Rand = rand.Reader
	}
	id, err := o.open()
	if err != nil {
		_ = o.locks.Close() // err says why; a lock that cannot be given back goes with the process
		return nil, nil, err
	}
	return id, &o.locks, nil
}

// opener is OpenIdentity under way.
type opener struct {
	fs               vfs.FS
	dataDir, metaDir string
	want             IdentityRequest
	locks            locks
}

// locks are the directories' locks; closing them twice is harmless.
type locks []io.Closer

func (l *locks) Close() error {
	var errs []error
	for _, c := range *l {
		errs = append(errs, c.Close())
	}
	*l = nil
	return errors.Join(errs...)
}

func (o *opener) open() (*Identity, error) {
	for _, dir := range []string{o.dataDir, o.metaDir} {
		if err := o.fs.MkdirAll(dir, 0o700); err != nil {
			return nil, base.Errorf(base.CodeInvalidArgument, opIdentity, "cannot make %s: %w", dir, err).WithHint("choose a directory that this user may write to, with data_dir and meta_dir")
		}
	}
	if err := o.lock(); err != nil {
		return nil, err
	}
	id, err := o.read()
	if err != nil {
		return nil, err
	}
	if id == nil {
		if id, err = o.mint(); err != nil {
			return nil, err
		}
	}
	if o.want.Node != "" && o.want.Node != id.Node {
		return nil, base.Errorf(base.CodePreconditionFailed, opIdentity, "%s belongs to node %s, the configuration says %s", o.dataDir, id.Node, o.want.Node).
			WithHint("set node_id to %s or remove it, or give the node its own data_dir and meta_dir", id.Node)
	}
	// Boot 0 means that the first start did not get to its end: nothing is in the directories yet but, perhaps, stamps.
	if err := o.stamps(id, id.Boot == 0); err != nil {
		return nil, err
	}
	if err := o.checkStarts(id); err != nil {
		return nil, err
	}
	id.Boot++
	if err := o.writeBoot(id, ""); err != nil {
		return nil, err
	}
	return id, nil
}

// writeBoot makes the number of this start durable. The meta directory counts first: so it is never behind, unless it is
// an older image.
func (o *opener) writeBoot(id *Identity, mark string) error {
	err := o.count(o.metaDir, func() error {
		return vfs.WriteFileAtomic(o.fs, o.starts(), fmt.Appendf(nil, "%d%s\n", id.Boot, mark), 0o600)
	})
	if err == nil {
		err = o.count(o.dataDir, func() error { return id.write(o.fs, o.dataDir) })
	}
	if err != nil {
		return base.Wrap(base.CodeInternal, opIdentity, err)
	}
	return nil
}

// count writes the number of this start to dir. A full disk has a little left for that; mostly it is one disk.
func (o *opener) count(dir string, write func() error) error {
	err := write()
	if isNoSpace(err) && (giveLast(o.fs, dir) || giveLast(o.fs, o.dataDir)) {
		err = write()
	}
	return err
}

func (o *opener) starts() string { return filepath.Join(o.metaDir, startsName) }

// checkStarts holds the starts that the meta directory has counted against those of the data directory, which has seen
// boot of them. They differ by one when a start ended between the two. Whatever else they say, one directory is an older
// image: metadata that has forgotten topics or segments would give their offsets away again.
func (o *opener) checkStarts(id *Identity) error {
	boot := id.Boot
	b, err := vfs.ReadFile(o.fs, o.starts())
	if errors.Is(err, fs.ErrNotExist) && boot == 0 {
		return nil
	}
	if err != nil {
		return base.Errorf(base.CodeCorruptData, opIdentity, "the starts of this node cannot be read: %w", err).
			WithHint("bring back the meta directory as it was" + anew)
	}
	text, raised := strings.CutSuffix(strings.TrimSuffix(string(b), "\n"), raisedMark)
	counted, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return base.Errorf(base.CodeCorruptData, opIdentity, "%s does not hold a number of starts", o.starts()).
			WithHint("bring back the meta directory as it was" + anew)
	case counted < boot:
		return o.older(o.metaDir, counted, o.dataDir, boot)
	case counted > boot && raised: // RaiseBoot came to half
		id.Boot = counted
	case counted > boot+1:
		return o.older(o.dataDir, boot, o.metaDir, counted)
	}
	return nil
}

func (o *opener) older(dir string, has uint64, other string, knows uint64) error {
	return base.Errorf(base.CodePreconditionFailed, opIdentity, "%s is an older image: it has seen %d starts of this node, %s has seen %d", dir, has, other, knows).
		WithHint("bring back %s as it was last"+anew, dir)
}

func (o *opener) lock() error {
	dirs := []string{o.dataDir}
	if o.metaDir != o.dataDir {
		dirs = append(dirs, o.metaDir)
	}
	for _, dir := range dirs {
		l, err := o.fs.Lock(filepath.Join(dir, lockName))
		if errors.Is(err, vfs.ErrLocked) {
			return base.Errorf(base.CodePreconditionFailed, opIdentity, "%s is in use by another broker", dir).
				WithHint("stop it, or give this one its own data_dir and meta_dir")
		}
		if err != nil {
			return base.Errorf(base.CodeInvalidArgument, opIdentity, "cannot lock %s: %w", dir, err).WithHint("choose a directory that this user may write to, with data_dir and meta_dir")
		}
		o.locks = append(o.locks, l)
	}
	return nil
}

// read returns the identity in the data directory, nil when the directory is empty.
func (o *opener) read() (*Identity, error) {
	name := filepath.Join(o.dataDir, identityName)
	b, err := vfs.ReadFile(o.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, o.mustBeEmpty()
	}
	if err != nil {
		return nil, base.Wrap(base.CodeInternal, opIdentity, err)
	}
	id, err := parseIdentity(b)
	if err != nil {
		return nil, base.Errorf(base.CodeOf(err), opIdentity, "%s: %w", name, err).
			WithHint(hintNoIdentity)
	}
	return id, nil
}

// mustBeEmpty refuses directories that hold something, but no identity.
func (o *opener) mustBeEmpty() error {
	for _, dir := range []string{o.dataDir, o.metaDir} {
		entries, err := o.fs.ReadDir(dir)
		if err != nil {
			return base.Wrap(base.CodeInternal, opIdentity, err)
		}
		strange := ""
		for _, e := range entries {
			switch name := filepath.Join(dir, e.Name); {
			case e.Name == lockName, e.Name == "lost+found", e.Name == startsName+tmpSuffix, e.Name == identityName+tmpSuffix, o.holds(name):
			case e.Name == catalogueName, e.Name == walName, e.Name == topicsName, e.Name == stampName:
				return base.Errorf(base.CodeCorruptData, opIdentity, "%s holds a node's data, but %s is missing", dir, filepath.Join(o.dataDir, identityName)).
					WithHint(hintNoIdentity)
			case strange == "":
				strange = e.Name
			}
		}
		if strange != "" {
			return base.Errorf(base.CodePreconditionFailed, opIdentity, "%s is not empty and not a broker's: it holds %s", dir, strange).
				WithHint("choose an empty directory, with data_dir and meta_dir")
		}
	}
	return nil
}

// holds reports whether one of the two directories is at or below name: they may be nested.
func (o *opener) holds(name string) bool {
	for _, dir := range []string{o.dataDir, o.metaDir} {
		if dir == name || strings.HasPrefix(dir, name+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// mint makes a new identity, with boot 0, and writes it before anything else.
func (o *opener) mint() (*Identity, error) {
	id := &Identity{Node: o.want.Node, FormatVersion: FormatVersion}
	if id.Node == "" {
		var b [4]byte
		if _, err := io.ReadFull(o.want.Rand, b[:]); err != nil {
			return nil, base.Wrap(base.CodeInternal, opIdentity, err)
		}
		id.Node = base.NodeID("n-" + hex.EncodeToString(b[:]))
	}
	if err := id.Node.Check(); err != nil {
		return nil, err
	}
	for _, u := range []*base.UUID{&id.Disk, &id.Meta} {
		var err error
		if *u, err = base.NewUUID(o.want.Rand); err != nil {
			return nil, base.Wrap(base.CodeInternal, opIdentity, err)
		}
	}
	return id, id.write(o.fs, o.dataDir)
}

// stamps writes or checks whose each directory is. One that has lost its stamp is a lost disk, not an empty one.
func (o *opener) stamps(id *Identity, fresh bool) error {
	for _, st := range []struct {
		dir  string
		uuid base.UUID
	}{
		{filepath.Join(o.dataDir, walName), id.Disk},
		{filepath.Join(o.dataDir, topicsName), id.Disk},
		{o.metaDir, id.Meta},
	} {
		if err := o.stamp(st.dir, st.uuid, fresh); err != nil {
			return err
		}
	}
	return nil
}

func (o *opener) stamp(dir string, uuid base.UUID, fresh bool) error {
	name := filepath.Join(dir, stampName)
	want := []byte(uuid.String() + "\n")
	got, err := vfs.ReadFile(o.fs, name)
	switch {
	case err == nil && bytes.Equal(got, want):
		return nil
	case err == nil:
		return base.Errorf(base.CodePreconditionFailed, opIdentity, "%s belongs to another disk: %s says %q, this node's is %s", dir, name, strings.TrimSpace(string(got)), uuid).
			WithHint("mount the disk that belongs to this node" + anew)
	case !errors.Is(err, fs.ErrNotExist):
		return base.Wrap(base.CodeInternal, opIdentity, err)
	case !fresh:
		return base.Errorf(base.CodeCorruptData, opIdentity, "%s has lost its contents: %s is missing", dir, name).
			WithHint("mount the disk that belongs to this node" + anew)
	}
	if err := o.fs.MkdirAll(dir, 0o700); err != nil {
		return base.Wrap(base.CodeInternal, opIdentity, err)
	}
	if err := vfs.WriteFileAtomic(o.fs, name, want, 0o600); err != nil {
		return base.Wrap(base.CodeInternal, opIdentity, err)
	}
	return nil
}

// SetCluster notes, durably, which cluster the node belongs to; once only.
func (id *Identity) SetCluster(fsys vfs.FS, dataDir string, cluster base.ClusterID) error {
	if !id.Cluster.IsZero() && id.Cluster != cluster {
		return base.Errorf(base.CodePreconditionFailed, "join cluster", "node %s belongs to cluster %s, not to %s", id.Node, id.Cluster, cluster).
			WithHint("give the node empty directories to join another cluster")
	}
	if id.Cluster == cluster {
		return nil
	}
	next := *id
	next.Cluster = cluster
	if err := next.write(fsys, dataDir); err != nil {
		return err
	}
	id.Cluster = cluster // and nothing else: the rest is read meanwhile
	return nil
}

// SetPledge notes, durably, whom the node has pledged to.
func (id *Identity) SetPledge(fsys vfs.FS, dataDir string, p pledge.Pledge) error {
	next := *id
	next.Pledge = p
	if err := next.write(fsys, dataDir); err != nil {
		return err
	}
	id.Pledge = p
	return nil
}

// RaiseBoot lets a node whose disk was replaced go on counting its starts where those of the old disk ended.
func (id *Identity) RaiseBoot(fsys vfs.FS, dataDir, metaDir string, boot uint64) error {
	next := *id
	next.Boot = boot
	o := opener{fs: fsys, dataDir: filepath.Clean(dataDir), metaDir: filepath.Clean(metaDir)}
	if err := o.writeBoot(&next, raisedMark); err != nil {
		return err
	}
	id.Boot = boot
	return nil
}

// raisedMark follows the number in the starts file after RaiseBoot, until the next start: the number has jumped.
const raisedMark = " raised"
