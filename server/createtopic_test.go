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

// A retry finds the topic as it is now, and says so when it is gone again.
func TestCreateTopicAgain(t *testing.T) {
	n := start(t, vfs.NewMem())
	req := wire.CreateTopicRequest{RequestID: requestID(), Name: "t"}
	first := must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.Equal(t, first.Topic.Summary, must[wire.CreateTopicResponse](n, wire.KindCreateTopic, req).Topic.Summary)
	must[wire.DeleteTopicResponse](n, wire.KindDeleteTopic, wire.DeleteTopicRequest{RequestID: requestID(), Name: "t"})
	_, _, err := call[wire.CreateTopicResponse](n, wire.KindCreateTopic, req)
	require.ErrorIs(t, err, base.CodeTopicNotFound)
	require.Equal(t, base.Applied, base.OutcomeOf(err))
}
