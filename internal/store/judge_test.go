package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/vfs"
)

// What cannot be put aside must not be given up: the checkpoint that follows frees the log it may still be in.
func TestRecoveryEndsWhenDamageCannotBePutAside(t *testing.T) {
	mem, _ := sample(t)
	state := samplePath + "2-3.state"
	b, err := vfs.ReadFile(mem, state)
	require.NoError(t, err)
	b[len(b)-1] ^= 1
	overwrite(t, mem, state, b)

	broken := errors.New("the disk refuses")
	n := &node{t: t, fs: vfs.NewFault(mem, vfs.Rule{Ops: vfs.OpRename, Path: "2-3.state", Err: broken}), o: tiny()}
	defer n.stop()
	require.ErrorIs(t, n.start(), broken)
}
