package app

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store/storetest"
)

// A screen that is saved takes nobody's place, whatever is there under its name.
func TestSavedScreensTakeNamesOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	b := newBench(t, Options{Width: 120, Height: 40})
	b.env.save = writeNew
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	stem := "eg-top-" + b.at.Format("20060102-150405")
	require.NoError(t, os.WriteFile("precious", []byte("precious"), 0o644))
	require.NoError(t, os.Symlink("precious", stem+".txt"))
	require.NoError(t, os.Symlink("nothing", stem+"-2.txt"))
	require.NoError(t, os.WriteFile(stem+"-3.json", []byte("precious"), 0o644))

	b.save()
	b.model.View()
	b.shows(t, "saved "+stem+"-4.txt")
	b.save()
	for _, name := range []string{"-4.txt", "-4.json", "-5.txt", "-5.json"} {
		info, err := os.Lstat(stem + name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		require.NotZero(t, info.Size())
	}
	for _, name := range []string{"precious", stem + "-3.json"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "precious", string(text))
	}
	require.NoFileExists(t, "nothing")
}

func TestSavingIntoNowhere(t *testing.T) {
	t.Chdir(t.TempDir())
	b := newBench(t, Options{Width: 120, Height: 40})
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	tries := 0
	b.env.save = func(string, string) error { tries++; return fs.ErrExist }
	b.save()
	require.Equal(t, mostSaved, tries)
	b.env.save = func(string, string) error { return fs.ErrPermission }
	b.save()
	b.model.View()
	b.shows(t, "permission denied")
}
