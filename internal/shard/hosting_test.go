package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/vfs"
)

// orderOf is the order that the leader of a shard would give.
func (p *plant) orderOf(shard base.ShardID, name base.NodeID, index uint64) hostMessage {
	return hostMessage{Cluster: cluster, Shards: p.shards, Shard: shard, Server: p.nodes[name].meta, Index: index}
}

func (p *plant) ask(from, to base.NodeID, kind peer.Kind, m any) error {
	_, err := p.nodes[from].peers.Call(p.within(5*time.Second), to, kind, encode(m))
	return err
}

func TestOrdersThatAreNotMeantForThisNodeAreRefused(t *testing.T) {
	inPlant(t, 2, 2, func(t *testing.T, p *plant) {
		order := p.orderOf(base.RootShard, "n2", 5)
		for _, c := range []struct {
			what   string
			change func(*hostMessage)
			code   base.Code
		}{
			{"another server", func(m *hostMessage) { m.Server = base.UUID{9} }, base.CodePreconditionFailed},
			{"another cluster", func(m *hostMessage) { m.Cluster = base.UUID{9} }, base.CodePreconditionFailed},
			{"another number of shards", func(m *hostMessage) { m.Shards = 4 }, base.CodePreconditionFailed},
		} {
			m := order
			c.change(&m)
			require.ErrorIs(t, p.ask("n1", "n2", kindHost, m), c.code, c.what)
			require.ErrorIs(t, p.ask("n1", "n2", kindDrop, m), c.code, c.what)
		}
		require.False(t, p.nodes["n2"].host.Hosts(base.RootShard))
		require.NoError(t, p.ask("n1", "n2", kindHost, order))
		require.NoError(t, p.ask("n1", "n2", kindHost, order), "again")
		require.True(t, p.nodes["n2"].host.Hosts(base.RootShard))
		// It is empty, and votes for nobody.
		envelope := envelope{From: p.nodes["n1"].meta, To: p.nodes["n2"].meta, Term: 99}
		require.ErrorIs(t, p.ask("n1", "n2", kindVote, voteMessage{Envelope: envelope, LastTerm: 9, LastIndex: 99, Forced: true}), base.CodePreconditionFailed)
		require.ErrorIs(t, p.ask("n1", "n2", kindPreVote, voteMessage{Envelope: envelope, LastTerm: 9, LastIndex: 99}), base.CodePreconditionFailed)
		envelope.To = base.UUID{9}
		require.ErrorIs(t, p.ask("n1", "n2", kindAppend, appendMessage{Envelope: envelope}), base.CodePreconditionFailed)
		envelope.Shard.Root = 1
		require.ErrorIs(t, p.ask("n1", "n2", kindAppend, appendMessage{Envelope: envelope}), base.CodeShardNotFound)
		require.ErrorIs(t, p.ask("n1", "n2", kindTimeoutNow, timeoutMessage{Envelope: envelope}), base.CodeShardNotFound)
	})
}

func TestAReplicaIsGivenUpAndComesBack(t *testing.T) {
	inPlant(t, 3, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		shard := base.ShardID{Root: 1}
		for i := range 60 {
			p.create(i)
		}
		p.converge()
		n3 := p.nodes["n3"]
		snapshotAll(t, n3.host)
		g, err := p.leader(shard).group(shard)
		require.NoError(t, err)
		removed := g.raft.RemoveServer(serverID(n3.meta), 0, 0)
		require.NoError(t, removed.Error())
		early := p.orderOf(shard, "n3", 1)
		require.ErrorIs(t, p.ask("n1", "n3", kindDrop, early), base.CodePreconditionFailed, "of a configuration before the one that gave it")
		drop := p.orderOf(shard, "n3", removed.Index())
		require.NoError(t, p.ask("n1", "n3", kindDrop, drop))
		require.NoError(t, p.ask("n1", "n3", kindDrop, drop), "again")

		require.False(t, n3.host.Hosts(shard))
		require.Len(t, n3.host.Status(), 1)
		require.ErrorIs(t, n3.host.ViewStale(shard, func(*meta.State) error { return nil }), base.CodeShardNotFound)
		_, err = n3.disk.Stat("meta/snapshots/1")
		require.Error(t, err)
		tail := n3.host.log.tail(shard)
		require.False(t, tail.holdsEntries())
		term, err := tail.GetUint64(keyTerm)
		require.NoError(t, err)
		require.NotZero(t, term, "what it promised is kept")

		// A late order to host it again is known as such, before and after a restart.
		late := p.orderOf(shard, "n3", removed.Index()-1)
		require.ErrorIs(t, p.ask("n1", "n3", kindHost, late), base.CodePreconditionFailed)
		p.kill("n3", nil)
		p.start("n3")
		p.eventually(5*time.Second, "n3 is back", func() bool { return p.ask("n1", "n3", kindWatch, watchMessage{}) == nil })
		require.False(t, n3.host.Hosts(shard))
		require.ErrorIs(t, p.ask("n1", "n3", kindHost, late), base.CodePreconditionFailed)

		p.create(100)
		p.seat(shard, "n3")
		p.converge()
		now, err := n3.host.log.tail(shard).GetUint64(keyTerm)
		require.NoError(t, err)
		require.GreaterOrEqual(t, now, term)
		p.kill("n3", nil)
		p.start("n3")
		p.converge()
	})
}

// TestAReplicaOfThePastStandsAside: its group has been rebuilt elsewhere after the loss of a quorum.
func TestAReplicaOfThePastStandsAside(t *testing.T) {
	inPlant(t, 3, 2, func(t *testing.T, p *plant) {
		p.seatAll()
		shard := base.ShardID{Root: 1}
		for i := range 60 {
			p.create(i)
		}
		p.converge()
		n3 := p.nodes["n3"]
		snapshotAll(t, n3.host)
		newer := envelope{Shard: shard, Generation: 3, From: p.nodes["n1"].meta, To: n3.meta, Term: 50}
		require.ErrorIs(t, p.ask("n1", "n3", kindAppend, appendMessage{Envelope: newer}), base.CodeShardNotFound)
		p.eventually(5*time.Second, "it stands aside", func() bool { return !n3.host.Hosts(shard) })
		p.eventually(5*time.Second, "log and snapshots are kept for people", func() bool {
			files, err := n3.disk.ReadDir("meta/quarantine/1-0")
			return err == nil && len(files) > 1
		})
		// It tells those of its own generation, and they stand aside too.
		p.eventually(20*time.Second, "the others have heard", func() bool {
			return !p.nodes["n1"].host.Hosts(shard)
		})
		// What is older than the news is refused, what is as new is taken.
		order := p.orderOf(shard, "n3", 9)
		order.Generation = 2
		require.ErrorIs(t, p.ask("n1", "n3", kindHost, order), base.CodeFenced)
		order.Generation = 3
		require.NoError(t, p.ask("n1", "n3", kindHost, order))
		require.EqualValues(t, 3, n3.host.Status()[1].Generation)
		p.kill("n3", nil)
		p.start("n3")
		require.EqualValues(t, 3, n3.host.Status()[1].Generation)
	})
}

// TestAnOrderSurvivesACrash: whatever is there after a crash during an order, the same order completes it.
func TestAnOrderSurvivesACrash(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		n2 := p.nodes["n2"]
		var clones []*vfs.Mem
		p.kill("n2", nil)
		p.change = func(o *Options) {
			o.FS = vfs.NewFault(o.FS, vfs.Rule{Ops: vfs.OpChanges, Before: func(vfs.Call) { clones = append(clones, n2.disk.Snapshot()) }})
		}
		p.start("n2")
		p.eventually(5*time.Second, "n2 is back", func() bool { return p.ask("n1", "n2", kindWatch, watchMessage{}) == nil })
		before := len(clones)
		order := p.orderOf(base.RootShard, "n2", 5)
		require.NoError(t, p.ask("n1", "n2", kindHost, order))
		order.Index = 6
		require.NoError(t, p.ask("n1", "n2", kindDrop, order))
		order.Index = 7
		require.NoError(t, p.ask("n1", "n2", kindHost, order))
		p.change = nil
		require.Greater(t, len(clones)-before, 5)
		for _, disk := range clones[before:] {
			p.kill("n2", nil)
			n2.disk = disk
			p.start("n2")
			p.eventually(5*time.Second, "n2 is back", func() bool { return p.ask("n1", "n2", kindHost, order) == nil })
			require.True(t, n2.host.Hosts(base.RootShard))
		}
	})
}

func TestAMetaDirectoryWithoutItsManifestIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	require.NoError(t, start(t, o).Close())
	require.NoError(t, fs.Remove("meta/groups.json"))
	_, err := tryStart(o)
	require.ErrorIs(t, err, base.CodeCorruptData)
}

// A manifest with another digit or letter may name a replica less, and a voter would have forgotten its vote.
func TestADamagedManifestIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	require.NoError(t, start(t, o).Close())
	whole, err := vfs.ReadFile(fs, "meta/groups.json")
	require.NoError(t, err)
	for i := range whole {
		bad := append([]byte{}, whole...)
		bad[i] ^= 1
		require.NoError(t, vfs.WriteFileAtomic(fs, "meta/groups.json", bad, 0o600))
		_, err := readManifest(fs, "meta")
		require.ErrorIs(t, err, base.CodeCorruptData, "%q", bad[max(0, i-10):min(len(bad), i+10)])
	}

	text, ok := vfs.CutSum(whole)
	require.True(t, ok)
	require.NoError(t, vfs.WriteFileAtomic(fs, "meta/groups.json", text, 0o600))
	h, err := tryStart(o)
	require.NoError(t, err, "one of a version that wrote no sum is taken")
	require.NoError(t, h.Close())
}

// TestABegunReplicaWhoseLogIsGoneIsRefused: it may have confirmed entries that nobody else has.
func TestABegunReplicaWhoseLogIsGoneIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	require.NoError(t, fs.MkdirAll(o.Dir, 0o700))
	h, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, h.Start(t.Context()))
	require.NoError(t, h.Adopt(cluster, 4))
	require.NoError(t, h.host(t.Context(), hosted{Shard: base.ShardID{Root: 2}, Index: 7}))
	require.NoError(t, h.Close())
	h, err = Open(o)
	require.NoError(t, err, "empty, as it was begun")
	require.Equal(t, 4, h.Shards())
	require.NoError(t, h.Close())
	require.NoError(t, fs.RemoveAll("meta/wal"))
	_, err = Open(o)
	require.ErrorIs(t, err, base.CodeCorruptData)
}

func TestAdoptionIsFinal(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	require.NoError(t, fs.MkdirAll(o.Dir, 0o700))
	h, err := Open(o)
	require.NoError(t, err)
	require.Zero(t, h.Shards())
	require.Error(t, h.Adopt(cluster, 3))
	require.NoError(t, h.Adopt(cluster, 8))
	require.NoError(t, h.Adopt(cluster, 8))
	require.ErrorIs(t, h.Adopt(base.UUID{5}, 8), base.CodePreconditionFailed)
	require.ErrorIs(t, h.Adopt(cluster, 16), base.CodePreconditionFailed)
	require.True(t, h.Bootstrapped())
	require.NoError(t, h.Close())
	h, err = Open(o)
	require.NoError(t, err)
	require.Equal(t, 8, h.Shards())
	require.Equal(t, cluster, h.Cluster())
	require.NoError(t, h.Close())
}

// TestAReplicaThatCouldNotBeginDoesLater: the order is durable when the disk refuses what follows; the next one goes on
// from there.
func TestAReplicaThatCouldNotBeginDoesLater(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.kill("n2", nil)
		p.change = func(o *Options) {
			o.FS = vfs.NewFault(o.FS, vfs.Rule{Ops: vfs.OpMkdir, Path: "meta/snapshots/0", Times: 1, Err: errors.New("no")})
		}
		h := p.start("n2")
		order := p.orderOf(base.RootShard, "n2", 5)
		p.eventually(5*time.Second, "n2 is back", func() bool { return p.ask("n1", "n2", kindWatch, watchMessage{}) == nil })
		require.ErrorIs(t, p.ask("n1", "n2", kindHost, order), base.CodeInternal)
		require.False(t, h.Hosts(base.RootShard))
		require.NoError(t, p.ask("n1", "n2", kindHost, order))
		require.True(t, h.Hosts(base.RootShard))
		p.seat(base.RootShard, "n2")
		p.create(1)
		p.converge()
	})
}
