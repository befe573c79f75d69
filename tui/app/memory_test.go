package app

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory is bounded while the screen is there, but for what whoever started the program has said about it.
func TestThrift(t *testing.T) {
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	limitBefore, percentBefore := limit(), percent()
	for _, c := range []struct {
		set     map[string]string
		limit   int64
		percent int
	}{
		{nil, memory, garbage},
		{map[string]string{"GOGC": "50"}, memory, percentBefore},
		{map[string]string{"GOMEMLIMIT": "1GiB"}, limitBefore, garbage},
		{map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}, limitBefore, percentBefore},
	} {
		end := thrift(func(name string) string { return c.set[name] })
		require.Equal(t, c.limit, limit(), c.set)
		require.Equal(t, c.percent, percent(), c.set)
		end()
		require.Equal(t, limitBefore, limit())
		require.Equal(t, percentBefore, percent())
	}
}
