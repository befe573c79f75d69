package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/tui/component"
	"github.com/eastguard/eastguard/tui/store"
	"github.com/eastguard/eastguard/tui/styles"
)

// TestNothingMovesWhenARangeSplits: the note of a split comes and goes, and the rows stay where they are.
func TestNothingMovesWhenARangeSplits(t *testing.T) {
	for _, size := range sizes {
		v := newScript(size.nodes).grouped().incident().view()
		for _, id := range []ID{Overview, Ranges} {
			rows := func(later time.Duration) (at []int, note bool) {
				lines := drawn(Get(id), v, size.w, size.h, styles.NewTheme(styles.NoColor, false), func(st *State) {
					st.Frame.Now = noon.Add(later)
				}).Plain()
				for _, name := range []string{" clicks ", " payments ", "lineage", " r18 "} {
					at = append(at, slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, name) }))
				}
				return at, strings.Contains(strings.Join(lines, "\n"), "▲▲")
			}
			with, noted := rows(0)
			without, still := rows(10 * time.Minute)
			require.True(t, noted && !still)
			require.Equal(t, with, without, "%s at %s", id, size.name)
		}
	}
}

// TestSelectedTopicIsInSight moves down a panel in which each topic has two lines.
func TestSelectedTopicIsInSight(t *testing.T) {
	v := large()[0]
	for _, zoom := range []bool{false, true} {
		st := NewState()
		st.Frame, st.Panel, st.Zoom = frame(), panelTopics, zoom
		p := Get(Overview)
		c := component.NewCanvas(200, 60, styles.NewTheme(styles.NoColor, false))
		for range 40 {
			Draw(c, p, v, &st)
			st.Move(p.Rows(v, &st), 1)
		}
		c.Reset(200, 60, c.Theme())
		Draw(c, p, v, &st)
		require.Contains(t, st.Shown.at(panelTopics).IDs, st.Focus().Selected)
		row, want := -1, p.Rows(v, &st).Index(st.Focus().Selected)
		at := st.Shown.at(panelTopics)
		for y := at.Table.Rows.Y; y < at.Table.Rows.Bottom(); y++ {
			if _, i, ok := st.Hit(at.Table.Rows.X, y); ok && i == want {
				row = y
			}
		}
		require.GreaterOrEqual(t, row, 0, "the mouse finds it")
	}
}

// TestNumbersKeepStill: what stands behind a number stays where it is when the number gets longer.
func TestNumbersKeepStill(t *testing.T) {
	calm := *newScript(5).grouped().incident().view()
	measured := func(us int64) *store.View {
		v := calm
		c := &v.Cluster
		c.Ack.P50Us, c.Ack.P99Us, c.Ack.P999Us, c.Fsync.P99Us, c.SealGap.P50Us = us, us, us, us, us
		c.InBytes, c.BatchRecords, c.BatchBytes = float64(us)*9, float64(us), float64(us)*70
		return &v
	}
	for _, size := range sizes {
		column := func(us int64, word string) (at []int) {
			for _, line := range drawn(Get(Overview), measured(us), size.w, size.h, styles.NewTheme(styles.NoColor, false), nil).Plain() {
				at = append(at, strings.Index(line, word))
			}
			return at
		}
		for _, word := range []string{" p99 ", " p999 ", " p99.9 ", " max ", " rec", " batch ", "seals/min"} {
			require.Equal(t, column(900, word), column(123_400, word), "%q at %s", word, size.name)
		}
	}
}

// TestFactsAreWhole leaves out what does not fit, never a part of it.
func TestFactsAreWhole(t *testing.T) {
	for w := range 40 {
		c := component.NewCanvas(40, 1, styles.NewTheme(styles.NoColor, false))
		d := &drawing{c: c, v: &store.View{}, st: &State{}}
		d.facts(component.Rect{W: w, H: 1}, 2, fact{name: "in", value: "128"}, fact{name: "out", value: "402", w: 5}, fact{name: "lag", value: "12,004"})
		text := c.Plain()[0]
		switch {
		case w >= 29:
			require.Equal(t, "in 128  out   402  lag 12,004", text)
		case w >= 17:
			require.Equal(t, "in 128  out   402", text)
		case w >= 6:
			require.Equal(t, "in 128", text)
		}
	}
}

// TestLongWaits says of the waits of a lane what the lane shows: none only where it is empty.
func TestLongWaits(t *testing.T) {
	require.Equal(t, "none", longWaits(nil))
	require.Equal(t, "p99 96 ms", longWaits([]component.Sample{{Value: 96}}))
	var many []component.Sample
	for i := range 100 {
		many = append(many, component.Sample{Value: float64(100 - i)})
	}
	require.Equal(t, "p99 99 ms", longWaits(many))
}

// TestSegmentsOfAStateStandTogether: what the column says is in order where the table is sorted by it.
func TestSegmentsOfAStateStandTogether(t *testing.T) {
	states := []string{"sealed", "active"}
	var list []*store.Segment
	for i := range 40 {
		s := &store.Segment{}
		s.ID, s.State, s.Created = sdk.SegmentID(i), states[i%2], noon.Add(time.Duration(i*7%40)*time.Second)
		s.Want, s.Copies = 3, 3-i%3%2
		if i%7 == 0 {
			s.Waits = "2 of 3 nodes"
		}
		list = append(list, s)
	}
	slices.SortFunc(list, bySegmentState)
	var groups []string
	for _, s := range list {
		state, _ := segmentState(nil, s)
		if len(groups) == 0 || groups[len(groups)-1] != state {
			groups = append(groups, state)
		}
	}
	require.Equal(t, []string{"ACTIVE?", "SEALED?", "ACTIVE!", "SEALED!", "ACTIVE", "SEALED"}, groups)
}
