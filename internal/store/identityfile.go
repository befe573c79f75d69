package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/pledge"
	"github.com/eastguard/eastguard/internal/vfs"
)

func (id *Identity) write(fsys vfs.FS, dataDir string) error {
	if err := vfs.WriteFileAtomic(fsys, filepath.Join(dataDir, identityName), id.encode(), 0o600); err != nil {
		return base.Wrap(base.CodeInternal, "write identity", err)
	}
	return nil
}

// The file is text, so that an operator can read it. Its last line is the CRC32C of the lines before.
const identityFormat = `eastguard identity %d
node %s
disk %s
meta %s
cluster %s
boot %d
`

// pledgeFormat follows when the node has pledged: the minter's node, disk and address, and the founders.
const pledgeFormat = `pledge %s %s %s
founders %s
`

func (id *Identity) encode() []byte {
	b := fmt.Appendf(nil, identityFormat, id.FormatVersion, id.Node, id.Disk, id.Meta, id.Cluster, id.Boot)
	if p := id.Pledge; !p.IsZero() {
		b = fmt.Appendf(b, pledgeFormat, p.Minter.Node, p.Minter.Disk, p.Minter.Addr, strings.Join(p.Founders, ","))
	}
	return vfs.AppendSum(b)
}

// parseIdentity accepts exactly what encode writes: every other byte is damage.
func parseIdentity(b []byte) (*Identity, error) {
	var version uint32
	n, _ := fmt.Sscanf(string(b), "eastguard identity %d\n", &version)
	if _, whole := vfs.CutSum(b); n == 1 && version > FormatVersion && whole {
		return nil, base.Errorf(base.CodeUnsupportedVersion, opIdentity, "format version %d; this broker knows %d", version, FormatVersion).
			WithHint("start the version of the broker that wrote it")
	}
	id := &Identity{}
	var node, disk, meta, cluster string
	_, err := fmt.Sscanf(string(b), identityFormat, &id.FormatVersion, &node, &disk, &meta, &cluster, &id.Boot)
	if err != nil { // its text is about formats, and for nobody who meets a damaged file
		return nil, base.Errorf(base.CodeCorruptData, opIdentity, "it is damaged, or no broker's identity")
	}
	id.Node = base.NodeID(node)
	for _, u := range []struct {
		to   *base.UUID
		text string
	}{{&id.Disk, disk}, {&id.Meta, meta}, {&id.Cluster, cluster}} {
		if *u.to, err = base.ParseUUID(u.text); err != nil {
			return nil, base.Errorf(base.CodeCorruptData, opIdentity, "it is damaged: %w", err)
		}
	}
	if i := bytes.Index(b, []byte("\npledge ")); i >= 0 {
		id.Pledge = parsePledge(string(b[i+1:])) // what it does not understand shows below
	}
	if !bytes.Equal(id.encode(), b) || id.Node.Check() != nil || id.Disk.IsZero() || id.Meta.IsZero() {
		return nil, base.Errorf(base.CodeCorruptData, opIdentity, "its checksum does not match")
	}
	return id, nil
}

// parsePledge reads what stands from the line of the pledge on.
func parsePledge(text string) pledge.Pledge {
	var p pledge.Pledge
	var node, disk, founders string
	if _, err := fmt.Sscanf(text, pledgeFormat, &node, &disk, &p.Minter.Addr, &founders); err != nil {
		return pledge.Pledge{}
	}
	id, err := base.ParseUUID(disk)
	if err != nil || base.NodeID(node).Check() != nil {
		return pledge.Pledge{}
	}
	p.Minter.Node, p.Minter.Disk, p.Founders = base.NodeID(node), id, strings.Split(founders, ",")
	return p
}
