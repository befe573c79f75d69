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

// The wall clock was a year ahead for a moment: the segment's age does not wait for it to come, nor do append times.
func TestAClockThatWasAheadPinsOneSegmentForItsAgeAtMost(t *testing.T) {
	brief := base.TopicConfig{SegmentBytes: 1 << 30, SegmentAge: 5 * time.Second}
	leadingBubble(t, brief, func(t *testing.T, r *rig) {
		r.coord.config = brief
		<-r.append(plain(1), 0)
		jumped := make(chan int64, 1)
		r.plane.all()[0].do(func(now time.Time) {
			l := r.plane.all()[0].lead
			l.lastMs = now.AddDate(1, 0, 0).UnixMilli() // all that a wrong wall clock can reach
			jumped <- l.lastMs
		})
		ahead := <-jumped
		require.Equal(t, ahead, (<-r.append(plain(1), 0)).AppendMs, "append times do not fall within a segment")
		time.Sleep(7 * time.Second)
		require.Len(t, r.coord.requests(), 1)
		require.Equal(t, base.CauseAge, r.coord.requests()[0].Cause)
		out := <-r.append(plain(1), 0)
		require.NoError(t, out.err)
		require.LessOrEqual(t, out.AppendMs, time.Now().Add(maxAhead).UnixMilli(), "the successor follows the clock")
		time.Sleep(7 * time.Second)
		require.Len(t, r.coord.requests(), 2)
	})
}

// A small correction does not make append times fall from one segment to the next.
func TestSuccessorsGoOnFromAClockThatWasSlightlyAhead(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	require.EqualValues(t, 1_005_000, successorOf(times{lastMs: 1_005_000}, now).lastMs)
	require.EqualValues(t, 1_010_000, successorOf(times{lastMs: 1 << 50}, now).lastMs)
	require.Zero(t, successorOf(times{}, now).lastMs)
}
