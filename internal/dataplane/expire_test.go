package dataplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// A silent producer is forgotten by the time of the command that opened the segment: every replica is told the same one,
// whatever its own clock says.
func TestProducersExpireByTheCommandsTime(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  error
	}{{time.Hour, nil}, {25 * time.Hour, base.CodeUnknownProducer}} {
		leadingBubble(t, base.TopicConfig{SegmentBytes: 1 << 30, SegmentAge: 1000 * time.Hour}, func(t *testing.T, r *rig) {
			began := time.Now()
			require.NoError(t, (<-r.append(makeBatch(1, 42, 0, 10), 0)).err)
			time.Sleep(25 * time.Hour)
			next := assignment(2, 2, 1, 1, roomy)
			next.OpenedMs = began.Add(c.after).UnixMilli()
			r.assign(next)
			require.ErrorIs(t, (<-r.append(makeBatch(1, 42, 1, 10), 0)).err, c.want)
		})
	}
}
