package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/store/storetest"
)

// A view that was kept is the same when it is read again, with all that the store alone knows of its rows.
func TestImage(t *testing.T) {
	o := storetest.Options{Seed: 3}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	functions := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".compare" }, cmp.Ignore())
	for _, at := range []time.Duration{0, storetest.SplitAt + time.Second, storetest.DeadAt, storetest.RepairAt + 4*time.Second, storetest.ReturnAt + 3*time.Second} {
		v := storetest.View(o, at)
		back, err := store.ThroughImage(v)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(v, back, all, functions, cmpopts.EquateEmpty()), "at %s", at)
		require.Equal(t, v.Nodes.At(0), back.Nodes.Get(v.Nodes.At(0).ID), "it can be searched")
	}
}
