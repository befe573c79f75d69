package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/sdk"
)

// Two writers of 40 records each, which lie in two ranges in turn; the last one of each was not acked.
func sound() (there map[sdk.RangeID][]id, writers []*writer, readers []*reader) {
	there = make(map[sdk.RangeID][]id)
	for n := range int64(40) {
		for w := range 2 {
			if len(writers) <= w {
				writers = append(writers, &writer{number: w})
			}
			rang := sdk.RangeID(1 + n%keys%2)
			at := position{int64(len(there[rang])), rang}
			there[rang] = append(there[rang], id{w, n})
			if n == 39 {
				at.offset = -1
				writers[w].failed++
			}
			writers[w].acked = append(writers[w].acked, at)
		}
	}
	return there, writers, []*reader{{seen: map[sdk.RangeID][]id{1: append([]id(nil), there[1][:30]...)}}}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(there map[sdk.RangeID][]id)
		want Verdict
	}{
		{"nothing", func(map[sdk.RangeID][]id) {}, Verdict{}},
		{"the end is gone", func(there map[sdk.RangeID][]id) { there[2] = there[2][:37] }, Verdict{Lost: 1}},
		{"another record in its place", func(there map[sdk.RangeID][]id) { there[2][0] = id{7, 7} }, Verdict{Lost: 1}},
		{"twice", func(there map[sdk.RangeID][]id) { there[2] = append(there[2], there[2][35]) }, Verdict{Duplicated: 1}},
		{"out of order", func(there map[sdk.RangeID][]id) { there[1][0], there[1][16] = there[1][16], there[1][0] }, Verdict{Lost: 2, Reordered: 1, Unread: 2}},
		{"read and gone", func(there map[sdk.RangeID][]id) { there[1] = there[1][:29] }, Verdict{Lost: 11, Unread: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			there, writers, readers := sound()
			tc.harm(there)
			v := judge("t", there, writers, readers)
			require.Equal(t, tc.want.Sound(), v.Sound())
			require.Equal(t, 78, v.Acked)
			require.Equal(t, 2, v.Failed)
			got := []int{v.Lost, v.Duplicated, v.Reordered, v.Unread}
			require.Equal(t, []int{tc.want.Lost, tc.want.Duplicated, tc.want.Reordered, tc.want.Unread}, got, v.Examples)
		})
	}
}

// A gap is told once a topic, with what went wrong then or shortly before.
func TestGaps(t *testing.T) {
	g := &gaps{began: time.Now()}
	at := func(ms int) time.Time { return g.began.Add(time.Duration(ms) * time.Millisecond) }
	g.faults = []span{{"early", at(0), at(100)}, {"kill", at(6000), at(6100)}, {"late", at(9000), time.Time{}}}
	g.see("t", at(1000), at(1100))
	g.see("t", at(6010), at(7000))
	g.see("t", at(6020), at(6990))
	g.see("u", at(20_000), at(21_000))
	require.Equal(t, []Gap{
		{Topic: "t", At: 6010 * time.Millisecond, Took: 990 * time.Millisecond, Cause: "kill"},
		{Topic: "u", At: 20 * time.Second, Took: time.Second, Cause: "late"},
	}, g.list)
}
