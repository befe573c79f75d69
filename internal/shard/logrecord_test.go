package shard

import (
	"bytes"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wal"
)

func sampleRecords() []record {
	at := time.Unix(1_800_000_000, 123).UTC()
	entries := []raft.Log{
		{Index: 7, Term: 2, Type: raft.LogCommand, Data: []byte("command"), AppendedAt: at},
		{Index: 8, Term: 2, Type: raft.LogNoop},
		{Index: 9, Term: 3, Type: raft.LogConfiguration, Data: []byte{1}, Extensions: []byte{2}},
	}
	stable := []keyValue{{"CurrentTerm", []byte{0, 0, 0, 0, 0, 0, 0, 3}}, {"LastVoteCand", nil}}
	group := base.ShardID{Root: 31, Path: 1, PathLen: 2}
	return []record{
		{kind: recordEntries, group: group, entries: entries},
		{kind: recordStable, group: group, stable: stable},
		{kind: recordDelete, group: group, from: 3, to: 900},
		{kind: recordCheckpoint, group: group, stable: stable, entries: entries},
		{kind: recordCheckpoint, group: base.RootShard},
	}
}

func TestRecordsAreReadBack(t *testing.T) {
	for _, r := range sampleRecords() {
		got, err := decodeRecord(r.kind, r.encode())
		require.NoError(t, err)
		require.Equal(t, r, got)
		for n := range r.encode() {
			_, err := decodeRecord(r.kind, r.encode()[:n])
			require.Error(t, err, "kind %d cut at %d", r.kind, n)
		}
	}
	_, err := decodeRecord(9, nil)
	require.ErrorContains(t, err, "newer version")
}

// FuzzDecodeRecord: what decodes is encoded to something that decodes to the same.
func FuzzDecodeRecord(f *testing.F) {
	for _, r := range sampleRecords() {
		f.Add(uint8(r.kind), r.encode())
	}
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		r, err := decodeRecord(recordKind(kind), payload)
		if err != nil {
			return
		}
		again, err := decodeRecord(recordKind(kind), r.encode())
		if err != nil || !bytes.Equal(r.encode(), again.encode()) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func openTail(t *testing.T, fs vfs.FS) (*sharedLog, *logTail) {
	t.Helper()
	l, err := openSharedLog(logOptions{
		WAL:     wal.Options{FS: fs, Dir: "wal", UUID: metaUUID, FileBytes: 64 << 10, OnFatal: func(error) {}},
		Timeout: time.Second, MakeRoom: func() bool { return false },
	})
	require.NoError(t, err)
	return l, l.tail(base.ShardID{Root: 3})
}

func logs(from, to, term uint64) []*raft.Log {
	var list []*raft.Log
	for i := from; i <= to; i++ {
		list = append(list, &raft.Log{Index: i, Term: term, Data: []byte{byte(i), byte(term)}})
	}
	return list
}

// TestTheTailIsWhatTheLogSays does to a tail what raft does, and looks at it before and after it is read back.
func TestTheTailIsWhatTheLogSays(t *testing.T) {
	fs := vfs.NewMem()
	l, tail := openTail(t, fs)
	expect := func(first, last uint64, terms map[uint64]uint64) {
		t.Helper()
		got, _ := tail.FirstIndex()
		require.Equal(t, first, got)
		got, _ = tail.LastIndex()
		require.Equal(t, last, got)
		for index, term := range terms {
			var e raft.Log
			require.NoError(t, tail.GetLog(index, &e))
			require.Equal(t, term, e.Term)
			require.Equal(t, []byte{byte(index), byte(term)}, e.Data)
		}
		var e raft.Log
		require.ErrorIs(t, tail.GetLog(last+1, &e), raft.ErrLogNotFound)
		require.ErrorIs(t, tail.GetLog(first-1, &e), raft.ErrLogNotFound)
	}
	reopen := func() {
		t.Helper()
		require.NoError(t, l.close())
		l, tail = openTail(t, fs)
	}
	require.NoError(t, tail.StoreLogs(logs(1, 10, 1)))
	require.NoError(t, tail.SetUint64([]byte("CurrentTerm"), 1))
	expect(1, 10, map[uint64]uint64{1: 1, 10: 1})

	// A new leader replaces the end.
	require.NoError(t, tail.DeleteRange(8, 10))
	require.NoError(t, tail.StoreLogs(logs(8, 9, 2)))
	expect(1, 9, map[uint64]uint64{7: 1, 8: 2, 9: 2})
	reopen()
	expect(1, 9, map[uint64]uint64{7: 1, 8: 2, 9: 2})

	// A snapshot lets the beginning go, but for what the older one needs.
	tail.keepFrom(4)
	require.NoError(t, tail.DeleteRange(1, 5))
	expect(4, 9, map[uint64]uint64{4: 1})
	reopen()
	expect(4, 9, map[uint64]uint64{4: 1})

	// Copied forward, and gone on from there.
	require.NoError(t, tail.copyForward())
	require.NoError(t, tail.StoreLog(logs(10, 10, 3)[0]))
	require.NoError(t, tail.Set([]byte("LastVoteCand"), []byte("n1")))
	reopen()
	expect(4, 10, map[uint64]uint64{4: 1, 9: 2, 10: 3})
	term, err := tail.GetUint64([]byte("CurrentTerm"))
	require.NoError(t, err)
	require.EqualValues(t, 1, term)
	vote, err := tail.Get([]byte("LastVoteCand"))
	require.NoError(t, err)
	require.Equal(t, "n1", string(vote))
	never, err := tail.GetUint64([]byte("LastVoteTerm"))
	require.NoError(t, err)
	require.Zero(t, never)

	// No gaps; raft knows, and clears all before it goes on behind a snapshot that it was sent.
	require.True(t, tail.IsMonotonic())
	require.Error(t, tail.StoreLogs(logs(12, 12, 3)))
	require.NoError(t, tail.DeleteRange(4, 10))
	require.NoError(t, tail.StoreLogs(logs(500, 501, 4)))
	reopen()
	expect(500, 501, map[uint64]uint64{500: 4})
	require.NoError(t, l.close())
}

// TestAVoteIsOneRecord: a vote of which half is durable would be one for whom the vote before was given to.
func TestAVoteIsOneRecord(t *testing.T) {
	fs := vfs.NewMem()
	l, tail := openTail(t, fs)
	before := l.wal.Stats().Commits
	require.NoError(t, tail.SetUint64([]byte(keyVoteTerm), 7))
	require.Equal(t, before, l.wal.Stats().Commits)
	require.NoError(t, tail.Set([]byte("LastVoteCand"), []byte("n1")))
	require.Equal(t, before+1, l.wal.Stats().Commits)
	require.NoError(t, tail.SetUint64([]byte(keyVoteTerm), 8)) // and the process ends
	require.NoError(t, l.close())
	l, tail = openTail(t, fs)
	term, err := tail.GetUint64([]byte(keyVoteTerm))
	require.NoError(t, err)
	require.EqualValues(t, 7, term)
	vote, err := tail.Get([]byte("LastVoteCand"))
	require.NoError(t, err)
	require.Equal(t, "n1", string(vote))
	require.NoError(t, l.close())
}

// Each start begins a file of the log, however little it writes: a node that is killed again and again does not fill its
// disk with them, and forgets nothing.
func TestManyStartsDoNotFillTheDisk(t *testing.T) {
	fs := vfs.NewMem()
	for i := range uint64(30) {
		l, tail := openTail(t, fs)
		require.NoError(t, l.clean()) // as at each start
		require.LessOrEqual(t, l.wal.Stats().Files, keepFiles+1)
		last, err := tail.LastIndex()
		require.NoError(t, err)
		require.Equal(t, i, last)
		require.NoError(t, tail.StoreLogs(logs(i+1, i+1, i+1)))
		require.NoError(t, tail.SetUint64([]byte("CurrentTerm"), i+1))
		require.NoError(t, l.close())
	}
	l, tail := openTail(t, fs)
	for i := range uint64(30) {
		var e raft.Log
		require.NoError(t, tail.GetLog(i+1, &e))
		require.Equal(t, i+1, e.Term)
	}
	term, err := tail.GetUint64([]byte("CurrentTerm"))
	require.NoError(t, err)
	require.Equal(t, uint64(30), term)
	require.NoError(t, l.close())
}
