package coord

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/planner"
)

// A topic that was due at once, and then not any more, is not due.
func TestAgendaForgetsWhatWasDueAtOnce(t *testing.T) {
	a := newAgenda()
	a.set(base.TopicID{1}, 0)
	a.set(base.TopicID{1}, planner.Never)
	_, ok := a.next()
	require.False(t, ok)
	require.Empty(t, a.due(1000, 10))
}
