package coord

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
)

// A node that is away is complained about once for each time that it is, not once for each order and try.
func TestANodeThatIsSilentIsNamedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		w.coord.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		complaints := func() int { return strings.Count(log.String(), "has not confirmed its orders") }
		away := func(err error) {
			w.node.mu.Lock()
			defer w.node.mu.Unlock()
			w.node.fail = err
		}
		for outage := range 2 {
			away(base.Errorf(base.CodeUnreachable, "tell", "gone"))
			for i := range 5 {
				w.create(topicName(10*outage+i), base.TopicConfig{}, 1)
				rest(time.Minute)
			}
			require.Equal(t, outage+1, complaints())
			away(nil)
			rest(time.Minute)
		}
	})
}

// So is a disk that its node has not any more: what was on it stays listed until it is somewhere else.
func TestADiskThatIsNotThereIsNamedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		w.coord.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w.node.mu.Lock()
		w.node.fail = base.Errorf(base.CodeNotReplica, "tell", "another disk")
		w.node.mu.Unlock()
		for i := range 5 {
			w.create(topicName(i), base.TopicConfig{}, 1)
			rest(time.Minute)
		}
		require.Equal(t, 1, strings.Count(log.String(), "orders are for a disk that the node has not"))
	})
}
