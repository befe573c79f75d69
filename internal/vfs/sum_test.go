package vfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
)

func TestNoByteOfASummedTextChangesUnseen(t *testing.T) {
	text := []byte("{\"version\": 35}\n")
	b := vfs.AppendSum(text)
	require.Equal(t, "{\"version\": 35}\ncrc32c e17791bc\n", string(b))
	got, ok := vfs.CutSum(b)
	require.True(t, ok)
	require.Equal(t, text, got)

	for i := range b {
		for bit := range 8 {
			bad := append([]byte{}, b...)
			bad[i] ^= 1 << bit
			_, ok := vfs.CutSum(bad)
			require.False(t, ok, "%q", bad)
		}
		_, ok := vfs.CutSum(b[:i])
		require.False(t, ok, "%q", b[:i])
	}
}
