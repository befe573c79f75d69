package store

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/pledge"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A pledge is part of who the node is: it outlives starts and the choice of a cluster, and a damaged one is damage.
func TestPledgeIsKept(t *testing.T) {
	mem := vfs.NewMem()
	id, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{Node: "n2"})
	require.NoError(t, err)
	p := pledge.Pledge{Minter: pledge.Founder{Node: "n1", Disk: base.DiskID{9}, Addr: "[2001:db8::1]:2922"}, Founders: []string{"[2001:db8::1]:2922", "[2001:db8::2]:2922"}}
	require.NoError(t, id.SetPledge(mem, "data", p))
	require.NoError(t, id.SetCluster(mem, "data", base.ClusterID{7}))
	require.NoError(t, locks.Close())

	again, locks, err := OpenIdentity(mem.CrashClone(nil, 0), "data", "meta", IdentityRequest{})
	require.NoError(t, err)
	require.NoError(t, locks.Close())
	require.Equal(t, p, again.Pledge)
	require.Equal(t, base.ClusterID{7}, again.Cluster)

	text := again.encode()
	for _, part := range []string{"n1", "2001:db8::2", "founders"} {
		i := bytes.Index(text, []byte(part))
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		_, err := parseIdentity(damaged)
		require.ErrorIs(t, err, base.CodeCorruptData, part)
	}
}
