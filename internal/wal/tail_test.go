package wal

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

func memOptions(t testing.TB) (*vfs.Mem, *vfs.Fault, Options) {
	t.Helper()
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("/wal", 0o700))
	f := vfs.NewFault(m)
	return m, f, Options{FS: f, Dir: "/wal", UUID: base.UUID{7}, FileBytes: 16 << 10}
}

func none(LSN, uint8, []byte) error { return nil }

func payloadOf(n int) Entry { return Entry{Kind: 1, Parts: [][]byte{make([]byte, n)}} }

// TestMarksAlwaysFit fills a file to each last byte with a commit that is written while the one before it is
// synced, the worst case: two marks have to follow it.
func TestMarksAlwaysFit(t *testing.T) {
	for size := 12_000; size <= 12_288; size += align {
		_, f, o := memOptions(t)
		o.MaxCommitBytes = 1000
		l, _, err := Open(o, none)
		require.NoError(t, err)
		syncing, gate := make(chan struct{}), make(chan struct{})
		f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Times: 1, Before: func(vfs.Call) { close(syncing); <-gate }})
		done := make(chan error, 3)
		ack := func(_ LSN, err error) { done <- err }
		require.NoError(t, l.Append(payloadOf(8), ack))
		<-syncing
		end := l.End()
		require.NoError(t, l.Append(payloadOf(size), ack))
		if size <= 12_288-32-frameHeader-reserveBytes {
			require.Eventually(t, func() bool { return l.End() > end }, 20*time.Second, 100*time.Microsecond)
		}
		close(gate)
		for range 2 {
			require.NoError(t, <-done, "size %d", size)
		}
		require.NoError(t, l.Close())
	}
}

// TestWritesAreWholePages: a page that is written for the first time in a file's life is written as a whole, so that
// the kernel need not read it.
func TestWritesAreWholePages(t *testing.T) {
	_, f, o := memOptions(t)
	written := map[string]int64{}
	f.Add(vfs.Rule{Ops: vfs.OpWrite, Path: "*.wal", Before: func(c vfs.Call) {
		end := c.Off + c.Len
		if end > max(written[c.Path], headerBytes) {
			if end%pageBytes != 0 {
				t.Errorf("write of %d bytes at %d ends within a page that is new", c.Len, c.Off)
			}
			written[c.Path] = end
		}
	}})
	l, _, err := Open(o, none)
	require.NoError(t, err)
	for i := range 300 {
		_, err := l.AppendWait(context.Background(), payloadOf(i*37%1500))
		require.NoError(t, err)
	}
	require.NoError(t, l.Close())
	require.Greater(t, len(written), 5)
}

// TestLoneAppendDoesNotLinger and the next test run in virtual time: the disk takes 50 ms for a sync, everything else
// takes no time at all.
func TestLoneAppendDoesNotLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, o := memOptions(t)
		l, _, err := Open(o, none)
		require.NoError(t, err)
		f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Delay: 50 * time.Millisecond})
		began := time.Now()
		_, err = l.AppendWait(context.Background(), payloadOf(10))
		require.NoError(t, err)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		require.NoError(t, l.Close())
	})
}

func TestCommitClosesAtLingerWhileTheDiskIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, o := memOptions(t)
		var commits []CommitStats
		o.Observe = func(c CommitStats) { commits = append(commits, c) }
		l, _, err := Open(o, none)
		require.NoError(t, err)
		syncs := 0
		f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Delay: 50 * time.Millisecond, Before: func(vfs.Call) { syncs++ }})
		began := time.Now()
		var acked []time.Duration
		ack := func(_ LSN, err error) {
			require.NoError(t, err)
			acked = append(acked, time.Since(began))
		}
		require.NoError(t, l.Append(payloadOf(10), ack)) // is synced until 50 ms
		synctest.Wait()
		end := l.End()
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, l.Append(payloadOf(10), ack)) // at 5 ms, to be written at 15 ms
		time.Sleep(9 * time.Millisecond)
		require.NoError(t, l.Append(payloadOf(10), ack)) // at 14 ms, in the same commit
		synctest.Wait()
		require.Equal(t, end, l.End(), "the commit is open")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Greater(t, l.End(), end, "the commit is written")
		time.Sleep(15 * time.Millisecond)
		require.NoError(t, l.Append(payloadOf(10), ack)) // at 30 ms, the next commit
		require.NoError(t, l.Close())
		require.Equal(t, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond}, acked)
		require.Len(t, commits, 3)
		require.Equal(t, 2, commits[1].Entries)
		require.Equal(t, 10*time.Millisecond, commits[1].Wait)
		require.Equal(t, 3, syncs, "one for the first, one for the other two commits, one for the mark at the end")
	})
}

// TestPayloadThatLooksLikeAFrameIsNotOne: an entry carries the frames of a log, right but for the file's id, which
// nobody outside knows. The entry's own header is destroyed, so that recovery looks into the payload for frames.
func TestPayloadThatLooksLikeAFrameIsNotOne(t *testing.T) {
	m, _, o := memOptions(t)
	l, _, err := Open(o, none)
	require.NoError(t, err)
	forged := frame{lsn: frameHeader, length: 0, typ: typeEntry, kind: 66}.append(nil, 0)
	forged = appendMark(forged, 0, 2*frameHeader, 1<<40)
	_, err = l.AppendWait(context.Background(), Entry{Kind: 1, Parts: [][]byte{forged}})
	require.NoError(t, err)
	want, err := l.AppendWait(context.Background(), Entry{Kind: 2})
	require.NoError(t, err)
	killed := m.Snapshot()
	require.NoError(t, l.Close())

	poke(t, killed, "/wal/"+activeFile(t, killed), headerBytes+9, 0xff)
	o.FS = killed
	got, rec, err := recoverFrom(o)
	require.NoError(t, err)
	require.Equal(t, []seen{{want, 2, ""}}, got)
	require.Len(t, rec.Damage, 1)
}

// activeFile is the newest file of the log.
func activeFile(t testing.TB, fs vfs.FS) string {
	t.Helper()
	list, err := fs.ReadDir("/wal")
	require.NoError(t, err)
	name := ""
	for _, e := range list {
		if _, _, ok := parseLogName(e.Name); ok {
			name = e.Name
		}
	}
	return name
}

// TestTornEndIsNotReplayedLater: the first life ends with a hole in what was not synced and whole frames behind it.
// The second life ends the log at the hole; what lies behind must never come back, nor count as damage.
func TestTornEndIsNotReplayedLater(t *testing.T) {
	m, f, o := memOptions(t)
	l, _, err := Open(o, none)
	require.NoError(t, err)
	first, err := l.AppendWait(context.Background(), Entry{Kind: 1})
	require.NoError(t, err)
	syncing, gate := make(chan struct{}), make(chan struct{})
	f.Add(vfs.Rule{Ops: vfs.OpSyncData, Path: "*.wal", Times: 1, Before: func(vfs.Call) { close(syncing); <-gate }})
	for range 4 {
		require.NoError(t, l.Append(payloadOf(1), nil))
	}
	<-syncing
	require.Eventually(t, func() bool { return l.End() >= first+markBytes+4*32 }, 20*time.Second, time.Millisecond)
	torn := m.Snapshot()
	close(gate)
	require.NoError(t, l.Close())

	poke(t, torn, "/wal/"+activeFile(t, torn), headerBytes+int64(first)+markBytes+32+4, 0xff) // the second of the four
	o.FS = torn
	var want []seen
	for life := range 3 {
		var got []seen
		l, rec, err := Open(o, func(lsn LSN, kind uint8, payload []byte) error {
			got = append(got, seen{lsn, kind, string(payload)})
			return nil
		})
		require.NoError(t, err)
		require.Empty(t, rec.Damage)
		if life == 0 {
			require.Len(t, got, 2)
		} else {
			require.Equal(t, want, got)
		}
		lsn, err := l.AppendWait(context.Background(), Entry{Kind: uint8(10 + life), Parts: [][]byte{make([]byte, 7)}})
		require.NoError(t, err)
		want = append(got, seen{lsn, uint8(10 + life), string(make([]byte, 7))})
		require.NoError(t, l.Close())
	}
}

// unreadable is a disk with a bad page.
type unreadable struct {
	vfs.FS
	name string
	page int64
}

func (u unreadable) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := u.FS.OpenFile(name, flag, perm)
	if err != nil || name != u.name {
		return f, err
	}
	return unreadableFile{f, u.page}, nil
}

type unreadableFile struct {
	vfs.File
	page int64
}

func (u unreadableFile) ReadAt(b []byte, off int64) (int, error) {
	if off < (u.page+1)*pageBytes && off+int64(len(b)) > u.page*pageBytes {
		return 0, fmt.Errorf("bad page %d", u.page)
	}
	return u.File.ReadAt(b, off)
}

func TestUnreadablePageIsDamage(t *testing.T) {
	im := smallLog(t)
	for _, name := range im.files(t) {
		for page := range int64(2) {
			o := im.o
			o.FS = unreadable{im.fs, name, page}
			got, rec, err := recoverFrom(o)
			require.NoError(t, err)
			require.NotEmpty(t, rec.Damage)
			require.NoError(t, im.check(got, rec))
		}
	}
}

func TestHeaderOfANewerVersionIsRefused(t *testing.T) {
	im := smallLog(t)
	name := im.files(t)[0]
	data, err := vfs.ReadFile(im.fs, name)
	require.NoError(t, err)
	h, ok := decodeHeader(data)
	require.True(t, ok)
	b := h.encode()
	binary.LittleEndian.PutUint32(b[12:], version+1)
	sumHeader(b)
	f, err := im.fs.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = recoverFrom(im.o)
	require.ErrorIs(t, err, base.CodeUnsupportedVersion)
}
