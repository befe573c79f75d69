package meta

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages of any size list every topic that is wanted, once and in order.
func TestListPages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := &State{names: make(map[string]*Topic)}
		var want []string
		for i := range r.IntN(1000) {
			name := fmt.Sprintf("t%04d", i)
			s.names[name] = &Topic{Name: name, Internal: r.IntN(5) == 0}
			if !s.names[name].Internal {
				want = append(want, name)
			}
		}
		var got []string
		limit := r.IntN(60)
		for after, more := "", true; more; {
			var page []*Topic
			page, more = s.List(after, limit, func(t *Topic) bool { return !t.Internal })
			if limit > 0 {
				require.LessOrEqual(t, len(page), limit)
			}
			for _, topic := range page {
				got = append(got, topic.Name)
				after = topic.Name
			}
			require.True(t, len(page) > 0 || !more, "a page that is not the last brings the list forward")
		}
		require.Equal(t, want, got)
	}
}
