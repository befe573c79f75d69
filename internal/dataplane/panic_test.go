package dataplane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A turn that panics leaves the range half changed. The request's own goroutine may survive it, the broker must not: the
// range would take appends for ever and answer none.
func TestPanicInATurnIsFatal(t *testing.T) {
	r := newRig(t, nil)
	r.assign(assignment(1, 1, 0, 0, roomy))
	r.log.mu.Lock()
	r.log.segments[1].info.Epoch = 9 // the log will not believe what it is given
	r.log.mu.Unlock()
	require.Panics(t, func() { r.append(plain(1), 0) })
	require.Len(t, r.fatal, 1)
	require.ErrorContains(t, r.fatal[0], "batch does not fit")
	r.plane.cancel(errClosed) // Close would wait for a turn of the range
	r.plane.tasks.Wait()
}
