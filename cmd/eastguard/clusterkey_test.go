package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

func TestClusterKey(t *testing.T) {
	key, err := clusterKey("")
	require.NoError(t, err)
	require.Nil(t, key)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	key, err = clusterKey(write("good", strings.Repeat("0f", 32)+"\n", 0o600))
	require.NoError(t, err)
	require.Len(t, key, 32)
	for _, tc := range []struct{ file, says, hint string }{
		{filepath.Join(dir, "none"), "no such file", "openssl rand -hex 32"},
		{write("open", strings.Repeat("0f", 32), 0o640), "can be read by others (mode 0640)", "chmod 600"},
		{write("short", "0f0f", 0o600), "does not hold 32, 48 or 64 hexadecimal digits", "openssl"},
		{write("text", strings.Repeat("secret", 8), 0o600), "does not hold", "openssl"},
	} {
		_, err := clusterKey(tc.file)
		require.ErrorContains(t, err, tc.says)
		var e *base.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.HintText(), tc.hint)
	}
}
