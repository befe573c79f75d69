package app

import (
	"errors"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/tui/store/storetest"
)

func planOf(t *testing.T) (*bench, *planDialog) {
	t.Helper()
	b := newBench(t, Options{Width: 120, Height: 40, AllowActions: true})
	b.document = `[{"topic":"orders","id":"a","version":3,"bytes":100,"result":"would delete"}]`
	b.play(storetest.Options{Seed: 1}, 20*time.Second)
	b.press("4", "down", "ctrl+d")
	p, ok := b.dialog.(*planDialog)
	require.True(t, ok)
	require.True(t, p.ready)
	return b, p
}

// A plan that is confirmed late holds only for what it was made for.
func TestAPlanThatDoesNotHoldAnyMoreIsRefused(t *testing.T) {
	b, p := planOf(t)
	b.document = `[{"topic":"orders","id":"b","version":1,"bytes":0,"result":"would delete"}]` // deleted, and made anew
	b.write(p.name)
	b.press("enter")
	for _, words := range b.ran {
		require.NotContains(t, words, "--yes")
	}
	require.Same(t, p, b.dialog)
	b.shows(t, "nothing was done: things have changed since the plan was shown")
	require.Empty(t, p.input.Text, "the name is to be typed for the plan of now")
	b.write(p.name)
	b.press("enter")
	require.Contains(t, b.ran[len(b.ran)-1], "--yes")
}

// The same of a topic that was altered meanwhile.
func TestAPlanForATopicThatWasAlteredIsRefused(t *testing.T) {
	b, p := planOf(t)
	b.document = `[{"topic":"orders","id":"a","version":4,"bytes":100,"result":"would delete"}]`
	b.write(p.name)
	b.press("enter")
	for _, words := range b.ran {
		require.NotContains(t, words, "--yes")
	}
	b.shows(t, "nothing was done: things have changed since the plan was shown")
}

// What a plan only measures may change.
func TestAPlanHoldsWhileRecordsCome(t *testing.T) {
	b, p := planOf(t)
	b.document = `[{"topic":"orders","id":"a","version":3,"bytes":5000,"result":"would delete"}]`
	b.write(p.name)
	b.press("enter")
	require.Contains(t, b.ran[len(b.ran)-1], "--yes")
}

// The answer to a plan that was given up is not taken for that of another, though it be of the same words: a change that is
// confirmed twice over would be carried out twice.
func TestAnswersGoWhereTheyWereAskedFor(t *testing.T) {
	b, first := planOf(t)
	b.Update(keyOf("esc"))
	b.press("ctrl+d")
	second, ok := b.dialog.(*planDialog)
	require.True(t, ok)
	require.NotSame(t, first, second)
	asked := len(b.ran)
	for _, words := range [][]string{second.document(), second.dryRun()} {
		_, cmd := b.Update(execMsg{words: words, text: "of the first", asker: first})
		require.Nil(t, cmd)
	}
	require.Equal(t, []string{"the plan"}, second.plan)
	require.Len(t, b.ran, asked)

	b.write(second.name)
	_, confirm := b.Update(keyOf("enter"))
	_, cmd := b.Update(execMsg{words: second.document(), text: b.document, asker: first})
	require.Nil(t, cmd, "the plan of the first does not confirm that of the second")
	require.Empty(t, b.underway)
	_, cmd = b.Update(confirm())
	require.Equal(t, [][]string{second.carryOut(b.model)}, b.underway, "what is told when the program ends now")

	b.Update(execMsg{words: []string{"topic", "delete", "other", "--yes"}, text: "done to another", asker: first})
	require.Same(t, second, b.dialog)
	b.model.View()
	b.shows(t, "done to another")
	b.Update(cmd())
	require.Nil(t, b.dialog)
	require.Empty(t, b.underway)
}

// Why there is no plan is said for people, not as a document.
func TestWhyThereIsNoPlan(t *testing.T) {
	b, p := planOf(t)
	b.env.exec = func(words []string) tea.Cmd {
		text := "error: topic orders: not found [TOPIC_NOT_FOUND]\n"
		if slices.Contains(words, "json") {
			text = `{"error":{"code":"TOPIC_NOT_FOUND"}}`
		}
		return func() tea.Msg { return execMsg{words: words, text: text, err: errors.New("not found")} }
	}
	b.write(p.name)
	b.press("enter")
	require.Same(t, p, b.dialog)
	require.True(t, p.failed)
	require.False(t, p.ready || p.doing)
	b.shows(t, "topic orders: not found", "there is no plan, so nothing can be done")
}

func TestPremise(t *testing.T) {
	same := premiseOf(`{"schema":"node.change/1","node":"n3","before":"alive","after":"left","segments":4}`)
	require.Equal(t, same, premiseOf(`{"after":"left","before":"alive","node":"n3","segments":4,"shard_votes":2}`))
	require.NotEqual(t, same, premiseOf(`{"node":"n3","before":"dead","after":"left"}`))
	require.NotEqual(t, premiseOf(`{"node":"n3","segments":0}`), premiseOf(`{"node":"n3","segments":2}`), "what is lost with it")
	require.NotEqual(t, premiseOf(`[{"shard":"1"}]`), premiseOf(`[{"shard":"1"},{"shard":"2"}]`))
	require.Empty(t, premiseOf(""))
}
