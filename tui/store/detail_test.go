package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
)

// TestFields reads details as brokers write them, and whatever else comes.
func TestFields(t *testing.T) {
	for detail, want := range map[string][][2]string{
		"":                         nil,
		"segment=s881 next=s907":   {{"segment", "s881"}, {"next", "s907"}},
		`reason="asked by an op" `: {{"reason", "asked by an op"}},
		`a="x \"y\" z=1" b=2`:      {{"a", `x "y" z=1`}, {"b", "2"}},
		`a="" b`:                   {{"a", ""}},
		`a="open b=2`:              {{"a", `"open`}, {"b", "2"}},
		"no fields at all":         nil,
	} {
		var got [][2]string
		for k, v := range store.Fields(detail) {
			got = append(got, [2]string{k, v})
		}
		require.Equal(t, want, got, detail)
		for _, f := range want {
			require.Equal(t, f[1], store.Field(detail, f[0]))
		}
	}
	require.Empty(t, store.Field("segment=s881", "seg"))
}
