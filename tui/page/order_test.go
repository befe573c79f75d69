package page

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrderOfLogs lets a log grow and lose its oldest: what is kept of the last order is the same as looking at all.
func TestOrderOfLogs(t *testing.T) {
	for _, newest := range []bool{true, false} {
		random := rand.New(rand.NewPCG(1, 2))
		entries, came := []int(nil), 0
		st := NewState()
		for range 200 {
			for range random.IntN(8) {
				came++
				entries = append(entries, came)
			}
			entries = entries[max(len(entries)-40, 0):]
			at := func(i int) int {
				if newest {
					return entries[len(entries)-1-i]
				}
				return entries[i]
			}
			l := list{
				name: "log", version: uint64(came), n: len(entries), came: uint64(came), newest: newest,
				filter: Filter{"3", func(s string) bool { return s[len(s)-1] == '3' }}, text: func(i int) string { return strconv.Itoa(at(i)) },
			}
			var got, want []int
			for _, i := range st.order(l).rows {
				got = append(got, at(int(i)))
			}
			for _, e := range entries {
				if e%10 == 3 {
					want = append(want, e)
				}
			}
			if newest {
				slices.Reverse(want)
			}
			require.Equal(t, want, got)
		}
	}
}

// TestOrderKeepsStill moves a row by a rough value only when that has changed by more than a tenth.
func TestOrderKeepsStill(t *testing.T) {
	values := []float64{5, 102, 100, 50}
	st := NewState()
	version := uint64(0)
	order := func(rough bool) []int32 {
		version++
		return st.order(list{name: "x", version: version, n: len(values), value: func(i int) float64 { return values[i] }, rough: rough}).rows
	}
	require.Equal(t, []int32{1, 2, 3, 0}, order(true))
	values[2] = 109
	require.Equal(t, []int32{1, 2, 3, 0}, order(true))
	values[2] = 130
	require.Equal(t, []int32{2, 1, 3, 0}, order(true))
	values[1] = 131
	require.Equal(t, []int32{1, 2, 3, 0}, order(true))
	values[2] = 132
	require.Equal(t, []int32{1, 2, 3, 0}, order(true))
	require.Equal(t, []int32{2, 1, 3, 0}, order(false), "what does not wobble is sorted as it is")
	require.Equal(t, []int32{2, 1, 3, 0}, order(true), "a new order begins with what is")
}

// TestSelection stays with its row wherever that goes.
func TestSelection(t *testing.T) {
	v := newScript(5).grouped().incident().view()
	st := NewState()
	st.Frame = frame()
	p := Get(Topics)
	st.Move(p.Rows(v, &st), 0)
	st.Move(p.Rows(v, &st), 2)
	require.Equal(t, "payments", st.Focus().Selected)
	st.Focus().Invert = true
	require.Equal(t, "payments", p.About(v, &st).Name)
	st.Move(p.Rows(v, &st), -1)
	require.NotEqual(t, "payments", st.Focus().Selected)
	st.Filter = Filter{"clicks", func(s string) bool { return s == "clicks zstd" }}
	require.Equal(t, 1, p.Rows(v, &st).Len())
	st.Move(p.Rows(v, &st), 1)
	require.Equal(t, "clicks", p.About(v, &st).Name)
	require.Equal(t, Ranges, p.About(v, &st).Open)
}

// TestMoveFromWhatLooksSelected: the first key goes one row on from the row that looks selected, also where nobody has
// selected it, and what is marked or acted on is that row.
func TestMoveFromWhatLooksSelected(t *testing.T) {
	v := newScript(5).grouped().incident().view()
	for _, tc := range []struct {
		id           ID
		panel        int
		first, after string
	}{
		{Overview, panelNodes, "n1", "n2"}, {Overview, panelTopics, "orders", "clicks"}, {Ring, 0, "n3", "n4"}, {Topics, 0, "orders", "clicks"}, {Shards, 0, "107", "91"},
	} {
		st := NewState()
		st.Frame, st.Panel = frame(), tc.panel
		p := Get(tc.id)
		drawnWith(p, v, 120, 40, &st)
		rows := p.Rows(v, &st)
		require.Equal(t, tc.first, st.Current(rows), tc.id.String())
		require.Equal(t, tc.first, p.About(v, &st).Name, tc.id.String())
		st.Move(rows, 1)
		require.Equal(t, tc.after, st.Focus().Selected, tc.id.String())
		st.Select(rows, 0)
		st.Move(rows, -1)
		require.Equal(t, rows.ID(0), st.Focus().Selected)
	}
	st := NewState()
	st.Frame = frame()
	drawnWith(Get(Logs), v, 120, 40, &st)
	st.Move(Get(Logs).Rows(v, &st), -1)
	require.Equal(t, Get(Logs).Rows(v, &st).ID(3), st.Focus().Selected, "a log is read from its end")
}

// TestAbout names the subject of the first row of each page, and what can be done to it.
func TestAbout(t *testing.T) {
	v := newScript(5).grouped().incident().view()
	for id, want := range map[ID]string{Overview: "n1", Ring: "n3", Shards: "107", Topics: "orders", Ranges: "orders/r41", Segments: "s790", Groups: "billing"} {
		st := NewState()
		st.Frame = frame()
		s := Get(id).About(v, &st)
		require.Equal(t, want, s.Name, id.String())
		require.NotEmpty(t, s.Describe)
		require.NotEmpty(t, s.Actions)
	}
}

// TestHit finds rows under the mouse.
func TestHit(t *testing.T) {
	v := newScript(5).grouped().incident().view()
	st := NewState()
	st.Frame = frame()
	c := drawnWith(Get(Overview), v, 80, 24, &st)
	panel, row, ok := st.Hit(45, 5)
	require.True(t, ok)
	require.Equal(t, panelNodes, panel)
	require.Equal(t, "n2", Get(Overview).Rows(v, &st).ID(row))
	require.Contains(t, c.Plain()[5], "n2")
	_, _, ok = st.Hit(0, 0)
	require.False(t, ok)
	require.Len(t, st.Shown.Tabs, 9)
}
