package task

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuardSeesThePanicOfATask(t *testing.T) {
	var caught []any
	guard := Guard(func(run func()) {
		defer func() { caught = append(caught, recover()) }()
		run()
	})
	g := guard.NewGroup(t.Context(), "g")
	g.Go("bad", func(context.Context) error { panic("a task") })
	require.NoError(t, g.Wait(), "what has panicked has said nothing")
	guard.Run(func() { panic("a call") })
	guard.Func(func() { panic("a function") })()
	require.Equal(t, []any{"a task", "a call", "a function"}, caught)
}

func TestNoGuardIsNone(t *testing.T) {
	var guard Guard
	require.PanicsWithValue(t, "through", func() { guard.Run(func() { panic("through") }) })
	require.PanicsWithValue(t, "through", guard.Func(func() { panic("through") }))
}
