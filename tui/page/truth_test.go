package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// What a node's stream died of may be longer than the ring is wide: it is cut, and the facts stay in the middle.
func TestALongErrorStaysInTheRing(t *testing.T) {
	s := newScript(5).incident()
	s.at(0, store.Message{Node: "n3", Stream: &store.Stream{State: store.StreamLost, Error: strings.Repeat("connection refused ", 8)}})
	c := drawn(Get(Overview), s.view(), 200, 60, styles.NewTheme(styles.NoColor, false), nil)
	text := strings.Join(c.Plain(), "\n")
	require.Contains(t, text, "connection refused")
	for _, line := range c.Plain()[12:34] {
		panel := string([]rune(line + strings.Repeat(" ", 66))[:66])
		for _, fact := range []string{"view agree", "connection refused"} {
			if before, after, ok := strings.Cut(panel, fact); ok {
				require.Contains(t, before, "┄", "the ring lies around it: %s", panel)
				require.Contains(t, after, "┄", "the ring lies around it: %s", panel)
			}
		}
	}
}

// A type whose word fills its column is not glued to what follows.
func TestEventLabelsStandAlone(t *testing.T) {
	s := newScript(3)
	s.calm()
	for i, kind := range []string{"CLUSTER_CREATED", "SOMETHINGNEW_DONE"} {
		s.at(0, store.Message{Node: "n1", Boot: 3, Event: &sdk.Event{Seq: 900 + uint64(i), Node: "n1", TimeMs: noon.UnixMilli(), Type: kind, Subject: "it"}})
	}
	for _, w := range []int{80, 120, 200} {
		text := strings.Join(drawn(Get(Events), s.view(), w, 24, styles.NewTheme(styles.NoColor, false), nil).Plain(), "\n")
		require.Contains(t, text, "CLUSTER ")
		require.Contains(t, text, "SOMETHINGNEW ")
	}
}

// The name of a check says what should be; beside what is it would contradict it.
func TestAFailedCheckSaysWhatIs(t *testing.T) {
	v := &store.View{Health: store.Health{At: noon, Checks: []sdk.HealthCheck{{Name: "nodes are alive", Result: sdk.HealthFail, Detail: "no answer from n2"}}}}
	require.Equal(t, "! no answer from n2", alarmOf(v, &State{}).Text)
}
