package dataplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// Whoever waits in vain for the successor of a segment is told what the coordinator lacks.
func TestWhyThereIsNoSuccessorYet(t *testing.T) {
	full := base.TopicConfig{SegmentBytes: 1, SegmentAge: time.Hour}
	leadingBubble(t, full, func(t *testing.T, r *rig) {
		r.coord.mu.Lock()
		r.coord.refusal = base.Errorf(base.CodeBusy, "place segment", "2 of 4 nodes can take a segment, 3 are needed")
		r.coord.mu.Unlock()
		require.NoError(t, (<-r.append(makeBatch(1, 42, 0, 10), 0)).err)

		err := (<-r.append(makeBatch(1, 42, 1, 10), 10*time.Second)).err
		require.ErrorIs(t, err, base.CodeNoLeader)
		require.ErrorContains(t, err, "the range's segment is being sealed: 2 of 4 nodes can take a segment, 3 are needed")
	})
}
