package wal

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// image is a log on a disk whose process was killed, and what it had acknowledged.
type image struct {
	fs      *vfs.Mem
	o       Options
	entries []seen
}

type seen struct {
	lsn     LSN
	kind    uint8
	payload string
}

// smallLog is a log of a few small files, killed when all of it was acknowledged.
func smallLog(t testing.TB) image {
	t.Helper()
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("/wal", 0o700))
	ids := fileID(0x1234_5678_9abc_def0)
	im := image{o: Options{FS: m, Dir: "/wal", UUID: base.UUID{7}, FileBytes: 8 << 10, newID: func() (fileID, error) {
		ids += 0x1111
		return ids, nil
	}}}
	for run := range 2 { // two lives: the second begins with a file that says where the first ended
		l, _, err := Open(im.o, func(LSN, uint8, []byte) error { return nil })
		require.NoError(t, err)
		for i := range 12 {
			e := Entry{Kind: uint8(i), Parts: [][]byte{fmt.Appendf(nil, "run %d entry %d ", run, i), make([]byte, i*97%600)}}
			lsn, err := l.AppendWait(context.Background(), e)
			require.NoError(t, err)
			im.entries = append(im.entries, seen{lsn, e.Kind, string(e.Parts[0]) + string(e.Parts[1])})
		}
		im.fs = m.Snapshot()
		require.NoError(t, l.Close())
		if run == 0 {
			require.NoError(t, l.Err())
		}
	}
	im.o.FS = im.fs
	return im
}

// recoverFrom runs recovery alone.
func recoverFrom(o Options) ([]seen, Recovery, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, Recovery{}, err
	}
	var got []seen
	r := &recovery{o: o, replay: func(lsn LSN, kind uint8, payload []byte) error {
		got = append(got, seen{lsn, kind, string(payload)})
		return nil
	}}
	err = r.run()
	return got, r.report, err
}

// check holds what recovery returned against what had been acknowledged: nothing else is there, and what is missing
// lies within damage that is reported.
func (im image) check(got []seen, rec Recovery) error {
	lost := func(lsn LSN) bool {
		for _, d := range rec.Damage {
			if d.LSN < lsn && lsn <= d.End {
				return true
			}
		}
		return false
	}
	i := 0
	for _, want := range im.entries {
		switch {
		case i < len(got) && got[i] == want:
			i++
		case !lost(want.lsn):
			return fmt.Errorf("entry that ends at %d is missing, damage is %+v", want.lsn, rec.Damage)
		}
	}
	if i < len(got) {
		return fmt.Errorf("entry that ends at %d was never written", got[i].lsn)
	}
	if rec.End < im.entries[len(im.entries)-1].lsn {
		return fmt.Errorf("the log ends at %d and would use positions again", rec.End)
	}
	return nil
}

func (im image) files(t testing.TB) []string {
	t.Helper()
	list, err := im.fs.ReadDir("/wal")
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		if _, _, ok := parseLogName(e.Name); ok {
			names = append(names, "/wal/"+e.Name)
		}
	}
	require.Greater(t, len(names), 3)
	return names
}

func TestEveryBitFlipIsSeenOrHarmless(t *testing.T) {
	im := smallLog(t)
	got, rec, err := recoverFrom(im.o)
	require.NoError(t, err)
	require.Empty(t, rec.Damage)
	require.Equal(t, im.entries, got)

	everyBit := os.Getenv("EASTGUARD_SOAK") != ""
	for _, name := range im.files(t) {
		data, err := vfs.ReadFile(im.fs, name)
		require.NoError(t, err)
		for i, b := range data {
			for bit := range 8 {
				if !everyBit && b == 0 && (i+bit)%64 != 0 {
					continue // most zeros are of no interest
				}
				flipped := im.fs.Snapshot()
				poke(t, flipped, name, int64(i), b^1<<bit)
				o := im.o
				o.FS = flipped
				got, rec, err := recoverFrom(o)
				require.NoError(t, err, "%s byte %d bit %d", name, i, bit)
				require.NoError(t, im.check(got, rec), "%s byte %d bit %d", name, i, bit)
			}
		}
	}
}

func poke(t testing.TB, fs vfs.FS, name string, off int64, b byte) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{b}, off)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestEveryTruncationIsSeen(t *testing.T) {
	im := smallLog(t)
	for _, name := range im.files(t) {
		info, err := im.fs.Stat(name)
		require.NoError(t, err)
		for size := range info.Size {
			cut := im.fs.Snapshot()
			f, err := cut.OpenFile(name, os.O_RDWR, 0)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(size))
			require.NoError(t, f.Close())
			o := im.o
			o.FS = cut
			got, rec, err := recoverFrom(o)
			require.NoError(t, err, "%s cut to %d", name, size)
			require.NotEmpty(t, rec.Damage, "%s cut to %d", name, size)
			require.NoError(t, im.check(got, rec), "%s cut to %d", name, size)
		}
	}
}

func TestMissingFileIsDamage(t *testing.T) {
	im := smallLog(t)
	names := im.files(t)
	for i, name := range names[:len(names)-1] { // of the last one nobody else knows
		without := im.fs.Snapshot()
		require.NoError(t, without.Remove(name))
		o := im.o
		o.FS = without
		got, rec, err := recoverFrom(o)
		require.NoError(t, err)
		if i == 0 {
			require.Greater(t, rec.Start, LSN(0), "as if trimmed: the owner knows from where it needs the log")
			continue
		}
		require.NotEmpty(t, rec.Damage)
		require.NoError(t, im.check(got, rec))
	}
}

// TestDamageGoesOnBehind repairs nothing: the log is opened over damage, used, and opened again.
func TestDamageGoesOnBehind(t *testing.T) {
	im := smallLog(t)
	names := im.files(t)
	for _, name := range names {
		hurt := im.fs.Snapshot()
		poke(t, hurt, name, headerBytes+30, 0xff)
		o := im.o
		o.FS = hurt
		var first, second []seen
		record := func(list *[]seen) func(LSN, uint8, []byte) error {
			return func(lsn LSN, kind uint8, payload []byte) error {
				*list = append(*list, seen{lsn, kind, string(payload)})
				return nil
			}
		}
		l, rec, err := Open(o, record(&first))
		require.NoError(t, err)
		require.Len(t, rec.Damage, 1)
		lsn, err := l.AppendWait(context.Background(), Entry{Kind: 99, Parts: [][]byte{[]byte("new")}})
		require.NoError(t, err)
		require.Greater(t, lsn, rec.End)
		require.NoError(t, l.Close())

		l, rec2, err := Open(o, record(&second))
		require.NoError(t, err)
		require.Equal(t, rec.Damage, rec2.Damage, "reported until it is trimmed")
		require.Equal(t, append(first, seen{lsn, 99, "new"}), second)

		require.NoError(t, l.TrimTo(l.Durable()))
		require.NoError(t, l.Close())
		_, err = hurt.Stat(name + damagedSuffix)
		require.NoError(t, err, "a damaged file is set aside")
	}
}
