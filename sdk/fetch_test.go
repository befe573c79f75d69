package sdk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/record"
)

// chain is n batches of three records each, from an offset on.
func chain(t testing.TB, n int, base int64) []byte {
	b := record.NewBuilder(header.None, 0)
	var out []byte
	for range n {
		b.Reset()
		for range 3 {
			b.Append(record.Record{Value: []byte("v")})
		}
		at := len(out)
		var err error
		out, err = b.Build(out, -1, -1, 0)
		require.NoError(t, err)
		header.Patch(out[at:], base, 1)
		base += 3
	}
	return out
}

func TestCheckChain(t *testing.T) {
	good := chain(t, 4, 10)
	for _, want := range []int64{10, 11, 12} {
		next, err := checkChain(good, want)
		require.NoError(t, err)
		require.Equal(t, int64(22), next)
	}
	next, err := checkChain(nil, 7)
	require.NoError(t, err)
	require.Equal(t, int64(7), next)
	for name, bad := range map[string][]byte{
		"begins too late":  chain(t, 2, 11),
		"begins too early": chain(t, 2, 7),
		"a gap":            append(chain(t, 2, 10), chain(t, 1, 17)...),
		"a step back":      append(chain(t, 2, 10), chain(t, 1, 13)...),
		"cut":              good[:len(good)-1],
		"not a batch":      []byte("hello"),
	} {
		_, err := checkChain(bad, 10)
		require.Error(t, err, name)
	}
}

// FuzzCheckChain: no answer of a broker makes the reader panic or go backwards.
func FuzzCheckChain(f *testing.F) {
	f.Add(chain(f, 3, 10), int64(10))
	f.Add(chain(f, 1, 0)[:61], int64(0))
	f.Add([]byte{}, int64(5))
	f.Fuzz(func(t *testing.T, data []byte, want int64) {
		next, err := checkChain(data, want)
		if err == nil && next < want {
			t.Fatalf("from %d to %d", want, next)
		}
	})
}
