package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A segment without a record takes no offset with it: what lies below may be elsewhere, and was not trimmed.
func TestDropOfAnEmptySegmentTrimsNothing(t *testing.T) {
	o := small()
	o.OnEvent = func(e Event) {
		if e.Kind == EventDropped {
			t.Errorf("files that are not there were dropped: %+v", e)
		}
	}
	n := start(t, vfs.NewMem(), o)
	require.NoError(t, n.Start(t.Context()))
	n.openSegment(specOf(1, 0, 5))
	wait(t, func(done func(error)) error { return n.Seal(1, 5, base.CauseRecovery, done) })
	n.openSegment(specOf(2, 1, 5))
	wait(t, func(done func(error)) error { return n.DropSegments(refOf(1), []base.SegmentID{1}, done) })
	_, err := n.Read(refOf(1), 3, 100, nil)
	require.ErrorIs(t, err, base.CodeNotReplica)
	require.Len(t, n.Segments(refOf(1)), 1)
}
