package dataplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// A young segment's age is due long before its leader would retire, and a sweep must know.
func TestShortAgesAreInTime(t *testing.T) {
	brief := base.TopicConfig{SegmentBytes: 1 << 30, SegmentAge: 5 * time.Second}
	leadingBubble(t, brief, func(t *testing.T, r *rig) {
		r.coord.config = brief
		<-r.append(plain(1), 0)
		time.Sleep(7 * time.Second)
		require.Len(t, r.coord.requests(), 1)
		require.Equal(t, base.CauseAge, r.coord.requests()[0].Cause)
	})
}

func TestAlteredAgeHoldsForTheActiveSegment(t *testing.T) {
	leadingBubble(t, roomy, func(t *testing.T, r *rig) {
		<-r.append(plain(1), 0)
		time.Sleep(3 * time.Minute) // retired: the next look is an hour away
		altered := assignment(1, 1, 0, 0, roomy)
		altered.Version, altered.Config.SegmentAge = 2, 5*time.Minute
		r.assign(altered)
		time.Sleep(3 * time.Minute)
		require.Len(t, r.coord.requests(), 1)
		require.Equal(t, base.CauseAge, r.coord.requests()[0].Cause)
	})
}
