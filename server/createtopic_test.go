package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/internal/wire"
)

// Whatever goes wrong once a topic is committed, the answer must not say that there is none.
func TestCreateTopicThatDoesNotOpenIsApplied(t *testing.T) {
	n := start(t, vfs.NewMem())
	require.NoError(t, n.plane.Close())
	_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, wire.CreateTopicRequest{RequestID: requestID(), Name: "t"})
	require.ErrorIs(t, err, base.CodeShuttingDown)
	require.Equal(t, base.Applied, base.OutcomeOf(err))
}
