package store

import (
	"bytes"
	"errors"
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

// The starts of a node may jump ahead, once it has learnt where the node's former disk ended; whatever became of that,
// the next start goes on from there.
func TestRaiseBoot(t *testing.T) {
	for nth := 1; ; nth++ {
		mem := vfs.NewMem()
		id, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{Node: "n2"})
		require.NoError(t, err)
		fault := vfs.NewFault(mem, vfs.Rule{Ops: vfs.OpChanges, Nth: nth, Err: errors.New("power")})
		raised := id.RaiseBoot(fault, "data", "meta", 7)
		require.NoError(t, locks.Close())
		again, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
		require.NoError(t, err, "after change %d", nth)
		require.NoError(t, locks.Close())
		if raised == nil {
			require.Equal(t, uint64(8), again.Boot)
			require.Greater(t, nth, 4)
			return
		}
		require.Contains(t, []uint64{2, 8}, again.Boot)
		third, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
		require.NoError(t, err)
		require.NoError(t, locks.Close())
		require.Equal(t, again.Boot+1, third.Boot)
	}
}
