package segment

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
)

// A reader that began before the seal cut the file must not take the missing end for damage: what it may see is there.
func TestReadAcrossACutIsNoDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	entries := makeEntries(rng, testSpec, 40, 2000)
	end := extentOf(entries[:7])
	for name, read := range map[string]func(*File) error{
		"read": func(f *File) error {
			got, err := readAll(f, testSpec.Base, end.End, 1<<20)
			if err == nil {
				require.Equal(t, string(bytesOf(entries[:7])), string(got))
			}
			return err
		},
		"by time": func(f *File) error {
			_, _, _, err := f.FirstAtOrAfter(0, end.End)
			return err
		},
	} {
		fault := vfs.NewFault(newDisk(t))
		f := openFile(t, fault, Extent{End: testSpec.Base})
		fill(t, f, entries, rng, false)
		cut := func(vfs.Call) {
			require.NoError(t, f.Cut(end.End))
			_, err := f.Trim()
			require.NoError(t, err)
		}
		fault.Add(vfs.Rule{Ops: vfs.OpRead, Path: "*.log", Times: 1, Before: cut})
		require.NoError(t, read(f), name)
	}
}
