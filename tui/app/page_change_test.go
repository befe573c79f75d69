package app

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
)

// Another page, or size, is drawn from nothing: what a renderer saves by moving lines of the page before is not worth a screen on which
// they were moved wrongly, as after a terminal has changed its size a few times.
func TestAnotherPageIsDrawnFromNothing(t *testing.T) {
	b := newBench(t, Options{Width: 120, Height: 40})
	g := &guarded{model: b.model, guard: &guard{}, post: func(any) {}}
	three := tea.KeyPressMsg{Code: '3', Text: "3"}
	_, cmd := g.Update(three)
	require.NotNil(t, cmd)
	require.Equal(t, tea.ClearScreen(), cmd())
	_, cmd = g.Update(three)
	require.Nil(t, cmd, "it is the page already")
	b.model.opts.Width, b.model.opts.Height = 0, 0 // those of the terminal
	_, cmd = g.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	require.NotNil(t, cmd)
	require.Equal(t, tea.ClearScreen(), cmd())
}
