package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/eastguard/eastguard/internal/vfs"
)

// each runs a test on every file system, in a directory that exists.
func each(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS, t.TempDir()) })
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("/d", 0o700))
	t.Run("mem", func(t *testing.T) { test(t, mem, "/d") })
	under := vfs.NewMem()
	require.NoError(t, under.MkdirAll("/d", 0o700))
	t.Run("fault", func(t *testing.T) { test(t, vfs.NewFault(under), "/d") })
}

func create(t testing.TB, fsys vfs.FS, name string, data []byte) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestNamesAndErrors(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		_, err := fsys.OpenFile(name, os.O_RDWR, 0)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)
		require.NoError(t, fsys.RemoveAll(name))

		f := create(t, fsys, name, []byte("abc"))
		_, err = fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		require.ErrorIs(t, err, fs.ErrExist)
		info, err := fsys.Stat(name)
		require.NoError(t, err)
		require.Equal(t, int64(3), info.Size)
		require.False(t, info.IsDir)

		require.NoError(t, fsys.Rename(name, name+"2"))
		require.NoError(t, f.Sync(), "the open file goes with its name")
		require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "x/y/z"), 0o700))
		require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "x/y/z"), 0o700), "twice")
		require.ErrorIs(t, fsys.MkdirAll(filepath.Join(dir, "a2"), 0o700), syscall.ENOTDIR)
		require.NoError(t, fsys.Mkdir(filepath.Join(dir, "x/w"), 0o700))
		require.ErrorIs(t, fsys.Mkdir(filepath.Join(dir, "x/w"), 0o700), fs.ErrExist)
		require.ErrorIs(t, fsys.Mkdir(filepath.Join(dir, "no/w"), 0o700), fs.ErrNotExist)
		require.ErrorIs(t, fsys.Mkdir(filepath.Join(dir, "a2/w"), 0o700), syscall.ENOTDIR)
		list, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		require.Equal(t, []vfs.DirEntry{{Name: "a2"}, {Name: "x", IsDir: true}}, list)
		require.ErrorIs(t, fsys.Remove(filepath.Join(dir, "x")), syscall.ENOTEMPTY)
		require.NoError(t, fsys.RemoveAll(filepath.Join(dir, "x")))
		require.NoError(t, fsys.SyncDir(dir))
		require.NoError(t, fsys.SyncFS(dir))
		free, total, err := fsys.Free(dir)
		require.NoError(t, err)
		require.True(t, 0 < free && free <= total)

		require.NoError(t, f.Close())
		require.Error(t, f.Close(), "twice")
		_, err = f.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}

func TestReadWriteTruncate(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, filepath.Join(dir, "f"), []byte("0123456789"))
		b := make([]byte, 4)
		n, err := f.ReadAt(b, 8)
		require.Equal(t, 2, n)
		require.ErrorIs(t, err, io.EOF)
		n, err = f.ReadAt(b, 100)
		require.Zero(t, n)
		require.ErrorIs(t, err, io.EOF)

		require.NoError(t, f.Truncate(3))
		require.NoError(t, f.Preallocate(0, 8192))
		require.NoError(t, f.Preallocate(0, 10), "does not shrink")
		size, err := f.Size()
		require.NoError(t, err)
		require.Equal(t, int64(8192), size)
		require.NoError(t, f.StartWriteback(0, 8192))
		require.NoError(t, f.SyncData())
		data, err := vfs.ReadFile(fsys, filepath.Join(dir, "f"))
		require.NoError(t, err)
		require.Equal(t, append([]byte("012"), make([]byte, 8189)...), data)

		ro, err := fsys.OpenFile(filepath.Join(dir, "f"), os.O_RDONLY, 0)
		require.NoError(t, err)
		_, err = ro.WriteAt([]byte("x"), 0)
		require.Error(t, err)
		require.NoError(t, ro.Close())
	})
}

func TestWritevAtTakesAnyNumberOfBuffers(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		rng := rand.New(rand.NewSource(1))
		var bufs [][]byte
		var want []byte
		for range 3000 { // more than IOV_MAX
			b := make([]byte, rng.Intn(50))
			rng.Read(b)
			bufs = append(bufs, b)
			want = append(want, b...)
		}
		f := create(t, fsys, filepath.Join(dir, "v"), nil)
		n, err := f.WritevAt(bufs, 5)
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), n)
		got := make([]byte, len(want))
		_, err = f.ReadAt(got, 5)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		n, err = f.WritevAt(nil, 0)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestSendTo(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		data := make([]byte, 5<<20)
		rand.New(rand.NewSource(1)).Read(data)
		f := create(t, fsys, filepath.Join(dir, "s"), data)

		var copied bytes.Buffer
		n, err := f.SendTo(&copied, 1000, 3<<20)
		require.NoError(t, err)
		require.Equal(t, int64(3<<20), n)
		require.True(t, bytes.Equal(data[1000:1000+3<<20], copied.Bytes()))

		for _, network := range []string{"tcp", "unix"} {
			conn, received := pipeOf(t, network)
			part := vfs.FilePart(f, 1000, 3<<20, nil)
			n, err = part.WriteTo(conn)
			require.NoError(t, err)
			require.Equal(t, int64(3<<20), n)
			n, err = f.SendTo(conn, 10, 20)
			require.NoError(t, err)
			require.Equal(t, int64(20), n)
			n, err = f.SendTo(conn, 5<<20-7, 100)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, int64(7), n)
			require.NoError(t, conn.Close())
			want := append(append(append([]byte{}, data[1000:1000+3<<20]...), data[10:30]...), data[5<<20-7:]...)
			require.True(t, bytes.Equal(want, <-received), network)
		}
	})
}

// pipeOf is a connection and what arrives at its other end.
func pipeOf(t *testing.T, network string) (net.Conn, <-chan []byte) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "sock")
	}
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	received := make(chan []byte, 1)
	go func() {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		received <- b
	}()
	conn, err := net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	return conn, received
}

func TestPartsAreReleasedOnce(t *testing.T) {
	f := create(t, vfs.NewMem(), "f", []byte("hello"))
	released := 0
	p := vfs.FilePart(f, 1, 3, func() { released++ })
	require.Equal(t, 3, p.Len())
	var b bytes.Buffer
	_, err := p.WriteTo(&b)
	require.NoError(t, err)
	p.Release()
	p.Release()
	require.Equal(t, "ell", b.String())
	require.Equal(t, 1, released)

	m := vfs.MemPart([]byte("mem"))
	require.Equal(t, 3, m.Len())
	_, err = m.WriteTo(&b)
	require.NoError(t, err)
	m.Release()
	got, ok := vfs.Bytes(m)
	require.True(t, ok)
	require.Equal(t, "mem", string(got))
	_, ok = vfs.Bytes(p)
	require.False(t, ok)
}

func TestLockIsExclusive(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		l, err := fsys.Lock(name)
		require.NoError(t, err)
		_, err = fsys.Lock(name)
		require.ErrorIs(t, err, vfs.ErrLocked)
		require.NoError(t, l.Close())
		l, err = fsys.Lock(name)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

func TestCapacity(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(10_000)
	f := create(t, m, "f", make([]byte, 6000))
	g := create(t, m, "g", nil)
	require.ErrorIs(t, g.Preallocate(0, 5000), syscall.ENOSPC)
	_, err := g.WriteAt(make([]byte, 5000), 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Truncate(1000))
	require.NoError(t, g.Preallocate(0, 5000))
	require.NoError(t, m.Remove("f"))
	free, _, err := m.Free("/")
	require.NoError(t, err)
	require.Equal(t, int64(5000), free)
}

func TestFaultRules(t *testing.T) {
	broken := errors.New("broken")
	m := vfs.NewMem()
	var calls []string
	f := vfs.NewFault(m,
		vfs.Rule{Ops: vfs.OpWrite, Path: "*.log", Nth: 2, Times: 1, Err: broken, Short: 3},
		vfs.Rule{Ops: vfs.OpSyncs, Err: broken, Nth: 3},
		vfs.Rule{Ops: vfs.OpRename | vfs.OpWrite, Before: func(c vfs.Call) { calls = append(calls, "before "+c.Op.String()) }, After: func(c vfs.Call) {
			if c.Err != nil {
				calls = append(calls, "failed "+c.Op.String())
			}
		}})
	file := create(t, f, "/a.txt", []byte("first")) // not matched by the first rule
	log := create(t, f, "/a.log", []byte("first"))
	n, err := log.WriteAt([]byte("second"), 5)
	require.ErrorIs(t, err, broken)
	require.Equal(t, 3, n)
	_, err = log.WriteAt([]byte("third"), 8)
	require.NoError(t, err, "once")
	data, err := vfs.ReadFile(m, "/a.log")
	require.NoError(t, err)
	require.Equal(t, "firstsecthird", string(data))

	require.NoError(t, file.Sync())
	require.NoError(t, file.SyncData())
	require.ErrorIs(t, f.SyncDir("/"), broken, "from the third on")
	require.ErrorIs(t, file.Sync(), broken)
	f.Clear()
	require.NoError(t, file.Sync())
	require.Equal(t, 5, f.Count(vfs.OpSyncs))
	require.Equal(t, []string{"before write", "before write", "before write", "failed write", "before write"}, calls)

	require.NoError(t, f.Rename("/a.txt", "/b.log"))
	f.Add(vfs.Rule{Path: "b.log", Ops: vfs.OpWrite, Err: broken})
	_, err = file.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, broken, "an open file goes by its present name")

	f.Clear()
	f.Add(vfs.Rule{Ops: vfs.OpRead, Delay: 20 * time.Millisecond})
	began := time.Now()
	_, _ = file.ReadAt(make([]byte, 1), 0)
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
}

// TestMemAgainstATwin compares a file of Mem, with its pages, holes and sharing, with a plain slice of bytes.
func TestMemAgainstATwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		f, err := m.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		var now, synced []byte
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				off := rapid.IntRange(0, 20_000).Draw(t, "off")
				b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.IntRange(0, 9000).Draw(t, "n"))
				if len(b) == 0 {
					return
				}
				_, err := f.WriteAt(b, int64(off))
				require.NoError(t, err)
				if grow := off + len(b) - len(now); grow > 0 {
					now = append(now, make([]byte, grow)...)
				}
				copy(now[off:], b)
			},
			"truncate": func(t *rapid.T) {
				n := rapid.IntRange(0, 25_000).Draw(t, "n")
				require.NoError(t, f.Truncate(int64(n)))
				now = append(append([]byte{}, now[:min(n, len(now))]...), make([]byte, max(0, n-len(now)))...)
			},
			"sync": func(t *rapid.T) {
				require.NoError(t, f.Sync())
				require.NoError(t, m.SyncDir("/"))
				synced = append([]byte{}, now...)
			},
			"": func(t *rapid.T) {
				requireFile(t, m, now)
				requireFile(t, m.Snapshot(), now)
				requireFile(t, m.CrashClone(rand.New(rand.NewSource(1)), 1), now)
				if synced != nil {
					requireFile(t, m.CrashClone(rand.New(rand.NewSource(1)), 0), synced)
					requireFile(t, m.Snapshot().CrashClone(rand.New(rand.NewSource(1)), 0), synced)
				}
			},
		})
	})
}

func requireFile(t *rapid.T, m *vfs.Mem, want []byte) {
	got, err := vfs.ReadFile(m, "f")
	require.NoError(t, err)
	if !bytes.Equal(want, got) {
		t.Fatalf("file has %d bytes, %d expected, or differs", len(got), len(want))
	}
}

// TestCrashKeepsWholePagesOrSectors: what a crash leaves of unsynced pages is old or new, page by page, now and then
// sector by sector, and never anything else.
func TestCrashKeepsWholePagesOrSectors(t *testing.T) {
	m := vfs.NewMem()
	old, fresh := bytes.Repeat([]byte{1}, 64<<10), bytes.Repeat([]byte{2}, 64<<10)
	f := create(t, m, "f", old)
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("/"))
	_, err := f.WriteAt(fresh, 0)
	require.NoError(t, err)
	pages := map[string]int{}
	for seed := range int64(50) {
		got, err := vfs.ReadFile(m.CrashClone(rand.New(rand.NewSource(seed)), 0.5), "f")
		require.NoError(t, err)
		for at := 0; at < len(got); at += 4096 {
			kinds := map[byte]bool{}
			for s := at; s < at+4096; s += 512 {
				require.Equal(t, bytes.Repeat(got[s:s+1], 512), got[s:s+512])
				kinds[got[s]] = true
			}
			switch {
			case len(kinds) == 2:
				pages["torn"]++
			case kinds[1]:
				pages["old"]++
			default:
				pages["new"]++
			}
		}
	}
	require.Greater(t, pages["old"], 200)
	require.Greater(t, pages["new"], 200)
	require.Greater(t, pages["torn"], 10)
}

func TestWriteFileAtomicAtEveryCrash(t *testing.T) {
	m := vfs.NewMem()
	f := vfs.NewFault(m)
	require.NoError(t, vfs.WriteFileAtomic(f, "/f", []byte("old"), 0o600))
	rng := rand.New(rand.NewSource(1))
	crashes := 0
	f.Add(vfs.Rule{Ops: vfs.OpChanges, After: func(vfs.Call) {
		for range 50 {
			crashes++
			got, err := vfs.ReadFile(m.CrashClone(rng, 0.5), "/f")
			require.NoError(t, err)
			require.Contains(t, []string{"old", "new contents"}, string(got))
		}
	}})
	require.NoError(t, vfs.WriteFileAtomic(f, "/f", []byte("new contents"), 0o600))
	got, err := vfs.ReadFile(m.CrashClone(rng, 0), "/f")
	require.NoError(t, err)
	require.Equal(t, "new contents", string(got))
	require.Equal(t, 250, crashes)
}
