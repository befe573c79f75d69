package testport

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPortIsGivenOnce(t *testing.T) {
	seen := make(map[int]bool)
	for range 200 {
		p, err := Take("127.0.0.1")
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Release()) }()
		require.False(t, seen[p.Number])
		require.Less(t, p.Number, 20_000)
		seen[p.Number] = true
	}
}

// As if another process had begun at the same place.
func TestOfTwoWhoAskOneGetsAPort(t *testing.T) {
	mine, err := Take("127.0.0.1")
	require.NoError(t, err)
	next.Add(^uint32(0))
	theirs, err := Take("127.0.0.1")
	require.NoError(t, err)
	require.NotEqual(t, mine.Number, theirs.Number)
	require.NoError(t, theirs.Release())

	require.NoError(t, mine.Release())
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(mine.Number)))
	require.NoError(t, err)
	defer l.Close()
	next.Store(uint32(mine.Number - first - 1))
	other, err := Take("127.0.0.1")
	require.NoError(t, err)
	require.NotEqual(t, mine.Number, other.Number, "somebody listens")
	require.NoError(t, other.Release())
}
