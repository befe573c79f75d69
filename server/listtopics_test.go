package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/wire"
)

// Pages put together from several nodes, each of which sends only the beginning of what it has, list every topic once
// and in order, whatever the limit and however the topics are spread.
func TestMergedPagesListEverythingOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		nodes := make([][]wire.TopicSummary, 1+r.IntN(5))
		var want []string
		for i := range r.IntN(60) {
			row := wire.TopicSummary{Name: fmt.Sprintf("t%03d", i)}
			if r.IntN(10) == 0 { // rows so large that a page ends by its bytes
				row.Labels = map[string]string{"l": strings.Repeat("x", pageBytes/3)}
			}
			n := r.IntN(len(nodes))
			nodes[n] = append(nodes[n], row)
			want = append(want, row.Name)
		}
		limit := 1 + r.IntN(20)
		var got []string
		for after := ""; ; {
			var parts []gatherAnswer
			for _, all := range nodes {
				var p gatherAnswer
				p.Topics = slices.DeleteFunc(slices.Clone(all), func(r wire.TopicSummary) bool { return r.Name <= after })
				p.Topics, p.More = mergeAnswers([]gatherAnswer{p}, 1+r.IntN(limit)) // a node may send fewer than were asked for
				parts = append(parts, p)
			}
			rows, more := mergeAnswers(parts, limit)
			require.LessOrEqual(t, len(rows), limit)
			for _, row := range rows {
				got = append(got, row.Name)
			}
			if !more {
				break
			}
			require.NotEmpty(t, rows, "a page that is not the last brings the list forward")
			after = rows[len(rows)-1].Name
		}
		require.Equal(t, want, got)
	}
}
