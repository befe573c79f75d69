package store

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

// overwrite replaces a file's contents, in place.
func overwrite(t testing.TB, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(int64(len(b))))
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

// damaged runs fn on the disk with each single bit of the file flipped, and with each truncation of it.
func damaged(t *testing.T, disk *vfs.Mem, name string, fn func(t *testing.T, disk *vfs.Mem, what string)) {
	b, err := vfs.ReadFile(disk, name)
	require.NoError(t, err)
	for bit := 0; bit < len(b)*8; bit += thin {
		c := bytes.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		d := disk.Snapshot()
		overwrite(t, d, name, c)
		fn(t, d, "flip of bit "+itoa(bit))
	}
	for n := 0; n < len(b); n += thin {
		d := disk.Snapshot()
		overwrite(t, d, name, b[:n])
		fn(t, d, "truncation to "+itoa(n))
	}
}

func itoa(n int) string { return base.RangeID(n).String() }

// tiny keeps the log small, so that a copy of the disk is cheap.
func tiny() Options {
	o := small()
	o.WAL = wal.Options{FileBytes: 16 << 10, Spare: 1}
	return o
}

// sample is a disk with one sealed and one active segment, all in files, and what a reader of it gets.
func sample(t *testing.T) (*vfs.Mem, []byte) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	n.openSegment(specOf(1, 0, 0))
	want := n.put(1, 2, 5)
	b := makeBatch(1, 0, 2, 1, 4, 9, 0)
	require.NoError(t, n.appendWait(1, b))
	want = append(want, b.Bytes...)
	wait(t, func(done func(error)) error { return n.Seal(1, 3, base.CauseAge, done) })
	st, err := n.RangeState(1)
	require.NoError(t, err)
	next := specOf(2, 1, 3)
	next.State = st.Encode()
	n.openSegment(next)
	want = append(want, n.put(2, 1, 3)...)
	n.stop()
	return mem, want
}

const samplePath = "data/topics/0a010000-0000-0000-0000-000000000000/1/"

func TestEveryFlipOfTheIdentityIsRefused(t *testing.T) {
	mem, _ := sample(t)
	for _, name := range []string{"data/identity", "data/topics/uuid", "data/wal/uuid", "meta/uuid"} {
		damaged(t, mem, name, func(t *testing.T, d *vfs.Mem, what string) {
			_, _, err := OpenIdentity(d, "data", "meta", IdentityRequest{})
			var e *base.Error
			require.ErrorAs(t, err, &e, "%s: %s", name, what)
			require.NotContains(t, e.Error(), "\n")
			namesTheWayOut(t, err)
		})
	}
}

func TestEveryFlipOfTheCatalogueIsRefused(t *testing.T) {
	mem, _ := sample(t)
	damaged(t, mem, "data/catalogue", func(t *testing.T, d *vfs.Mem, what string) {
		n := &node{t: t, fs: d, o: tiny(), fatal: make(chan error, 1)}
		err := n.start()
		n.stop()
		require.ErrorIs(t, err, base.CodeCorruptData, what)
		namesTheWayOut(t, err)
	})
}

// namesTheWayOut looks at the refusal of a start whose directories are damaged, lost in part or of two times: whoever
// cannot bring back what is missing must read how the node gets its place again.
func namesTheWayOut(t *testing.T, err error) {
	t.Helper()
	var e *base.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.HintText(), "empty data_dir and meta_dir")
	require.Contains(t, e.HintText(), "eg-cli node replace NODE")
}

// A log and a catalogue are of one moment: without the log that the catalogue counts on, or without the catalogue that
// made the log shorter, nobody knows what there was.
func TestALogThatDoesNotFitTheCatalogueIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, small())
	n.openSegment(specOf(1, 0, 0))
	for range 60 { // more than two files of the log
		n.put(1, 1, 10_000)
	}
	require.NoError(t, n.checkpoint())
	n.stop()
	for name, lose := range map[string]func(disk *vfs.Mem) error{
		"the log ends at": func(disk *vfs.Mem) error {
			return errors.Join(disk.RemoveAll("data/wal"), stampOf(t, mem, disk, "data/wal"))
		},
		"there is no catalogue": func(disk *vfs.Mem) error { return disk.Remove("data/catalogue") },
	} {
		t.Run(name, func(t *testing.T) {
			disk := mem.Snapshot()
			require.NoError(t, lose(disk))
			n := &node{t: t, fs: disk, o: small(), fatal: make(chan error, 1)}
			err := n.start()
			n.stop()
			require.ErrorIs(t, err, base.CodeCorruptData)
			require.ErrorContains(t, err, name)
			namesTheWayOut(t, err)
		})
	}
}

// stampOf puts back the stamp of a directory that was removed.
func stampOf(t *testing.T, from, to *vfs.Mem, dir string) error {
	t.Helper()
	stamp, err := vfs.ReadFile(from, dir+"/uuid")
	require.NoError(t, err)
	require.NoError(t, to.MkdirAll(dir, 0o700))
	return vfs.WriteFileAtomic(to, dir+"/uuid", stamp, 0o600)
}

// TestEveryFlipOfSegmentFilesIsDetectedOrHarmless reads what a consumer reads after any bit of a segment's files, or of
// the state beside them, has changed: the right bytes or an error, never wrong bytes.
func TestEveryFlipOfSegmentFilesIsDetectedOrHarmless(t *testing.T) {
	mem, want := sample(t)
	for _, name := range []string{"1-0.log", "1-0.idx", "1-0.tdx", "1-0.state", "2-3.log", "2-3.idx", "2-3.tdx", "2-3.state"} {
		damaged(t, mem, samplePath+name, func(t *testing.T, d *vfs.Mem, what string) {
			n := &node{t: t, fs: d, o: tiny(), fatal: make(chan error, 1)}
			require.NoError(t, n.start(), "%s: %s", name, what)
			defer n.stop()
			got, _, err := n.read(refOf(1), 0, 1<<20)
			require.True(t, bytes.HasPrefix(want, got), "%s: %s", name, what)
			if strings.HasSuffix(name, ".log") {
				require.Error(t, err, "%s: %s", name, what)
				require.ErrorIs(t, err, base.CodeCorruptData)
			} else {
				require.NoError(t, err, "%s: %s", name, what)
				require.Equal(t, want, got)
			}
			for _, seg := range []base.SegmentID{1, 2} {
				st, err := n.RangeState(seg)
				if err != nil {
					require.ErrorIs(t, err, base.CodeCorruptData)
				} else if _, next, known := st.Producer(9); known {
					require.Equal(t, int32(1), next)
				} else {
					require.True(t, st.ForgotAny(), "a lost memory does not pass for none")
				}
			}
		})
	}
}

func TestRotIsReportedAndTheRestGoesOn(t *testing.T) {
	mem := vfs.NewMem()
	o := tiny()
	o.WALBytes = 64 << 20
	n := start(t, mem, o)
	n.openSegment(specOf(1, 0, 0))
	var want []byte
	for range 30 {
		want = append(want, n.put(1, 1, 10_000)...)
	}
	n.stop()
	b, err := vfs.ReadFile(mem, samplePath+"1-0.log")
	require.NoError(t, err)
	b[70_000] ^= 4
	overwrite(t, mem, samplePath+"1-0.log", b)
	var damage []Event
	n.o.OnEvent = func(e Event) {
		if e.Kind == EventDamage {
			damage = append(damage, e)
		}
	}
	require.NoError(t, n.start())
	got, off, err := n.read(refOf(1), 0, 10_000)
	require.ErrorIs(t, err, base.CodeCorruptData)
	require.True(t, bytes.HasPrefix(want, got))
	require.NotZero(t, off)
	require.Len(t, damage, 1)
	i, _ := n.Info(1)
	require.True(t, i.Damaged)
	rest, _, err := n.read(refOf(1), 20, 10_000)
	require.NoError(t, err, "other blocks are read on")
	require.True(t, bytes.HasSuffix(want, rest))
	var a FenceAnswer
	wait(t, func(done func(error)) error {
		return n.Fence(refOf(1), 0, 1, func(x FenceAnswer, err error) { a = x; done(err) })
	})
	require.Equal(t, FenceDamaged, a.Kind)
	require.LessOrEqual(t, a.DamagedAbove, off)
}

func TestALostFileIsDamageAndWhatFollowsIsSalvaged(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	n.openSegment(specOf(1, 0, 0))
	n.put(1, 1, 3000)
	require.NoError(t, n.checkpoint())
	b := makeBatch(1, 0, 1, 1, 100, -1, 0)
	require.NoError(t, n.appendWait(1, b))
	killed := mem.Snapshot()
	require.NoError(t, killed.Remove(samplePath+"1-0.log"))
	n2 := start(t, killed, tiny())
	require.Equal(t, []base.SegmentID{1}, n2.Recovery().Damaged)
	_, err := n2.Read(refOf(1), 0, 100, nil)
	require.ErrorIs(t, err, base.CodeCorruptData)
	salvaged, err := vfs.ReadFile(killed, "data/quarantine/2/1-0.salvaged")
	require.NoError(t, err)
	require.Equal(t, b.Bytes, salvaged)
	var a FenceAnswer
	fence := func() FenceAnswer {
		wait(t, func(done func(error)) error {
			return n2.Fence(refOf(1), 0, 1, func(x FenceAnswer, err error) { a = x; done(err) })
		})
		return a
	}
	require.Equal(t, FenceDamaged, fence().Kind)
	require.EqualValues(t, 1, n2.Stats().QuarantinedFiles)
	n2.restart()
	require.Equal(t, FenceDamaged, fence().Kind, "damage is remembered")
	require.EqualValues(t, 1, n2.Stats().QuarantinedFiles, "it is there still")
	require.NoError(t, killed.Remove("data/quarantine/2/1-0.salvaged"))
	n2.restart()
	require.Zero(t, n2.Stats().QuarantinedFiles, "somebody has taken it away")
}

// A file that is to be written on is damaged so that its index does not hide it: what the log has for it cannot be put
// there, and that is no reason not to start.
func TestWhatFollowsDamageInAnActiveFileIsSalvaged(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	n.openSegment(specOf(1, 0, 0))
	n.put(1, 1, 3000)
	require.NoError(t, n.checkpoint())
	b := makeBatch(1, 0, 1, 1, 100, -1, 0)
	require.NoError(t, n.appendWait(1, b))
	killed := mem.Snapshot()
	for _, suffix := range []string{".log", ".idx"} {
		bytes, err := vfs.ReadFile(killed, samplePath+"1-0"+suffix)
		require.NoError(t, err)
		bytes[len(bytes)/2] ^= 4
		overwrite(t, killed, samplePath+"1-0"+suffix, bytes)
	}
	n2 := start(t, killed, tiny())
	require.Equal(t, []base.SegmentID{1}, n2.Recovery().Damaged)
	salvaged, err := vfs.ReadFile(killed, "data/quarantine/2/1-0.salvaged")
	require.NoError(t, err)
	require.Equal(t, b.Bytes, salvaged)
	_, err = n2.Read(refOf(1), 0, 100, nil)
	require.ErrorIs(t, err, base.CodeCorruptData)
}

func TestUnknownFilesAreQuarantinedNotDeleted(t *testing.T) {
	mem, want := sample(t)
	put := func(name, contents string) {
		require.NoError(t, vfs.WriteFileAtomic(mem, name, []byte(contents), 0o600))
	}
	put(samplePath+"99-0.log", "an orphan")
	put(samplePath+"2-3.state.tmp", "never renamed")
	require.NoError(t, mem.MkdirAll("data/topics/stranger/1", 0o700))
	put("data/topics/stranger/1/7-0.log", "of nobody")
	require.NoError(t, mem.MkdirAll("data/topics/0a010000-0000-0000-0000-000000000000/77", 0o700))
	put("data/topics/0a010000-0000-0000-0000-000000000000/77/5-0.log", "another range")
	n := start(t, mem, tiny())
	sameBytes(t, want, n.mustRead(refOf(1), 0, 1<<20))
	require.Len(t, n.Recovery().Quarantined, 3)
	require.EqualValues(t, 3, n.Stats().QuarantinedFiles)
	for name, contents := range map[string]string{
		"data/quarantine/2/topics/0a010000-0000-0000-0000-000000000000/1/99-0.log": "an orphan",
		"data/quarantine/2/topics/stranger/1/7-0.log":                              "of nobody",
		"data/quarantine/2/topics/0a010000-0000-0000-0000-000000000000/77/5-0.log": "another range",
	} {
		b, err := vfs.ReadFile(mem, name)
		require.NoError(t, err)
		require.Equal(t, contents, string(b))
	}
	_, err := mem.Stat(samplePath + "2-3.state.tmp")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDirectoriesThatAreNotOurs(t *testing.T) {
	refused := func(fs vfs.FS, want IdentityRequest, code base.Code) {
		t.Helper()
		_, _, err := OpenIdentity(fs, "data", "meta", want)
		require.ErrorIs(t, err, code)
	}
	foreign := vfs.NewMem()
	require.NoError(t, foreign.MkdirAll("data", 0o700))
	require.NoError(t, vfs.WriteFileAtomic(foreign, "data/readme", nil, 0o600))
	refused(foreign, IdentityRequest{}, base.CodePreconditionFailed)
	mem, _ := sample(t)
	refused(mem, IdentityRequest{Node: "other"}, base.CodePreconditionFailed)
	lost := mem.Snapshot()
	require.NoError(t, lost.Remove("data/identity"))
	refused(lost, IdentityRequest{}, base.CodeCorruptData)
	for _, dir := range []string{"data/wal", "data/topics", "meta"} {
		lost = mem.Snapshot()
		require.NoError(t, lost.RemoveAll(dir))
		refused(lost, IdentityRequest{}, base.CodeCorruptData)
	}
	_, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.NoError(t, err)
	refused(mem, IdentityRequest{}, base.CodePreconditionFailed) // in use
	require.NoError(t, locks.Close())
	require.NoError(t, locks.Close())
}

func TestIdentity(t *testing.T) {
	mem := vfs.NewMem()
	id, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.NoError(t, err)
	require.Regexp(t, "^n-[0-9a-f]{8}$", string(id.Node))
	require.Equal(t, uint64(1), id.Boot)
	require.True(t, id.Cluster.IsZero())
	require.NoError(t, id.SetCluster(mem, "data", base.ClusterID{7}))
	require.NoError(t, id.SetCluster(mem, "data", base.ClusterID{7}))
	require.ErrorIs(t, id.SetCluster(mem, "data", base.ClusterID{8}), base.CodePreconditionFailed)
	require.NoError(t, locks.Close())
	again, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.NoError(t, err)
	defer locks.Close()
	want := *id
	want.Boot = 2
	require.Equal(t, want, *again)
}

func TestACrashedFirstStartIsBegunAgain(t *testing.T) {
	for nth := 1; ; nth++ {
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem, vfs.Rule{Ops: vfs.OpChanges, Nth: nth, Err: errors.New("power")})
		_, locks, err := OpenIdentity(fault, "data", "meta", IdentityRequest{})
		if err == nil {
			require.NoError(t, locks.Close())
			require.Greater(t, nth, 10)
			return
		}
		id, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
		require.NoError(t, err, "after change %d", nth)
		require.LessOrEqual(t, id.Boot, uint64(2))
		require.NoError(t, locks.Close())
	}
}

func TestALogThatWasRolledBackIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	n := start(t, mem, tiny())
	n.openSegment(specOf(1, 0, 0))
	old := mem.Snapshot()
	for range 10 {
		n.put(1, 1, 9000)
	}
	n.stop()
	names, err := mem.ReadDir("data/wal")
	require.NoError(t, err)
	for _, e := range names {
		if e.Name != stampName {
			require.NoError(t, mem.Remove("data/wal/"+e.Name))
		}
	}
	names, err = old.ReadDir("data/wal")
	require.NoError(t, err)
	for _, e := range names {
		b, err := vfs.ReadFile(old, "data/wal/"+e.Name)
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFileAtomic(mem, "data/wal/"+e.Name, b, 0o600))
	}
	require.ErrorIs(t, n.start(), base.CodeCorruptData)
}

func TestAFailedSyncIsTheEnd(t *testing.T) {
	for _, rule := range []vfs.Rule{
		{Ops: vfs.OpSyncData, Path: "*.log", Err: syscall.EIO},
		{Ops: vfs.OpSyncData, Path: "*.wal", Err: syscall.EIO},
		{Ops: vfs.OpWrite, Path: "*.log", Err: syscall.EIO},
		{Ops: vfs.OpRename, Path: "catalogue.tmp", Err: syscall.EIO},
		{Ops: vfs.OpSyncDir, Path: "1", Err: syscall.EIO},
		{Ops: vfs.OpSyncData, Path: "*.idx", Err: syscall.EIO},
		{Ops: vfs.OpSyncData, Path: "*.log", Err: syscall.ENOSPC}, // a full disk is no excuse for a sync
		{Ops: vfs.OpSyncDir, Path: "1", Err: syscall.ENOSPC},
		{Ops: vfs.OpClose, Path: "*.idx", Err: syscall.ENOSPC},
	} {
		fault := vfs.NewFault(vfs.NewMem())
		n := start(t, fault, tiny())
		n.openSegment(specOf(1, 0, 0))
		fault.Add(rule)
		err := n.appendWait(1, makeBatch(1, 0, 0, 1, 100, -1, 0))
		if err == nil {
			err := n.checkpoint()
			require.Error(t, err, "%+v", rule)
			require.False(t, isNoSpace(err), "%+v", rule)
			_ = n.fail(err)
		}
		require.Error(t, <-n.fatal)
		require.Error(t, n.appendWait(1, makeBatch(1, 0, 1, 1, 100, -1, 0)), "nothing is acked after it")
		fault.Clear()
		require.Error(t, n.checkpoint(), "and nothing is tried again")
	}
}

// Who has lost the disk of data_dir alone has a node's meta_dir, not a stranger's, and hears how the node comes back.
func TestALostDataDirectoryIsToldFromAForeignOne(t *testing.T) {
	mem := vfs.NewMem()
	_, locks, err := OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.NoError(t, err)
	require.NoError(t, vfs.WriteFileAtomic(mem, "meta/groups.json", []byte("{}"), 0o600))
	require.NoError(t, locks.Close())
	require.NoError(t, mem.RemoveAll("data"))
	_, _, err = OpenIdentity(mem, "data", "meta", IdentityRequest{})
	require.ErrorIs(t, err, base.CodeCorruptData)
	require.ErrorContains(t, err, "meta holds a node's data, but data/identity is missing")

	require.NoError(t, mem.MkdirAll("elsewhere", 0o700))
	require.NoError(t, vfs.WriteFileAtomic(mem, "elsewhere/photo", nil, 0o600))
	_, _, err = OpenIdentity(mem, "elsewhere", "meta2", IdentityRequest{})
	require.ErrorIs(t, err, base.CodePreconditionFailed)
}
