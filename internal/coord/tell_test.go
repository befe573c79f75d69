package coord

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/meta"
)

// Whatever lies between them in the message, the segments of a range are told in the order in which they were opened.
func TestOrdersAreInTheOrderOfOpening(t *testing.T) {
	var all []meta.Assignment
	for epoch := range base.Epoch(20) {
		for topic := range byte(3) {
			ref := base.RangeRef{Topic: base.TopicID{topic}, Range: base.RangeID(1 + epoch*7%5)}
			all = append(all, meta.Assignment{Ref: ref, Epoch: epoch + 1})
		}
	}
	for seed := range uint64(100) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		slices.SortFunc(all, byOpening)
		last := make(map[base.RangeRef]base.Epoch)
		for _, a := range all {
			require.Greater(t, a.Epoch, last[a.Ref], "seed %d: %s", seed, a.Ref)
			last[a.Ref] = a.Epoch
		}
	}
}
