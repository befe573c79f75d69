package coord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// What nobody waits for has one pace for all shards of the node, and who is waited for does not wait for it.
func TestShardsShareThePaceOfTheBackground(t *testing.T) {
	const shards, each, perSecond = 32, 300, 200
	pace, now := newIdlePace(perSecond), time.Unix(0, 0)
	all := make([]recoveries, shards)
	for i := range all {
		all[i] = newRecoveries(pace)
		for n := range each {
			all[i].file(base.RangeRef{}, base.SegmentID(n+1), 1, nobodys, now)
		}
	}
	turn := func() (recovered int) {
		for i := range all {
			list, _ := all[i].next(now)
			for _, r := range list {
				all[i].done(r.Segment)
			}
			recovered += len(list)
		}
		return recovered
	}
	require.Equal(t, pace.round, turn(), "one round, whoever comes first")

	all[shards-1].hurry(each, now)
	list, _ := all[shards-1].next(now)
	require.Len(t, list, 1, "and nothing of the background with it: there is nothing left")
	require.Equal(t, asked, list[0].haste)
	all[shards-1].done(each)

	left := shards*each - pace.round - 1
	for left > 0 {
		require.Less(t, now, time.Unix(int64(shards*each/perSecond)+10, 0))
		now = now.Add(idleRound / 5)
		left -= turn()
	}
	require.InDelta(t, float64(shards*each-pace.round)/perSecond, now.Sub(time.Unix(0, 0)).Seconds(), 2)
}
