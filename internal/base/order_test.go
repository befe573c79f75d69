package base

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompareBoolsPutsFalseFirst(t *testing.T) {
	list := []bool{true, false, true, false}
	slices.SortFunc(list, CompareBools)
	require.Equal(t, []bool{false, false, true, true}, list)
	require.Zero(t, CompareBools(true, true))
}
