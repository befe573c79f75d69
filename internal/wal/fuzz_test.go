package wal

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// FuzzRecover gives recovery any bytes as the contents of two files. It must end, must not panic, must not ask for
// memory that the files do not justify, and must find the same when it runs again.
func FuzzRecover(f *testing.F) {
	im := smallLog(f)
	names := im.files(f)
	var whole [][]byte
	for _, name := range names {
		data, err := vfs.ReadFile(im.fs, name)
		require.NoError(f, err)
		whole = append(whole, data)
	}
	for i := range whole[1:] {
		f.Add(whole[i], whole[i+1])
		f.Add(whole[i][:5000], whole[i+1])
		f.Add(whole[i], whole[i+1][:4100])
		f.Add(whole[i], []byte{})
	}
	f.Add([]byte{}, []byte("EGWAL"))

	f.Fuzz(func(t *testing.T, first, second []byte) {
		m := vfs.NewMem()
		require.NoError(t, m.MkdirAll("/wal", 0o700))
		// The names of two neighbours, so that the seeds' checksums hold.
		put(t, m, names[1], first)
		put(t, m, names[2], second)
		o := Options{FS: m, Dir: "/wal", UUID: base.UUID{7}, FileBytes: 8 << 10}
		got, rec, err := recoverFrom(o)
		again, rec2, err2 := recoverFrom(o)
		require.Equal(t, err == nil, err2 == nil)
		require.Equal(t, got, again)
		require.Equal(t, rec, rec2)
		for i, g := range got {
			if i > 0 && g.lsn <= got[i-1].lsn || g.lsn > rec.End {
				t.Fatalf("entry %d ends at %d", i, g.lsn)
			}
		}
	})
}

func put(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}
